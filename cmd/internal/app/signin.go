package app

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"github.com/zephbot/zephbot/bot/command"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/oauth"
)

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

// signIn is /mcp signin ID, and /mcp signin ID ADDRESS with the address at which the browser ended.
func (s servers) signIn(call *dispatch.Call, id string, target []string) error {
	in := s.service.core.signIns
	if !s.known(id) {
		return command.ErrNoServer
	}
	if in == nil || in.servers[id].ID == "" {
		return errors.New("it does not want a sign-in; oauth.enabled in its configuration turns that on")
	}
	if len(target) > 0 {
		if err := in.manager.Complete(id, target[0]); err != nil {
			return errors.New(sentence(err))
		}
		return nil
	}
	w, language := texts.Words{}, call.Message.Language
	in.mu.Lock()
	in.ask[id] = func(ctx context.Context, link string) error {
		s.service.tellLater(ctx, call, "link", w.SignIn(language, id, link))
		return nil
	}
	in.end[id] = func(err error) {
		// Not in this goroutine: restarting waits for the server.
		problem := s.service.beside(func(ctx context.Context) { s.signedIn(ctx, call, id, err) })
		if problem != nil {
			s.service.log.Info().Str("server", id).Msg("signed in while the service stops")
		}
	}
	in.mu.Unlock()
	if err := in.manager.Begin(id); err != nil {
		return errors.New(sentence(err))
	}
	return nil
}

// signedIn connects anew after a sign-in, and tells the chat how it went.
func (s servers) signedIn(ctx context.Context, call *dispatch.Call, id string, err error) {
	w, language := texts.Words{}, call.Message.Language
	if err != nil && !errors.Is(err, oauth.ErrNotStored) {
		s.service.tellLater(ctx, call, "end", w.ServerFailed(language, id, sentence(err)))
		return
	}
	st, err := s.client.Restart(ctx, id)
	text := w.ServerAdded(language, id, len(st.Tools))
	if err != nil {
		text = w.ServerFailed(language, id, sentence(err))
	}
	s.service.tellLater(ctx, call, "end", text)
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
