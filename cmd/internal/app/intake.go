package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// resignWithin limits how long a process that ends tries to let another one poll at once.
const resignWithin = 2 * time.Second

// listen opens an address for incoming connections; key is the configuration key that sets it.
func (c *Core) listen(ctx context.Context, key, address string) (net.Listener, error) {
	open := c.opts.Listen
	if open == nil {
		open = func(ctx context.Context, address string) (net.Listener, error) {
			return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		}
	}
	listener, err := open(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", config.ErrInvalid, key, err)
	}
	return listener, nil
}

// intake is the source of updates, ready to run: a webhook if one is configured, else polling.
type intake struct {
	run   func(ctx context.Context, accept telegram.Accept) error
	words string // for the operator
	end   func() // closes one that never ran
}

// intake opens the source of updates. calls serves what else comes to the listener of a webhook, if that is shared.
func (c *Core) intake(ctx context.Context, client *telegram.Client, calls http.Handler) (intake, error) {
	t := c.cfg.Telegram
	if !c.sharesListener() {
		calls = nil
	}
	log := c.log.With().Str("component", "telegram").Logger()
	if t.WebhookURL == "" {
		return intake{
			words: "polling " + t.APIURL,
			end:   func() {},
			run: func(ctx context.Context, accept telegram.Accept) error {
				return c.polling(ctx, client, accept, log)
			},
		}, nil
	}
	listener, err := c.listen(ctx, "telegram.webhook_listen", t.WebhookListen)
	if err != nil {
		return intake{}, err
	}
	words := "webhook on " + listener.Addr().String()
	if u, err := url.Parse(t.WebhookURL); err == nil {
		words += " for " + u.Scheme + "://" + u.Host // the path may be a secret
	}
	return intake{
		words: words,
		end:   func() { _ = listener.Close() },
		run: func(ctx context.Context, accept telegram.Accept) error {
			return telegram.NewHook(client, accept, c.stores.Bot, log, telegram.HookOptions{
				URL: t.WebhookURL, Secret: t.WebhookSecret.Reveal(), Owner: c.owner, Now: c.now, Others: calls,
			}).Run(ctx, listener)
		},
	}, nil
}

// polling returns an intake that polls; of several processes that share, only the leader polls.
func (c *Core) polling(ctx context.Context, client *telegram.Client, accept telegram.Accept, log zerolog.Logger) error {
	opts := telegram.PollOptions{Unhook: func(ctx context.Context) error { return client.Unhook(ctx, c.stores.Bot) }}
	if !c.shared() {
		return telegram.NewPoller(client, accept, log, opts).Run(ctx)
	}
	leader := telegram.NewLeader(c.stores.Bot, client.ID(), c.owner, c.now)
	opts.Lead = leader.Lead
	err := telegram.NewPoller(client, accept, log, opts).Run(ctx)
	parting, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignWithin)
	defer cancel()
	if err := leader.Resign(parting); err != nil {
		log.Info().Err(err).Msg("another process will poll once this one counts as gone")
	}
	return err
}

// accepting passes updates to the dispatcher.
func accepting(d *dispatch.Dispatcher) telegram.Accept {
	return func(ctx context.Context, updates []telegram.Update) error {
		raws := make([]turn.Raw, len(updates))
		for i, u := range updates {
			raws[i] = turn.Raw{ID: strconv.FormatInt(u.ID, 10), Body: u.Raw}
		}
		return d.Accept(ctx, raws)
	}
}
