package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/hook"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// Limits of the listener of the hooks. What calls it is a program that sends at once.
const (
	callTimeout     = 20 * time.Second
	callIdle        = time.Minute
	callHeaderBytes = 16 << 10
	keyTimeout      = 30 * time.Second
)

// openHooks makes the hooks of a channel that delivers at any time.
func (s *service) openHooks(store bot.Store) error {
	c := s.core
	if s.ch.name != telegram.Name || c.cfg.Triggers.Listen == "" {
		return nil
	}
	list := make([]hook.Config, len(c.cfg.Hooks))
	for i := range c.cfg.Hooks {
		h := &c.cfg.Hooks[i]
		prompt, err := hook.ParsePrompt(h.Prompt)
		if err != nil {
			return fmt.Errorf("%w: hooks[%d].prompt: %w", config.ErrInvalid, i, err)
		}
		list[i] = hook.Config{Name: h.Name, Secret: h.Secret.Reveal(), Prompt: prompt}
		for _, text := range h.When {
			when, err := hook.ParseCondition(text)
			if err != nil {
				return fmt.Errorf("%w: hooks[%d].when: %w", config.ErrInvalid, i, err)
			}
			list[i].When = append(list[i].When, when)
		}
		list[i].Place, list[i].Owner = c.placeOf(s.ch.bot, h.Owner, h.Chat)
	}
	key, err := c.hookKey()
	if err != nil {
		return err
	}
	s.hooks = hook.New(hook.Deps{
		Channel:     s.ch.name,
		Bot:         s.ch.bot,
		Store:       offeringStore{store, s},
		Engine:      engine{s},
		Outbox:      outlets{s},
		Guard:       s.ch.guard,
		Gone:        s.ch.gone,
		Words:       c.words(),
		Operators:   s.operators,
		Current:     c.moves.Current,
		Language:    c.own.Language,
		Names:       s.ch.names,
		FollowNames: s.ch.follow,
		Private:     func(person string) bot.Place { return telegram.Private(s.ch.bot, person) },
		URL:         c.callsURL,
		Key:         key,
		Audit:       c.commandAudit(),
		Observe:     c.metrics.HookCall,
		Now:         c.storeNow,
		Log:         c.log.With().Str("component", "hooks").Logger(),
	}, hook.Options{
		MaxBody: c.cfg.Triggers.MaxBodyBytes, PerMinute: c.cfg.Triggers.PerMinute, Config: list,
	})
	return nil
}

// hookKey is the key of the secrets of hooks that are made in chats. It is generated once and stored, the same for every
// process.
func (c *Core) hookKey() ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), keyTimeout)
	defer cancel()
	stored, err := c.bucket(secretBucket).Once(ctx, "hooks", rand.Text()+rand.Text())
	if err != nil {
		return nil, fmt.Errorf("key of the hooks: %w", err)
	}
	return []byte(stored), nil
}

// callsURL returns what leads to the address at which hooks are called. At a port that is chosen at the
// start, as in the simulator, that is the listener itself.
func (c *Core) callsURL() string {
	if c.cfg.Triggers.URL == "" || strings.HasSuffix(c.cfg.Triggers.Listen, ":0") {
		return c.callsAt.get()
	}
	return c.cfg.Triggers.URL
}

// callsAddress is where hooks are called, once that is known.
type callsAddress struct{ at atomic.Pointer[string] }

func (a *callsAddress) get() string {
	if at := a.at.Load(); at != nil {
		return *at
	}
	return ""
}

// sharesListener reports whether hooks are called at the address at which Telegram delivers.
func (c *Core) sharesListener() bool {
	t := c.cfg.Telegram
	return t.WebhookURL != "" && t.WebhookListen == c.cfg.Triggers.Listen
}

// callsOf serves the hooks of a service, once there is one.
func callsOf(serving *atomic.Pointer[service]) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := serving.Load()
		switch {
		case !strings.HasPrefix(r.URL.EscapedPath(), hook.Path):
			http.NotFound(w, r)
		case s == nil || s.hooks == nil:
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		default:
			s.hooks.ServeHTTP(w, r)
		}
	})
}

// serveHooks accepts calls of hooks until stop is called, unless they come to the listener of the webhook.
func (c *Core) serveHooks(ctx context.Context, serving *atomic.Pointer[service]) (stop func(), err error) {
	at := c.cfg.Triggers.Listen
	if at == "" || c.sharesListener() {
		return func() {}, nil
	}
	listener, err := c.listen(ctx, "triggers.listen", at)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler: callsOf(serving), MaxHeaderBytes: callHeaderBytes,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: callTimeout, WriteTimeout: 2 * callTimeout, IdleTimeout: callIdle,
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			c.log.Error().Err(err).Msg("the server of the hooks ended")
		}
	})
	c.callsAt.at.Store(new("http://" + listener.Addr().String()))
	c.log.Info().Str("hooks", c.callsAt.get()+hook.Path).Msg("start")
	return func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceHTTP)
		defer cancel()
		if err := server.Shutdown(end); err != nil {
			_ = server.Close() // it is ending anyway
		}
		wg.Wait()
	}, nil
}
