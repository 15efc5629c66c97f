package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	tg "github.com/go-telegram/bot"
)

// Fault says why a request about the bot itself failed.
type Fault string

// The faults, from the operator's point of view.
const (
	NoFault     Fault = ""
	WrongToken  Fault = "wrong token" // Telegram knows no bot with this token
	Conflict    Fault = "conflict"    // another program polls with this token, or a webhook is set
	Busy        Fault = "busy"        // too many requests: try again later
	Unreachable Fault = "unreachable" // no answer, or not one of the Bot API
)

// FaultOf returns why a request failed.
func FaultOf(err error) Fault {
	if err == nil {
		return NoFault
	}
	code := 0
	if refused, ok := errors.AsType[*apiError](err); ok {
		code = refused.Code
	}
	_, many := errors.AsType[*tg.TooManyRequestsError](err)
	switch {
	case code == http.StatusUnauthorized, code == http.StatusNotFound,
		errors.Is(err, tg.ErrorUnauthorized), errors.Is(err, tg.ErrorNotFound):
		return WrongToken
	case code == http.StatusConflict, errors.Is(err, tg.ErrorConflict):
		return Conflict
	case code == http.StatusTooManyRequests, many:
		return Busy
	default:
		return Unreachable
	}
}

// Registration is what Telegram has registered as the webhook of a bot (Bot API getWebhookInfo).
type Registration struct {
	Host    string // of its address, whose path may be a secret; "" = there is no webhook
	Wanted  bool   // it is the address that was asked about
	Pending int    // updates that were not fetched or delivered yet
	// Failed is what Telegram says of the last delivery that failed, and At when that was; "" = none.
	Failed string
	At     time.Time
}

// Registered returns the webhook that is registered. address is the one that should be; "" = none.
func (c *Client) Registered(ctx context.Context, address string) (Registration, error) {
	info, err := c.hookInfo(ctx)
	if err != nil {
		return Registration{}, err
	}
	r := Registration{Wanted: info.URL == address, Pending: info.Pending, Failed: info.LastError}
	if info.URL != "" {
		if r.Host = hostOf(info.URL); r.Host == "" {
			r.Host = "an address that cannot be read"
		}
	}
	if info.LastErrorDate > 0 {
		r.At = time.Unix(info.LastErrorDate, 0)
	}
	return r, nil
}

// Clock returns by how much a clock is ahead of the server's, which tells whole seconds. ok is false if it tells none.
func (c *Client) Clock(ctx context.Context, now func() time.Time) (ahead time.Duration, ok bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, c.opts.APIURL, nil)
	if err != nil {
		return 0, false
	}
	before := now()
	resp, err := c.files.Do(req) // follows no redirect
	if err != nil {
		return 0, false
	}
	_ = resp.Body.Close() // a HEAD has none
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return 0, false
	}
	after := now()
	return before.Add(after.Sub(before) / 2).Sub(date.Add(time.Second / 2)), true
}

// Rival reports whether another program polls with this token. It waits up to hold in a poll of its own, which the
// other program's next poll ends. It confirms nothing, so no update is lost, but the running poll of the other program
// ends early, once. An error is a request that failed otherwise.
func (c *Client) Rival(ctx context.Context, hold time.Duration) (bool, error) {
	var raws []json.RawMessage
	err := c.postParams(
		ctx, c.polls, "getUpdates", map[string]any{"timeout": max(1, int(hold.Seconds())), "limit": 1}, &raws,
	)
	if refused, ok := errors.AsType[*apiError](err); ok && refused.Code == http.StatusConflict && !byWebhook(refused) {
		return true, nil
	}
	return false, err
}

// Visitor is a person who has written to the bot.
type Visitor struct {
	ID       int64
	Name     string
	Language string // of their client, an IETF tag
}

// backlog is the most that one poll returns (Bot API getUpdates).
const backlog = 100

// ErrBacklog is the error of Await if so much waits to be fetched that a new message cannot be seen.
var ErrBacklog = errors.New("too many older messages wait for this bot")

// Await polls until a person sends a private text that is asks for, and returns that person. It confirms nothing: the
// service that starts afterwards gets every message, this one too. It returns the error of ctx when that ends,
// ErrBacklog, or that of a poll: the caller decides by FaultOf whether to call it again.
func (c *Client) Await(ctx context.Context, wanted func(text string) bool, each time.Duration) (Visitor, error) {
	hold := 1 // the first poll only looks
	for {
		var raws []json.RawMessage
		params := map[string]any{"timeout": hold, "limit": backlog, "allowed_updates": AllowedUpdates()}
		if err := c.postParams(ctx, c.polls, "getUpdates", params, &raws); err != nil {
			if ctx.Err() != nil {
				return Visitor{}, ctx.Err()
			}
			return Visitor{}, err
		}
		for _, raw := range raws {
			if who, ok := readVisitor(raw, wanted); ok {
				return who, nil
			}
		}
		hold = 20
		switch {
		case len(raws) >= backlog:
			return Visitor{}, ErrBacklog
		case len(raws) > 0: // unconfirmed updates are returned at once, again and again
			waitFor(ctx, each)
		}
		if ctx.Err() != nil {
			return Visitor{}, ctx.Err()
		}
	}
}

// readVisitor reads who sent a private text, if it is wanted.
func readVisitor(raw []byte, wanted func(text string) bool) (Visitor, bool) {
	var update struct {
		Message struct {
			Text string `json:"text"`
			Chat struct {
				Type string `json:"type"`
			} `json:"chat"`
			From struct {
				ID    int64  `json:"id"`
				Bot   bool   `json:"is_bot"`
				First string `json:"first_name"`
				Last  string `json:"last_name"`
				Lang  string `json:"language_code"`
			} `json:"from"`
		} `json:"message"`
	}
	if json.Unmarshal(raw, &update) != nil {
		return Visitor{}, false
	}
	m := update.Message
	if m.Chat.Type != "private" || m.From.ID <= 0 || m.From.Bot || !wanted(m.Text) {
		return Visitor{}, false
	}
	name := m.From.First
	if m.From.Last != "" {
		name += " " + m.From.Last
	}
	if name == "" {
		name = strconv.FormatInt(m.From.ID, 10)
	}
	return Visitor{ID: m.From.ID, Name: name, Language: m.From.Lang}, true
}

// Tell sends a text to somebody who has written to the bot, without an outbox: once, if it can be sent now.
func (c *Client) Tell(ctx context.Context, who Visitor, text string) error {
	var sent json.RawMessage
	return c.postParams(ctx, c.sends, "sendMessage", map[string]any{"chat_id": who.ID, "text": text}, &sent)
}

// Release removes the webhook of a bot that is going to poll (Bot API deleteWebhook). Waiting updates are kept.
func (c *Client) Release(ctx context.Context) error {
	var done bool
	return c.postParams(ctx, c.sends, "deleteWebhook", map[string]any{}, &done)
}
