package app

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot/command"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/oauth"
)

// beginPause is the wait before a sign-in is begun again that came before its time.
const beginPause = 50 * time.Millisecond

// signIns lets people sign in to MCP servers that want it.
type signIns struct {
	manager *oauth.Manager
	servers map[string]oauth.Server

	mu  sync.Mutex
	ask map[string]func(ctx context.Context, link string) error // by server: who is shown the link
	end map[string]func(err error)                              // by server: who is told how it ended
}

// openSignIns prepares the servers with oauth.enabled; nil where there are none.
func (c *Core) openSignIns(o *mcp.Options) (*signIns, error) {
	s := &signIns{servers: map[string]oauth.Server{}, ask: map[string]func(context.Context, string) error{}, end: map[string]func(error){}}
	files := oauth.NewFiles(filepath.Join(c.cfg.Path(c.cfg.DataDir), "mcp-tokens")) // shared by the service and `zephbot mcp signin`
	for _, server := range c.cfg.MCP.Servers {
		if server.OAuth.Enabled {
			s.servers[server.ID] = signinConfig(server, files, o)
		}
	}
	if len(s.servers) == 0 {
		return nil, nil
	}
	var err error
	s.manager, err = oauth.New(oauth.Options{Ask: s.show, Done: s.ended, Now: c.now, Log: c.log.With().Str("component", "oauth").Logger()})
	if err != nil {
		return nil, err
	}
	o.OAuth = s.manager.Hook(func(id string) (oauth.Server, bool) {
		server, ok := s.servers[id]
		return server, ok
	})
	return s, nil
}

func signinConfig(s config.MCPServer, files *oauth.Files, o *mcp.Options) oauth.Server {
	trusted := s.TrustLevel == "trusted"
	out := oauth.Server{
		ID: s.ID, URL: s.URL, Trusted: trusted, Scopes: s.OAuth.Scopes, CallbackPort: s.OAuth.CallbackPort, ClientName: s.OAuth.ClientName, ClientID: s.OAuth.ClientID,
		ClientSecret: oauth.Secret(s.OAuth.ClientSecret.Reveal()), Transport: o.Transport(trusted),
	}
	if s.OAuth.TokenStorage != "memory" {
		out.Store = files
	}
	return out
}

// show implements oauth.Options.Ask.
func (s *signIns) show(ctx context.Context, server, link string) error {
	s.mu.Lock()
	ask := s.ask[server]
	s.mu.Unlock()
	if ask == nil {
		return errors.New("nobody began this sign-in")
	}
	return ask(ctx, link)
}

// ended implements oauth.Options.Done.
func (s *signIns) ended(server string, err error) {
	s.mu.Lock()
	end := s.end[server]
	s.mu.Unlock()
	if end != nil {
		end(err)
	}
}

// maySignIn says why nobody can sign in to a server now; nil = somebody can.
func (s servers) maySignIn(id string) error {
	in := s.service.core.signIns
	if in == nil || in.servers[id].ID == "" {
		return errors.New("it does not want a sign-in; oauth.enabled in its configuration turns that on")
	}
	if st, ok := in.manager.Status(id); ok && st.State == oauth.Waiting {
		return errors.New("a sign-in to " + id + " is waiting already; open the link that was sent")
	}
	return nil
}

// signedInAt is /mcp signin ID ADDRESS, with the address at which the browser ended.
func (s servers) signedInAt(id, address string) error {
	in := s.service.core.signIns
	if !s.known(id) {
		return command.ErrNoServer
	}
	if in == nil {
		return s.maySignIn(id)
	}
	if err := in.manager.Complete(id, address); err != nil {
		return errors.New(sentence(err))
	}
	return nil
}

// signIn is /mcp signin ID: it begins a sign-in, which shows the link and says how it ended. What waits for a person ends with the process, since its listener
// and its secrets do; the next start begins it again and says that the link has changed.
func (s servers) signIn(ctx context.Context, j job) {
	w, language := s.service.core.words(), j.Message.Language
	again := s.interrupted(j)
	if again {
		st, _ := s.status(j.ID)
		switch err := s.maySignIn(j.ID); {
		case st.State == mcp.Connected: // it was signed in before that could be told
			s.finish(ctx, j, w.ServerAdded(language, j.ID, len(st.Tools)), nil)
			return
		case err == nil && s.late(j):
			err = errors.New(w.Late(language))
			fallthrough
		case err != nil:
			s.finish(ctx, j, w.ServerFailed(language, j.ID, err.Error()), nil)
			return
		}
	}
	err := s.service.core.signIns.begin(ctx, j.ID, func(ctx context.Context, link string) error {
		text := w.SignIn(language, j.ID, link)
		if again {
			text = w.SignInAgain(language) + "\n" + text
		}
		s.service.tellLater(ctx, j.call(), "link-"+s.service.core.owner, text)
		return nil
	}, func(err error) {
		// Not in this goroutine: restarting waits for the server.
		if s.service.beside(func(ctx context.Context) { s.signedIn(ctx, j, err) }) != nil {
			s.service.log.Info().Str("server", j.ID).Msg("a sign-in waits while the service stops; the next start goes on with it")
		}
	})
	if err != nil && ctx.Err() == nil {
		s.finish(ctx, j, w.ServerFailed(language, j.ID, sentence(err)), nil)
	}
}

// begin begins a sign-in whose link goes to ask, and whose end goes to end.
func (s *signIns) begin(ctx context.Context, id string, ask func(ctx context.Context, link string) error, end func(error)) error {
	for {
		s.mu.Lock()
		err := s.manager.Begin(id)
		if err == nil {
			s.ask[id], s.end[id] = ask, end // nobody asks for them before the lock is free
		}
		s.mu.Unlock()
		if !errors.Is(err, oauth.ErrNotRunning) {
			return err
		}
		timer := time.NewTimer(beginPause)
		select { // at the start the commands may be faster than the sign-ins
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

// signedIn reconnects after a sign-in, and tells the chat how it went.
func (s servers) signedIn(ctx context.Context, j job, err error) {
	w, language := s.service.core.words(), j.Message.Language
	if err != nil && !errors.Is(err, oauth.ErrNotStored) {
		if ctx.Err() == nil {
			s.finish(ctx, j, w.ServerFailed(language, j.ID, sentence(err)), nil)
		}
		return
	}
	st, err := s.client.Restart(ctx, j.ID)
	if err != nil && ctx.Err() != nil {
		return
	}
	s.finish(ctx, j, s.outcome(j, w.ServerAdded(language, j.ID, len(st.Tools)), err), nil)
}

// SignIn signs in to a configured server at the terminal: show gets the link, and pasted gives the address at which the browser ended, if it cannot reach
// this machine.
func (b *Bench) SignIn(ctx context.Context, id string, show func(link string) error, pasted func(ctx context.Context) (string, error)) error {
	in := b.core.signIns
	if in == nil || in.servers[id].ID == "" {
		return errors.Join(ErrConfig, errors.New("the server "+id+" is not configured with oauth.enabled"))
	}
	if _, err := in.manager.Handler(in.servers[id]); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var reading sync.WaitGroup
	defer reading.Wait()
	in.ask[id] = func(_ context.Context, link string) error {
		reading.Go(func() {
			for ctx.Err() == nil {
				address, err := pasted(ctx)
				if err != nil || in.manager.Complete(id, address) == nil {
					return
				}
			}
		})
		return show(link)
	}
	err := in.manager.SignIn(ctx, id)
	cancel()
	return err
}
