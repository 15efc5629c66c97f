package servers

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/oauth"
)

// beginPause is the delay before a sign-in that came too early is begun again.
const beginPause = 50 * time.Millisecond

// SignIns lets people sign in to MCP servers that require it. Safe for concurrent use.
type SignIns struct {
	manager *oauth.Manager
	servers map[string]oauth.Server

	mu  sync.Mutex
	ask map[string]func(ctx context.Context, link string) error // by server: receives the link
	end map[string]func(err error)                              // by server: receives the result
}

// NewSignIns returns the SignIns of these servers. It sets Ask and Done of the options itself.
func NewSignIns(list map[string]oauth.Server, o oauth.Options) (*SignIns, error) {
	s := &SignIns{servers: list, ask: map[string]func(context.Context, string) error{}, end: map[string]func(error){}}
	o.Ask, o.Done = s.showLink, s.endSignIn
	var err error
	s.manager, err = oauth.New(o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Attach makes the client of the servers use the sign-ins.
func (s *SignIns) Attach(o *mcp.Options) {
	o.OAuth = s.manager.Hook(func(id string) (oauth.Server, bool) {
		server, ok := s.servers[id]
		return server, ok
	})
}

// Run runs the sign-ins that wait for a person until ctx ends.
func (s *SignIns) Run(ctx context.Context) error { return s.manager.Run(ctx) }

// Wanted reports whether a server requires a sign-in.
func (s *SignIns) Wanted(id string) bool { return s.servers[id].ID != "" }

// showLink implements oauth.Options.Ask.
func (s *SignIns) showLink(ctx context.Context, server, link string) error {
	s.mu.Lock()
	ask := s.ask[server]
	s.mu.Unlock()
	if ask == nil {
		return reason.Err(reason.SignInUnasked)
	}
	return ask(ctx, link)
}

// endSignIn implements oauth.Options.Done.
func (s *SignIns) endSignIn(server string, err error) {
	s.mu.Lock()
	end := s.end[server]
	s.mu.Unlock()
	if end != nil {
		end(err)
	}
}

// maySignIn returns why nobody can sign in to a server now; nil = somebody can.
func (d *Handler) maySignIn(id string) error {
	in := d.deps.SignIns
	if in == nil || !in.Wanted(id) {
		return reason.Err(reason.SignInUnwanted)
	}
	if st, ok := in.manager.Status(id); ok && st.State == oauth.Waiting {
		return waitingAlready(id)
	}
	return nil
}

// mayBegin says why nobody can begin a sign-in to a server now, in whatever process another one waits.
func (d *Handler) mayBegin(ctx context.Context, id string) error {
	if err := d.maySignIn(id); err != nil {
		return err
	}
	if elsewhere, err := d.signingInElsewhere(ctx, id); err != nil || len(elsewhere) > 0 {
		return cmp.Or(err, waitingAlready(id))
	}
	return nil
}

// waitingAlready is why a sign-in does not begin while another one waits.
func waitingAlready(id string) error {
	return reason.Err(reason.SignInWaits, id)
}

// signIn runs /mcp signin ID: it begins a sign-in, which shows the link and reports its result. A sign-in that waits
// for a person ends with the process, because its listener and its secrets do; the next start, or another process,
// begins it again and says that the link has changed. waits reports whether it waits for a person.
func (d *Handler) signIn(ctx context.Context, j Job) (waits bool) {
	w, language := d.deps.Words, j.Message.Language
	again := d.wasInterrupted(j)
	if again {
		st, _ := d.statusOf(j.ID)
		switch err := d.maySignIn(j.ID); {
		case st.State == mcp.Connected: // the sign-in succeeded before that could be reported
			d.finishJob(ctx, j, w.ServerAdded(language, j.ID, len(st.Tools)), nil)
			return false
		case err == nil && d.isTooLate(j):
			err = errors.New(w.Late(language))
			fallthrough
		case err != nil:
			d.finishJob(ctx, j, w.ServerFailed(language, j.ID, reason.OfError(err)), nil)
			return false
		}
	}
	err := d.deps.SignIns.beginSignIn(ctx, j.ID, func(ctx context.Context, link string) error {
		text := w.SignIn(language, j.ID, link)
		if again {
			text = w.SignInAgain(language) + "\n" + text
		}
		d.tellLater(ctx, j.call(), "link-"+d.deps.Owner, text)
		return nil
	}, func(err error) {
		// Not in this goroutine: restarting waits for the server.
		if d.startBeside(func(ctx context.Context) { d.signedIn(ctx, j, err) }) != nil {
			d.deps.Log.Info().Str("server", j.ID).
				Msg("a sign-in waits while the service stops; the next start goes on with it")
		}
	})
	if err != nil && ctx.Err() == nil {
		d.finishJob(ctx, j, w.ServerFailed(language, j.ID, errorSentence(err)), nil)
	}
	return err == nil
}

// beginSignIn begins a sign-in; ask receives its link, and end its result.
func (s *SignIns) beginSignIn(
	ctx context.Context, id string, ask func(ctx context.Context, link string) error, end func(error),
) error {
	for {
		s.mu.Lock()
		err := s.manager.Begin(id)
		if err == nil {
			s.ask[id], s.end[id] = ask, end // nobody calls them before the lock is free
		}
		s.mu.Unlock()
		if !errors.Is(err, oauth.ErrNotRunning) {
			return err
		}
		timer := time.NewTimer(beginPause)
		select { // at startup, commands may arrive before the sign-ins are ready
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

// signedIn reconnects after a sign-in, and tells the chat the result.
func (d *Handler) signedIn(ctx context.Context, j Job, err error) {
	defer d.endJob(j.Message.ID)
	w, language := d.deps.Words, j.Message.Language
	if err != nil && !errors.Is(err, oauth.ErrNotStored) {
		if ctx.Err() == nil {
			d.finishJob(ctx, j, w.ServerFailed(language, j.ID, errorSentence(err)), nil)
		}
		return
	}
	st, err := d.deps.Client.Restart(ctx, j.ID)
	if err != nil && ctx.Err() != nil {
		return
	}
	d.finishJob(ctx, j, d.outcomeText(j, w.ServerAdded(language, j.ID, len(st.Tools)), err), nil)
}

// Once signs in to a server that requires it, without Run, for a command line: show receives the link, and pasted
// returns the address that the browser was redirected to, if it cannot reach this machine.
func (s *SignIns) Once(
	ctx context.Context, id string, show func(link string) error, pasted func(ctx context.Context) (string, error),
) error {
	if _, err := s.manager.Handler(s.servers[id]); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var reading sync.WaitGroup
	defer reading.Wait()
	s.ask[id] = func(_ context.Context, link string) error {
		reading.Go(func() {
			for ctx.Err() == nil {
				address, err := pasted(ctx)
				if err != nil || s.manager.Complete(id, address) == nil {
					return
				}
			}
		})
		return show(link)
	}
	err := s.manager.SignIn(ctx, id)
	cancel()
	return err
}
