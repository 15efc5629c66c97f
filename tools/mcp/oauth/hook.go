package oauth

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/zephbot/zephbot/tools/mcp"
)

// Hook returns the function for mcp.Options.OAuth. find returns how to sign in to the server with a given id.
func (m *Manager) Hook(find func(id string) (Server, bool)) func(mcp.Server) (auth.OAuthHandler, error) {
	return func(s mcp.Server) (auth.OAuthHandler, error) {
		server, ok := find(s.ID)
		if !ok {
			return nil, fmt.Errorf("server %s: nothing is configured about signing in", s.ID)
		}
		return m.Handler(server)
	}
}
