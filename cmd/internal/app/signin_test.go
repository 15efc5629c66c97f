package app_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

// guardedServer is an MCP server with one tool that wants a sign-in, and its authorization server, which says yes to
// everybody.
func guardedServer(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	answer := func(path string, v any) {
		mux.HandleFunc(path, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(rw).Encode(v) // a client that went away is seen by the test
		})
	}
	answer("GET /meta", map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}})
	answer("GET /.well-known/oauth-authorization-server", map[string]any{
		"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "response_types_supported": []string{"code"},
		"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
	})
	answer("POST /token", map[string]any{"access_token": "good", "token_type": "Bearer", "expires_in": 3600})
	mux.HandleFunc("/mcp", mcptest.Guarded(func() string { return s.URL + "/meta" }, "good"))
	return s
}

// link is the newest link that the bot has sent, which is not the one before.
func (w *world) link(before string) string {
	w.t.Helper()
	found := ""
	w.wait("a link", func(m telegramtest.Shown) bool {
		for line := range strings.Lines(m.Text) {
			if line = strings.TrimSpace(line); strings.Contains(line, "/authorize?") && line != before {
				found = line
			}
		}
		return found != ""
	})
	return found
}

// TestSignInOverARestart: a sign-in waits for a person while the service is restarted. It goes on with a new link,
// which connects the server; a restart after that asks for nothing more.
func TestSignInOverARestart(t *testing.T) {
	t.Parallel()
	server := guardedServer(t)
	w := begin(t, `on "": never`, app.Internet{})
	w.halt()
	w.opts.Config.MCP.Servers = []config.MCPServer{{
		ID: "guarded", URL: server.URL + "/mcp", Timeout: 30, TrustLevel: "trusted",
		OAuth: config.OAuth{Enabled: true, TokenStorage: "vault", ClientName: "zephbot", ClientID: "known"},
	}}
	w.serve()
	w.connects("guarded ·")
	w.say("/mcp signin guarded")
	first := w.link("")
	w.again()
	w.says("I was restarted, and the link that I sent before no longer works.", 1)
	second := w.link(first)
	u, err := url.Parse(second)
	if err != nil {
		t.Fatal(err)
	}
	back := u.Query().Get("redirect_uri") + "?" + url.Values{"code": {"c"}, "state": {u.Query().Get("state")}}.Encode()
	w.say("/mcp signin guarded " + back)
	w.says("guarded: connected, 1 tool.", 1)
	w.again()
	w.connects("guarded · connected · 1 tool")
	w.end()
	raw, err := os.ReadFile(filepath.Join(w.dir, "data", "audit.jsonl"))
	if n := strings.Count(string(raw), `"tool":"/mcp signin"`); err != nil || n != 2 || w.heard("I was restarted") != 1 {
		t.Errorf("%d audit lines, want one for the link and one for the address; %v\n%s", n, err, raw)
	}
}
