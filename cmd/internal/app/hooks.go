package app

import (
	"context"
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
		list[i].Place, list[i].Owner = c.placeOf(s.ch.bot, h.Owner, h.Chat)
	}
	s.hooks = hook.New(hook.Deps{
		Channel:   s.ch.name,
		Bot:       s.ch.bot,
		Store:     store,
		Engine:    engine{s},
		Outbox:    outlets{s},
		Guard:     s.ch.guard,
		Gone:      s.ch.gone,
		Words:     c.words(),
		Operators: s.operators,
		Current:   c.moves.Current,
		Language:  c.own.Language,
		Observe:   c.metrics.HookCall,
		Now:       c.storeNow,
		Log:       c.log.With().Str("component", "hooks").Logger(),
	}, hook.Options{
		MaxBody: c.cfg.Triggers.MaxBodyBytes, PerMinute: c.cfg.Triggers.PerMinute, Config: list,
	})
	return nil
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
	c.log.Info().Str("hooks", "http://"+listener.Addr().String()+hook.Path).Msg("start")
	return func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceHTTP)
		defer cancel()
		if err := server.Shutdown(end); err != nil {
			_ = server.Close() // it is ending anyway
		}
		wg.Wait()
	}, nil
}
