package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools/mcp"
)

// ChatOptions are the options of `zephbot chat`.
type ChatOptions struct {
	In       io.Reader
	Out, Err io.Writer
	Once     string // one message; "" = talk
	JSON     bool
	Ask      bool   // a person sits at the terminal
	Flush    func() // discards what was typed and not read yet; may be nil
	Language string
	// Interrupts subscribes to the person's Ctrl-C until give is called; nil = a Ctrl-C ends ctx. It is not called
	// before the conversation can begin.
	Interrupts func() (pressed <-chan struct{}, give func())
}

// ErrStopped means that the person ended the turn of --once. The end of the turn has said so.
var ErrStopped = errors.New("stopped by Ctrl-C")

// graceTerminal is how long the terminal waits for a turn at its end: a person who leaves in the middle of one has
// pressed Ctrl-C twice.
const graceTerminal = time.Second

// serversWait is how long the terminal waits for its MCP servers before the first message: nobody else has to wait
// here, and a model that is called once must see their tools.
const serversWait = 15 * time.Second

// awaitServers waits until the first connection attempt of every configured server is over, or for serversWait.
func (c *Core) awaitServers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, serversWait)
	defer cancel()
	if err := c.servers.Ready(ctx); err != nil {
		c.log.Warn().Msg("MCP servers are still connecting; their tools come later")
	}
}

// elicitor lets MCP servers ask the person at the terminal.
func elicitor(t *terminal.Terminal, warn bool) func(context.Context, mcp.Elicitation) (mcp.Answer, error) {
	return func(ctx context.Context, e mcp.Elicitation) (mcp.Answer, error) {
		r, err := t.Elicit(ctx, terminal.Request{Server: e.Server, Tool: e.Tool, Form: e.Form, Warn: warn})
		return mcp.Answer{Accept: r.Accept, Cancel: r.Cancel, Values: r.Values}, err
	}
}

// Chat runs the terminal channel. Its state is separate from the service's, so that both may run at once (see
// terminalHome).
func Chat(ctx context.Context, opts Options, chat ChatOptions) error {
	opts.Home, opts.Mode = terminalHome(opts), AuditChat
	opts.Zone = time.Local
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if err := ready(opts, Use{Model: true, Terminal: true}); err != nil {
		return err
	}
	moved, err := moveTerminal(opts)
	if err != nil {
		return err
	}
	if moved != "" {
		_, _ = fmt.Fprintln(chat.Err, "zephbot: "+moved) // no harm if nobody reads it
	}
	name := "main"
	if chat.Once != "" {
		name = "once-" + uuid.NewString()
	}
	t := terminal.New(terminal.Options{
		In: chat.In, Out: chat.Out, Err: chat.Err, JSON: chat.JSON, Ask: chat.Ask, Chat: name, Language: chat.Language, Flush: chat.Flush, Now: opts.Now,
	})
	if chat.Ask && !chat.JSON {
		opts.elicit = elicitor(t, opts.Config.MCP.ElicitationWarnFields)
	}
	c, err := OpenCore(ctx, opts)
	if err != nil {
		return err
	}
	s, err := newService(c, channel{
		name: terminal.Name, bot: terminal.BotID, decoders: map[bot.Source]bot.Decoder{bot.FromTerminal: bot.MessageDecoder{}}, composer: t, sender: opened{t, c.stores.Blobs}, showing: showing{watch: t.Watch}, guard: t, grace: graceTerminal, once: chat.Once != "",
		rights: func(context.Context, bot.Place, string) (approval.Rights, error) {
			return approval.Rights{Required: 1, Requester: chat.Ask}, nil
		},
		admins: func() []string { return nil },
	})
	if err != nil {
		return errors.Join(err, c.Close())
	}
	err = s.run(ctx, func(ctx context.Context) error {
		c.awaitServers(ctx)
		if chat.Interrupts != nil {
			pressed, give := chat.Interrupts()
			defer give()
			t.Interrupts(pressed)
		}
		if chat.Ask || chat.JSON { // a person reads along
			s.recap.Opened(ctx, t.Opening(), t.Session())
		}
		accept := func(ctx context.Context, raws []turn.Raw) error { return s.dispatcher.Accept(ctx, raws) }
		if chat.Once != "" {
			return t.Once(ctx, accept, chat.Once)
		}
		return t.Talk(ctx, accept)
	})
	return errors.Join(leave(err), c.Close())
}

// leave says in words of the command line how a conversation was left.
func leave(err error) error {
	switch {
	case errors.Is(err, terminal.ErrStopped):
		return ErrStopped
	case errors.Is(err, terminal.ErrLeft):
		return errors.New("left in the middle of a turn; the next start ends it")
	}
	return err
}

// opened is a terminal with access to the contents of files: it prints them.
type opened struct {
	bot.Sender
	files blob.Opener
}

// Send implements bot.Sender.
func (o opened) Send(ctx context.Context, row *bot.Row) (string, error) {
	if row.Purpose != bot.Question || row.Content.File == nil { // the command of a card; other files are only named
		return o.Sender.Send(ctx, row)
	}
	content, size, err := row.Content.File.Open(ctx, row.Session, o.files)
	if err != nil {
		return "", &bot.SendError{Outcome: bot.NotSent, Err: err}
	}
	data := make([]byte, size)
	_, err = io.ReadFull(content, data)
	if err = errors.Join(err, content.Close()); err != nil {
		return "", &bot.SendError{Outcome: bot.NotSent, Err: err}
	}
	shown, file := *row, *row.Content.File
	file.Data, shown.Content.File = data, &file
	return o.Sender.Send(ctx, &shown)
}
