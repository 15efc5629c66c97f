package app

import (
	"context"
	"errors"

	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/servers"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/oauth"
)

// openSignIns prepares the servers with oauth.enabled; nil if there are none.
func (c *Core) openSignIns(o *mcp.Options) (*servers.SignIns, error) {
	list := map[string]oauth.Server{}
	files := oauth.NewFiles(c.opts.Layout().Tokens()) // shared by the service and `zephbot mcp signin`
	for _, server := range c.cfg.MCP.Servers {
		if server.OAuth.Enabled {
			list[server.ID] = signinConfig(server, files, o)
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	options := oauth.Options{Now: c.now, Log: c.log.With().Str("component", "oauth").Logger()}
	if c.stores != nil && c.shared() {
		lock := facts.Lock{Store: c.stores.Bot, Keeper: c.keeper(), Owner: c.owner, Now: c.now}
		options.Alone = func(ctx context.Context, server string) (func(), error) {
			return lock.Hold(ctx, "renew/"+server)
		}
	}
	s, err := servers.NewSignIns(list, options)
	if err != nil {
		return nil, err
	}
	s.Attach(o)
	return s, nil
}

func signinConfig(s config.MCPServer, files *oauth.Files, o *mcp.Options) oauth.Server {
	out := oauth.Server{
		ID:           s.ID,
		URL:          s.URL,
		Trusted:      s.TrustLevel == "trusted",
		Scopes:       s.OAuth.Scopes,
		CallbackPort: s.OAuth.CallbackPort,
		ClientName:   s.OAuth.ClientName,
		ClientID:     s.OAuth.ClientID,
		ClientSecret: oauth.Secret(s.OAuth.ClientSecret.Reveal()),
	}
	out.Transport = o.Transport(out.Named())
	if s.OAuth.TokenStorage != "memory" {
		out.Store = files
	}
	return out
}

// SignIn signs in to a configured server at the terminal: show receives the link, and pasted returns the address that
// the browser was redirected to, if it cannot reach this machine.
func (b *Bench) SignIn(
	ctx context.Context, id string, show func(link string) error, pasted func(ctx context.Context) (string, error),
) error {
	in := b.core.signIns
	if in == nil || !in.Wanted(id) {
		return errors.Join(config.ErrInvalid, errors.New("the server "+id+" is not configured with oauth.enabled"))
	}
	return in.Once(ctx, id, show, pasted)
}
