package telegram

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
)

// Buckets of facts, both by bot id: the digest of what this service registered with Telegram last, and the process that
// may register.
const (
	hookBucket   = "webhook"
	setterBucket = "webhook_setter"
)

const (
	// hookConnections is how many updates Telegram may deliver at once (max_connections; the maximum). Those of one
	// chat arrive one by one.
	hookConnections = 100
	// setterLease is how long a process that registers excludes the others.
	setterLease = 30 * time.Second
	// hookHeaders limits the header of a request.
	hookHeaders = 16 << 10
	// hookGrace limits how long deliveries in progress may take at shutdown.
	hookGrace = 10 * time.Second
)

// HookStore stores the facts of a Hook.
type HookStore interface {
	bot.Writer
	Fact(ctx context.Context, bucket, key string, now time.Time) (string, error)
}

// HookOptions configure a Hook.
type HookOptions struct {
	URL string // public address; only its path is served
	// Secret that Telegram sends with every update; "" = derived from the token, the same in every process.
	Secret string
	Owner  string           // of this process, unique among processes
	Now    func() time.Time // nil = time.Now
	Look   time.Duration    // between two checks of what Telegram has registered; default 1 min
	Again  time.Duration    // the same while another process registers, or after a failure; default 5 s
	// Connected is called once the webhook is registered, by any process. May be nil.
	Connected func()
	Others    http.Handler // serves the other paths; nil = they do not exist
}

// Hook receives updates that Telegram delivers (Bot API setWebhook). Any number of processes may run one for the same
// bot: each receives what reaches it, and one of them registers the address, but only if it differs from what is
// registered.
type Hook struct {
	client *Client
	accept Accept
	store  HookStore
	log    zerolog.Logger
	opts   HookOptions

	told int64 // time of the last failed delivery that was logged
}

// NewHook returns a Hook.
func NewHook(client *Client, accept Accept, store HookStore, log zerolog.Logger, opts HookOptions) *Hook {
	opts.Secret = cmp.Or(opts.Secret, ownSecret(client.opts.Token))
	opts.Look, opts.Again = cmp.Or(opts.Look, time.Minute), cmp.Or(opts.Again, 5*time.Second)
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Hook{client: client, accept: accept, store: store, log: log, opts: opts}
}

// ownSecret returns a secret that every process can derive from the token, and nobody without it.
func ownSecret(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("webhook secret"))
	return hex.EncodeToString(mac.Sum(nil))
}

// Run receives updates from the listener, which it closes, and maintains the registration until ctx ends; then
// deliveries in progress may finish. The registration remains, so that Telegram keeps updates for the next process. If
// Telegram refuses the address or the token, Run returns an error.
func (h *Hook) Run(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: h.newHandler(), MaxHeaderBytes: hookHeaders,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute,
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			cancel(fmt.Errorf("webhook: %w", err))
		}
	})
	err := h.keepRegistered(ctx)
	end, done := context.WithTimeout(context.WithoutCancel(ctx), hookGrace)
	defer done()
	if server.Shutdown(end) != nil {
		_ = server.Close() // it is ending anyway; Telegram delivers again what was cut off
	}
	serving.Wait()
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// newHandler serves the path of the address, and nothing else but Others.
func (h *Hook) newHandler() http.Handler {
	path := "/"
	if u, err := url.Parse(h.opts.URL); err == nil {
		path = cmp.Or(u.Path, "/")
	}
	updates := Webhook{Secret: h.opts.Secret, Accept: h.accept, Log: h.log}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == path:
		case h.opts.Others != nil:
			h.opts.Others.ServeHTTP(w, r)
			return
		default:
			http.NotFound(w, r)
			return
		}
		updates.ServeHTTP(w, r)
	})
}

// keepRegistered checks the registration until ctx ends.
func (h *Hook) keepRegistered(ctx context.Context) error {
	connected, failures := false, 0
	for ctx.Err() == nil {
		registered, err := h.compareRegistration(ctx)
		wait := h.opts.Look
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			if final := finalRefusal(err); final != nil && !connected {
				return final
			}
			failures++
			wait = h.pauseAfter(err, failures)
		case !registered:
			wait = h.opts.Again
		default:
			if failures = 0; !connected && h.opts.Connected != nil {
				h.opts.Connected()
			}
			connected = true
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// finalRefusal returns an error that retrying does not mend, before the webhook was ever registered.
func finalRefusal(err error) error {
	refused, ok := errors.AsType[*apiError](err)
	if ok && refused.Code == http.StatusBadRequest {
		return fmt.Errorf("telegram refuses the webhook: %s; check telegram.webhook_url", refused.Text)
	}
	return hopelessError(refused, false)
}

// pauseAfter logs that the registration could not be checked or made, less often the longer it lasts, and returns how
// long to wait.
func (h *Hook) pauseAfter(err error, failures int) time.Duration {
	wait := h.opts.Again
	if refused, ok := errors.AsType[*apiError](err); ok {
		wait = max(wait, refused.RetryAfter)
	}
	if failures&(failures-1) == 0 {
		h.log.Warn().Err(err).Int("failures", failures).Dur("wait", wait).
			Msg("the webhook's registration is not certain; nothing is lost, telegram keeps updates for 24 hours")
	}
	return wait
}

// compareRegistration compares what Telegram has registered with what should be registered, and registers if it differs
// and no other process does. It reports whether the registration is correct.
func (h *Hook) compareRegistration(ctx context.Context) (bool, error) {
	info, err := h.client.hookInfo(ctx)
	if err != nil {
		return false, err
	}
	key, now := h.client.ID(), h.opts.Now()
	known, err := h.store.Fact(ctx, hookBucket, key, now)
	if err != nil {
		return false, fmt.Errorf("webhook: %w", err)
	}
	// Telegram returns everything but the secret, which is covered by the digest of what was registered last.
	if known == h.digestOf() && info.isFor(h.opts.URL) {
		h.logComplaints(info)
		return true, nil
	}
	applied, err := h.store.Apply(ctx, &bot.Change{
		FactsIf: []bot.Fact{{Bucket: setterBucket, Key: key, Value: h.opts.Owner, Expires: now.Add(setterLease)}},
	})
	if err != nil {
		return false, fmt.Errorf("webhook: %w", err)
	}
	if !applied.Set[0] {
		return false, nil
	}
	if info.URL != "" && info.URL != h.opts.URL {
		h.log.Warn().Str("host", hostOf(info.URL)).
			Msg("another webhook was set for this bot; it gets no updates any more")
	}
	if err := h.client.setHook(ctx, h.opts.URL, h.opts.Secret); err != nil {
		return false, errors.Join(err, h.storeFacts(ctx, bot.Fact{Bucket: setterBucket, Key: key}))
	}
	h.log.Info().Str("host", hostOf(h.opts.URL)).Msg("webhook registered")
	return true, h.storeFacts(ctx, bot.Fact{Bucket: hookBucket, Key: key, Value: h.digestOf()},
		bot.Fact{Bucket: setterBucket, Key: key})
}

func (h *Hook) storeFacts(ctx context.Context, facts ...bot.Fact) error {
	if _, err := h.store.Apply(ctx, &bot.Change{Facts: facts}); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}

// digestOf identifies a registration without revealing its secret.
func (h *Hook) digestOf() string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{h.opts.URL, h.opts.Secret}, AllowedUpdates()...), "\n")))
	return hex.EncodeToString(sum[:])
}

// logComplaints logs, once each, the errors that Telegram reports about deliveries.
func (h *Hook) logComplaints(info hookInfo) {
	if info.LastErrorDate <= h.told || info.LastError == "" {
		return
	}
	h.told = info.LastErrorDate
	at := time.Unix(info.LastErrorDate, 0).UTC()
	h.log.Warn().Str("error", info.LastError).Int("pending", info.Pending).Time("at", at).
		Msg("telegram could not deliver updates to the webhook; it tries again")
}

// hookInfo is the state of a webhook at Telegram (Bot API WebhookInfo).
type hookInfo struct {
	URL            string   `json:"url"`
	Pending        int      `json:"pending_update_count"`
	LastErrorDate  int64    `json:"last_error_date"`
	LastError      string   `json:"last_error_message"`
	Connections    int      `json:"max_connections"`
	AllowedUpdates []string `json:"allowed_updates"`
}

// isFor reports whether the registration is what setHook makes of this address.
func (i hookInfo) isFor(address string) bool {
	wanted, got := AllowedUpdates(), slices.Clone(i.AllowedUpdates)
	slices.Sort(wanted)
	slices.Sort(got)
	return i.URL == address && i.Connections == hookConnections && slices.Equal(wanted, got)
}

func (c *Client) hookInfo(ctx context.Context) (info hookInfo, err error) {
	err = c.postParams(ctx, c.sends, "getWebhookInfo", map[string]any{}, &info)
	info.LastError = c.hideToken(info.LastError)
	return info, err
}

func (c *Client) setHook(ctx context.Context, address, secret string) error {
	var done bool
	err := c.postParams(ctx, c.sends, "setWebhook", map[string]any{
		"url": address, "secret_token": secret, "max_connections": hookConnections, "allowed_updates": AllowedUpdates(),
	}, &done)
	if err != nil {
		return fmt.Errorf("setWebhook: %w", err)
	}
	return nil
}

// Unhook removes the webhook of a bot that polls (Bot API deleteWebhook), and the record of its registration. Waiting
// updates are kept.
func (c *Client) Unhook(ctx context.Context, store HookStore) error {
	var done bool
	if err := c.postParams(ctx, c.sends, "deleteWebhook", map[string]any{}, &done); err != nil {
		return fmt.Errorf("deleteWebhook: %w", err)
	}
	if _, err := store.Apply(ctx, &bot.Change{Facts: []bot.Fact{{Bucket: hookBucket, Key: c.ID()}}}); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}

// hostOf returns what may be logged of an address: its path may be a secret.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
