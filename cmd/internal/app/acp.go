package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/acp"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/cmd/internal/check"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/file"
	"github.com/zephbot/zephbot/tools/shell"
)

// ACPOptions are the options of `zephbot acp`.
type ACPOptions struct {
	In       io.Reader
	Out      io.Writer // only the protocol is written to it
	Language string
	Timeout  time.Duration // of a command in the editor's terminal, for tests; 0 = the documented one
}

// ACP speaks with an editor until it closes its end. Each directory in which it opens sessions has a state of its own
// (see layout.Editor), so that several editors can run at once.
func ACP(ctx context.Context, opts Options, o ACPOptions) error {
	opts.Mode, opts.Zone = layout.ACP, time.Local
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if err := Ready(opts, check.Use{Model: true, Terminal: true}); err != nil {
		return err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	h := &editor{opts: opts, life: life, language: o.Language}
	err := acp.Serve(ctx, acp.Options{
		In:       o.In,
		Out:      o.Out,
		Version:  opts.Version,
		Caller:   localUser(),
		Language: o.Language,
		Open:     h.open,
		Timeout:  o.Timeout,
		Now:      opts.Now,
		Log:      opts.Log.With().Str("component", "acp").Logger(),
	})
	end()
	h.running.Wait()
	return errors.Join(err, h.failed)
}

// localUser returns the name of the account, for the caller id.
func localUser() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return "local"
	}
	return strings.Map(func(r rune) rune {
		if r == '/' || r == ':' || r == '\\' || r < ' ' {
			return '_'
		}
		return r
	}, u.Username)
}

// editor holds the services of the directories in which an editor has sessions.
type editor struct {
	opts     Options
	language string
	life     context.Context //nolint:containedctx // of all services: it ends with the process
	running  sync.WaitGroup

	mu     sync.Mutex
	failed error
}

// open starts the service of a directory (acp.Options.Open).
func (e *editor) open(ctx context.Context, dir string, p *acp.Project) (acp.Backend, error) {
	opts := e.opts
	opts.WorkDir, opts.elicit, opts.level = dir, p.Elicit, p.Level
	c, err := e.core(opts)
	if err != nil {
		return acp.Backend{}, err
	}
	s, err := newService(c, channel{
		name:     acp.Name,
		bot:      acp.BotID,
		decoders: map[bot.Source]bot.Decoder{bot.FromACP: bot.MessageDecoder{}},
		composer: p,
		sender:   p,
		showing:  showing{watch: p.Watch, calls: p.Executor},
		guard:    p,
		grace:    graceTerminal,
		incoming: incoming{
			files:   p,
			receive: func(next turn.Attachments) turn.Attachments { return p.Receive(next, c.stages.marker.Wrap) },
		},
		rights: func(context.Context, bot.Place, string) (approval.Rights, error) {
			return approval.Rights{Required: 1, Requester: true}, nil
		},
		admins: func() []string { return nil },
	})
	var left map[bot.SessionKey]bool
	if err == nil {
		left, err = c.endTurns(e.life, acp.Name, acp.BotID, nil)
	}
	if err != nil {
		return acp.Backend{}, errors.Join(err, c.Close())
	}
	started, ended := make(chan struct{}), make(chan error, 1)
	e.running.Go(func() {
		err := s.run(e.life, func(ctx context.Context) error {
			close(started)
			<-ctx.Done()
			return nil
		})
		err = errors.Join(err, c.Close())
		ended <- err
		e.mu.Lock()
		defer e.mu.Unlock()
		e.failed = errors.Join(e.failed, err)
	})
	select {
	case <-started:
	case err := <-ended:
		return acp.Backend{}, errors.Join(errors.New("the service of the directory did not start"), err)
	}
	c.awaitServers(ctx)
	c.awaitEnds(ctx, left)
	return e.backend(c, s), nil
}

// backend is what the channel needs of a running service.
func (e *editor) backend(c *Core, s *service) acp.Backend {
	type read = func(ctx context.Context, path string) (string, error)
	type write = func(ctx context.Context, path, text string) error
	return acp.Backend{
		Store:    c.stores.Bot,
		Blobs:    c.stores.Blobs,
		Tools:    c.registry,
		Servers:  c.servers,
		Redact:   c.redactor.String,
		Bare:     chain.StripMarks,
		Accept:   s.dispatcher.Accept,
		Held:     c.cfg.Tools.Shell.Sandbox == shell.SandboxRequired,
		Commands: e.commands(s),
		Usage: func(ctx context.Context, session bot.SessionKey) (acp.Usage, error) {
			used, err := c.consumptionOf(ctx, session)
			return acp.Usage{Used: used.tokens, Size: used.room, USD: used.usd}, err
		},
		Through: func(r read, w write) ([]tools.Tool, error) {
			o := c.fileOptions(c.kit)
			o.ReadText, o.WriteText = r, w
			return file.Through(o)
		},
	}
}

// commands lists what a prompt can begin with.
func (e *editor) commands(s *service) []acp.Command {
	var list []acp.Command
	for _, c := range s.ownerMenu(e.language) {
		list = append(list, acp.Command(c))
	}
	return list
}

// maxEditors is how many processes may have sessions in one directory at the same time.
const maxEditors = 8

// core opens the state of a directory. If another process uses it, the next one is tried: each has its own sessions.
func (e *editor) core(opts Options) (*Core, error) {
	for n := 1; n <= maxEditors; n++ {
		opts.Home = opts.Layout().Editor(opts.WorkDir, n)
		c, err := OpenCore(e.life, opts)
		if err == nil || !errors.Is(err, sql.ErrLocked) {
			return c, err
		}
	}
	return nil, fmt.Errorf(
		"%d processes of zephbot acp work in %s already: close an editor first", maxEditors, opts.WorkDir,
	)
}

// own reports whether the tools of a channel work in a directory of the person's own, where other programs change files
// too.
func own(channel string) bool { return channel == terminal.Name || channel == acp.Name }
