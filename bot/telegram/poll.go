package telegram

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
)

// Accept stores updates durably; they are confirmed only if it returns nil. Repeated updates are harmless.
type Accept func(ctx context.Context, updates []Update) error

// Update is a raw update.
type Update struct {
	ID  int64
	Raw []byte
}

// PollOptions configure a Poller. Zero values mean the documented default.
type PollOptions struct {
	Hold     time.Duration // how long the server may hold an empty poll; default 45 s (the server caps it at 50)
	Conflict time.Duration // pause after a 409; default 5 s
	Longest  time.Duration // longest pause after failures; default 30 s
	Silence  time.Duration // a poll without a response for this long is abandoned; default Hold + 15 s
	// Lead reports whether this process polls, if only one of several may. It is called before every poll, when the
	// result of the previous one is stored. nil = it does.
	Lead func(ctx context.Context) (bool, error)
	Look time.Duration // between two calls of Lead in a process that does not lead; default 1 s
	// Takeover is how long a process that has begun to lead attributes a 409 to the request of the previous leader;
	// default 15 s. Telegram ends the older of two requests, which takes it some seconds.
	Takeover time.Duration
	// Connected is called after the first successful poll. May be nil.
	Connected func()
	// Unhook removes a webhook that prevents polling. It is called once: a webhook that is set again later is set on
	// purpose. May be nil.
	Unhook func(ctx context.Context) error
}

// Poller fetches updates (Bot API getUpdates) and confirms them only after they are stored.
type Poller struct {
	client *Client
	accept Accept
	log    zerolog.Logger
	opts   PollOptions

	unhooked bool
	leading  bool      // the last result of Lead
	watching bool      // it was logged that another process polls
	took     time.Time // when this process began to lead
	foreign  bool      // it was logged that a foreign program polls
}

// NewPoller returns a Poller.
func NewPoller(client *Client, accept Accept, log zerolog.Logger, opts PollOptions) *Poller {
	def := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	def(&opts.Hold, 45*time.Second)
	def(&opts.Conflict, 5*time.Second)
	def(&opts.Longest, 30*time.Second)
	def(&opts.Look, time.Second)
	def(&opts.Takeover, 15*time.Second)
	def(&opts.Silence, opts.Hold+15*time.Second)
	return &Poller{client: client, accept: accept, log: log, opts: opts}
}

// Run polls until ctx ends. It waits and retries after failures; a wrong token ends it with an error.
func (p *Poller) Run(ctx context.Context) error {
	var offset int64
	failures, connected := 0, false
	for ctx.Err() == nil {
		lead, err := p.mayPoll(ctx)
		if err == nil && !lead {
			offset = 0 // another process may confirm updates in the meantime
			waitFor(ctx, p.opts.Look)
			continue
		}
		var updates []Update
		if err == nil {
			updates, err = p.pollOnce(ctx, offset)
		}
		if err == nil {
			if !connected && p.opts.Connected != nil {
				p.opts.Connected()
			}
			connected = true
			if err = p.storeUpdates(ctx, updates); err != nil {
				err = &storeError{err}
			}
		}
		if err == nil {
			if failures > 0 {
				p.log.Info().Int("failures", failures).Msg("telegram responds again")
			}
			failures = 0
			next, ok := followingOffset(updates, offset)
			if offset = next; ok {
				continue
			}
			err = errNoID
		}
		if ctx.Err() != nil {
			break
		}
		refused, _ := errors.AsType[*apiError](err)
		if final := hopelessError(refused, connected); final != nil {
			return final
		}
		if p.removeHook(ctx, refused) {
			continue
		}
		failures++
		p.pausePolling(ctx, err, failures)
	}
	return nil
}

// mayPoll reports whether this process polls.
func (p *Poller) mayPoll(ctx context.Context) (bool, error) {
	if p.opts.Lead == nil {
		return true, nil
	}
	lead, err := p.opts.Lead(ctx)
	if err != nil {
		return false, &storeError{err}
	}
	switch {
	case lead && !p.leading:
		p.took, p.watching = time.Now(), false
		p.log.Info().Msg("this process now polls")
	case !lead && !p.watching:
		p.watching = true
		p.log.Info().Msg("another process of this service polls; this one takes over when that one ends")
	}
	p.leading = lead
	return lead, nil
}

// takingOver reports whether the request of the previous leader may still be running.
func (p *Poller) takingOver() bool { return p.opts.Lead != nil && time.Since(p.took) < p.opts.Takeover }

// waitFor waits for a duration, or until ctx ends.
func waitFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// hopelessError returns an error for a refusal that retrying does not mend.
func hopelessError(refused *apiError, connected bool) error {
	switch {
	case refused == nil:
		return nil
	case refused.Code == http.StatusUnauthorized:
		return errors.New("telegram does not accept the token (401): check telegram.token or ZEPH_TELEGRAM_TOKEN")
	case refused.Code == http.StatusNotFound && !connected:
		return errors.New("there is no Bot API under telegram.api_url for this token (404): check telegram.api_url " +
			"and telegram.token")
	default:
		return nil
	}
}

// webhookWords are part of the 409 that an active webhook causes; any other 409 is caused by another poller.
const webhookWords = "webhook is active"

// byWebhook reports whether a poll was refused because a webhook is set.
func byWebhook(refused *apiError) bool {
	return refused != nil && refused.Code == http.StatusConflict &&
		strings.Contains(strings.ToLower(refused.Text), webhookWords)
}

// removeHook removes the webhook that refused a poll, the first time that this happens.
func (p *Poller) removeHook(ctx context.Context, refused *apiError) bool {
	if p.unhooked || p.opts.Unhook == nil || !byWebhook(refused) {
		return false
	}
	if err := p.opts.Unhook(ctx); err != nil {
		p.log.Warn().Err(err).Msg("a webhook is set for this bot, and it could not be removed; trying again")
		return false
	}
	p.unhooked = true
	p.log.Warn().
		Msg("a webhook was set for this bot; it is removed, because polling is configured (telegram.webhook_url is " +
			"empty)")
	return true
}

// pollOnce makes one long poll. A silent connection is abandoned after Silence.
func (p *Poller) pollOnce(ctx context.Context, offset int64) ([]Update, error) {
	ctx, cancel := context.WithTimeout(ctx, p.opts.Silence)
	defer cancel()
	params := map[string]any{
		"timeout": max(1, int(p.opts.Hold.Seconds())), "limit": 100, "allowed_updates": AllowedUpdates(),
	}
	if offset != 0 {
		params["offset"] = offset
	}
	var raws []json.RawMessage
	if err := p.client.postParams(ctx, p.client.polls, "getUpdates", params, &raws); err != nil {
		return nil, err
	}
	return splitUpdates(raws), nil
}

// errNoID is a batch that cannot be confirmed: it contains only updates without an id.
var errNoID = errors.New("telegram sent updates without an id")

// storeError is a failure to store, as opposed to one of the connection.
type storeError struct{ err error }

func (e *storeError) Error() string { return "store updates: " + e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// followingOffset returns the offset that confirms a batch: one above its last id. The last id need not be the highest,
// because after a week of silence ids may begin lower.
func followingOffset(updates []Update, offset int64) (next int64, ok bool) {
	for _, update := range slices.Backward(updates) {
		if id := update.ID; id > 0 {
			return id + 1, true
		}
	}
	return offset, len(updates) == 0
}

// splitUpdates reads only the ids: an update that cannot be decoded any further is stored nevertheless. If
// the id cannot be read, a negative one is derived from the bytes, so that the update is stored once
// however often it is delivered.
func splitUpdates(raws []json.RawMessage) []Update {
	updates := make([]Update, 0, len(raws))
	for _, raw := range raws {
		var head struct {
			ID int64 `json:"update_id"`
		}
		if err := json.Unmarshal(raw, &head); err != nil || head.ID <= 0 {
			sum := sha256.Sum256(raw)
			head.ID = -1 - int64(binary.BigEndian.Uint64(sum[:])>>1) // the shift makes room for the sign
		}
		updates = append(updates, Update{ID: head.ID, Raw: raw})
	}
	return updates
}

func (p *Poller) storeUpdates(ctx context.Context, updates []Update) error {
	if len(updates) == 0 {
		return nil
	}
	return p.accept(ctx, updates)
}

// pausePolling waits before the next poll and logs why: at once, then less and less often.
func (p *Poller) pausePolling(ctx context.Context, err error, failures int) {
	rest := min(time.Duration(1<<min(failures-1, 10))*250*time.Millisecond, p.opts.Longest)
	taking := false
	var refused *apiError
	if errors.As(err, &refused) {
		switch refused.Code {
		case http.StatusConflict:
			rest = p.opts.Conflict
			if taking = p.takingOver() && !byWebhook(refused); taking {
				rest = min(rest, p.opts.Look)
			}
		case http.StatusTooManyRequests:
			rest = max(rest, refused.RetryAfter)
		}
	}
	rest += rand.N(rest/4 + 1)
	foreign := refused != nil && refused.Code == http.StatusConflict && !taking
	if failures&(failures-1) == 0 || foreign && !p.foreign { // the 1st, 2nd, 4th, 8th …
		p.foreign = foreign
		p.log.Warn().Err(err).Int("failures", failures).Dur("wait", rest).Msg(p.describeTrouble(err, refused, taking))
	}
	waitFor(ctx, rest)
}

// describeTrouble describes a failure: what it means, and what to do.
func (p *Poller) describeTrouble(err error, refused *apiError, taking bool) string {
	var unstored *storeError
	conflict := refused != nil && refused.Code == http.StatusConflict
	switch {
	case errors.As(err, &unstored):
		return "updates cannot be stored; nothing is lost, telegram keeps them for 24 hours"
	case byWebhook(refused):
		return "somebody has set a webhook for this bot, so nothing can be polled: stop that program, or set " +
			"telegram.webhook_url; this one waits"
	case taking:
		return "the process that polled before has not quite ended; this one waits a moment"
	case conflict && p.opts.Lead != nil:
		return "a program that does not share this database polls with this token, and updates that it gets are lost " +
			"for this service: stop it, or give it a bot of its own; this one waits"
	case conflict:
		return "another program polls with this token: stop it, or give one of the two a bot of its own; this one waits"
	default:
		return "telegram is not reachable; nothing is lost, it keeps updates for 24 hours"
	}
}
