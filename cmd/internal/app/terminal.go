package app

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/terminal"
)

// ChatOptions are what `zephbot chat` was told.
type ChatOptions struct {
	In       io.Reader
	Out, Err io.Writer
	Once     string // one message; "" = talk
	JSON     bool
	Ask      bool // a person sits at the terminal
	Language string
}

// Chat is the terminal channel. Its state lives below data_dir, apart from the service's, so that both may run at once.
func Chat(ctx context.Context, opts Options, chat ChatOptions) error {
	opts.Home = filepath.Join(opts.Config.Path(opts.Config.DataDir), "terminal")
	c, err := OpenCore(ctx, opts)
	if err != nil {
		return err
	}
	name := "main"
	if chat.Once != "" {
		name = "once-" + uuid.NewString()
	}
	t := terminal.New(terminal.Options{
		In: chat.In, Out: chat.Out, Err: chat.Err, JSON: chat.JSON, Ask: chat.Ask, Chat: name, Language: chat.Language, Now: c.now,
	})
	s := newService(c, channel{
		name: terminal.Name, bot: terminal.BotID, decoder: t, composer: t, sender: t, watch: t.Watch, guard: t,
		rights: func(bot.Place, string) approval.Rights { return approval.Rights{Required: 1, Requester: true} },
		admins: func() []string { return nil },
	})
	err = s.run(ctx, func(ctx context.Context) error {
		accept := func(ctx context.Context, raws []dispatch.Raw) error { return s.dispatcher.Accept(ctx, raws) }
		if chat.Once != "" {
			return t.Once(ctx, accept, chat.Once)
		}
		return t.Talk(ctx, accept)
	})
	return errors.Join(err, c.Close())
}
