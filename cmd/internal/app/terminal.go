package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/cmd/internal/check"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/policy/source"
	"github.com/zephbot/zephbot/tools/mcp"
)

// ChatOptions are the options of `zephbot chat`.
type ChatOptions struct {
	In       io.Reader
	Out, Err io.Writer
	Once     string // one message; "" = talk
	// Wait is how long Once waits for a model that does not answer; 0 = a minute, and some
	// seconds if its server takes no connection. Talk waits as long as every channel.
	Wait     time.Duration
	JSON     bool
	Ask      bool   // a person sits at the terminal
	Screen   bool   // Out is a terminal
	Quiet    bool   // once the configuration has been checked, only errors are logged
	Flush    func() // discards what was typed and not read yet; may be nil
	Language string
	Note     string // is shown before the conversation begins; "" = nothing
	// Continue goes on with the newest conversation of the directory; Resume, if not nil, with the one of this name, ""
	// = one that the person chooses. Otherwise a new one begins.
	Continue bool
	Resume   *string
	Face     *Face // draws for a person; nil = line by line
	// Interrupts subscribes to the person's Ctrl-C until give is called; nil = a Ctrl-C ends ctx. It is not called
	// before the conversation can begin.
	Interrupts func() (pressed <-chan struct{}, give func())
}

// ErrStopped means that the person ended the turn of --once. The end of the turn has said so.
var ErrStopped = errors.New("stopped by Ctrl-C")

// ErrNoAnswer means that the message of --once got no answer. The reason has been shown.
var ErrNoAnswer = errors.New("no answer")

// onceWait is how long a single message waits for a model that does not answer: what called the program waits too.
const onceWait = time.Minute

// onceUnreached is how long it waits for a server that takes no connection: a name that is wrong stays wrong, and a
// network that is just coming up takes a few seconds.
const onceUnreached = 8 * time.Second

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
func elicitor(t person, warn bool) func(context.Context, mcp.Elicitation) (mcp.Answer, error) {
	return func(ctx context.Context, e mcp.Elicitation) (mcp.Answer, error) {
		r, err := t.Elicit(ctx, terminal.Request{Server: e.Server, Tool: e.Tool, Form: e.Form, Warn: warn})
		return mcp.Answer{Accept: r.Accept, Cancel: r.Cancel, Values: r.Values}, err
	}
}

// Face is the terminal of a person.
type Face struct {
	Open   func() (console terminal.Console, restore func(), err error)
	Colour bool
	Aside  *terminal.LogWriter // where the log goes
}

// person is the channel as it talks with a person: line by line, or with a Face.
type person interface {
	bot.Sender
	bot.Composer
	turn.Guard
	shows
	talker
}

// shows is what a person sees besides answers.
type shows interface {
	Watch(w turn.Watched) turn.Progress
	Elicit(ctx context.Context, req terminal.Request) (terminal.Reply, error)
	Recall(said, answer string)
}

// talker holds a conversation.
type talker interface {
	placed
	Interrupts(pressed <-chan struct{})
	Once(ctx context.Context, accept terminal.Accept, text string) error
	Talk(ctx context.Context, accept terminal.Accept) error
}

// placed is in a conversation.
type placed interface {
	Enter(chat string)
	Session() bot.SessionKey
	Opening() *bot.Message
}

// Chat runs the terminal channel. Its state is separate from the service's, so that both may run at once (see
// layout.Terminal).
func Chat(ctx context.Context, opts Options, chat ChatOptions) error {
	opts.Home, opts.Mode = opts.Layout().Terminal(), layout.Chat
	opts.Zone = time.Local
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if err := Ready(opts, check.Use{Model: true, Terminal: true}); err != nil {
		return err
	}
	if chat.Quiet {
		opts.Log = opts.Log.Level(zerolog.ErrorLevel)
	}
	moved, err := opts.Layout().MoveTerminal()
	if err != nil {
		return err
	}
	if moved != "" {
		_, _ = fmt.Fprintln(chat.Err, "zephbot: "+moved) // no harm if nobody reads it
	}
	o := terminal.Options{
		In:       chat.In,
		Out:      chat.Out,
		Err:      chat.Err,
		JSON:     chat.JSON,
		Ask:      chat.Ask,
		Screen:   chat.Screen,
		Single:   chat.Once != "",
		Chat:     terminal.NewName(),
		Language: chat.Language,
		Choices:  texts.Words{}.Terminal(chat.Language).Choices,
		Answer:   texts.Words{}.Terminal(chat.Language).Answer,
		Flush:    chat.Flush,
		Dir:      opts.WorkDir,
		Now:      opts.Now,
	}
	if chat.Once != "" {
		o.Chat = terminal.OnceName()
	}
	s := &sitting{chat: chat}
	o.Unanswered = s.unanswered
	s.plain = terminal.New(o)
	s.person = s.plain
	if chat.Face != nil && chat.Once == "" && !chat.JSON {
		s.seen = &changes{made: map[string]terminal.Change{}}
		opts.noting = s.seen
		s.rich = s.face(o, opts)
		s.person = s.rich
	}
	if chat.Ask && !chat.JSON {
		opts.elicit = elicitor(s.person, opts.Config.MCP.ElicitationWarnFields)
	}
	if s.core, err = OpenCore(ctx, opts); err != nil {
		return err
	}
	attached := &terminal.Attached{
		Dir:    opts.WorkDir,
		Redact: s.core.redactor.String,
		Wrap:   func(from source.Source, text string) (string, []string) { return s.core.stages.marker.Wrap(from, text) },
	}
	s.service, err = newService(s.core, channel{
		incoming: incoming{files: attached, receive: attached.Receive},
		name:     terminal.Name,
		bot:      terminal.BotID,
		decoders: map[bot.Source]bot.Decoder{bot.FromTerminal: bot.MessageDecoder{}},
		composer: s.person,
		sender:   opened{s.person, s.core.stores.Blobs},
		showing:  showing{watch: s.person.Watch},
		guard:    s.person,
		grace:    graceTerminal,
		once:     chat.Once != "",
		silent:   !chat.Ask,
		patience: chat.patience(),

		unreached: chat.unreached(),
		rights: func(context.Context, bot.Place, string) (approval.Rights, error) {
			r := approval.Rights{Required: 1, Requester: chat.Ask}
			if chat.Ask { // who sits here can change the configuration
				r.Admins = []string{s.person.Opening().Caller}
			}
			return r, nil
		},
		admins: func() []string { return nil },
	})
	if err == nil {
		err = s.endLeft(ctx)
	}
	if err != nil {
		return errors.Join(err, s.core.Close())
	}
	err = s.service.run(ctx, s.talk)
	return errors.Join(leave(err), s.core.Close())
}

// patience returns how long a model may be unavailable; 0 = as in every channel.
func (o ChatOptions) patience() time.Duration {
	if o.Once == "" {
		return 0
	}
	return cmp.Or(o.Wait, onceWait)
}

// unreached returns how long a model's server may take no connection; 0 = as long as it may be unavailable.
func (o ChatOptions) unreached() time.Duration {
	if o.Once == "" || o.Wait > 0 {
		return 0
	}
	return onceUnreached
}

// leave says in words of the command line how a conversation was left.
func leave(err error) error {
	switch {
	case errors.Is(err, terminal.ErrStopped):
		return ErrStopped
	case errors.Is(err, terminal.ErrNoAnswer):
		return ErrNoAnswer
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
