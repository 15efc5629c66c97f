package oauth_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools/mcp/guard"
	"github.com/zephbot/zephbot/tools/mcp/oauth"
)

func TestFailures(t *testing.T) {
	t.Parallel()
	nobody := func(context.Context, string, string) error { return nil }
	quick := func(o *oauth.Options) { o.Wait = time.Nanosecond }
	for name, c := range map[string]struct {
		world  func(*world)
		ask    func(context.Context, string, string) error
		option func(*oauth.Options)
		code   guard.Code
		text   string
		asked  bool // the token endpoint is
	}{
		"nobody":  {ask: nobody, option: quick, code: guard.AuthFailure, text: "nobody signed in in time"},
		"no chat": {ask: func(context.Context, string, string) error { return errors.New("no admin is there") }, code: guard.AuthFailure, text: "no admin is there"},
		"denied":  {world: func(w *world) { w.refuse = "access_denied" }, code: guard.AuthFailure, text: "access_denied"},
		"mix-up":  {world: func(w *world) { w.iss = "https://evil.example" }, code: guard.AuthFailure, text: "does not match expected issuer"},
		"no issuer": {
			world: func(w *world) { w.iss = "-" }, code: guard.AuthFailure, text: "none was received",
		},
		"foreign metadata": {
			world: func(w *world) { w.meta = func(m map[string]any) { m["issuer"] = "https://evil.example" } },
			code:  guard.AuthFailure, text: "does not match issuer URL",
		},
		"no PKCE": {
			world: func(w *world) { w.meta = func(m map[string]any) { delete(m, "code_challenge_methods_supported") } },
			code:  guard.AuthFailure, text: "PKCE",
		},
		"plain PKCE": {
			world: func(w *world) {
				w.meta = func(m map[string]any) { m["code_challenge_methods_supported"] = []string{"plain"} }
			},
			code: guard.AuthFailure, text: "PKCE with S256",
		},
		"dangerous link": {
			world: func(w *world) {
				w.meta = func(m map[string]any) { m["authorization_endpoint"] = "javascript:alert(1)" }
			},
			code: guard.AuthFailure, text: "scheme",
		},
		"no registration": {
			world: func(w *world) {
				w.register = func(rw http.ResponseWriter, _ *http.Request) {
					reply(rw, http.StatusBadRequest, map[string]string{"error": "access_denied"})
				}
			},
			code: guard.AuthFailure, text: "set oauth.client_id",
		},
		"unreadable registration": {
			world: func(w *world) {
				w.register = func(rw http.ResponseWriter, _ *http.Request) {
					reply(rw, http.StatusCreated, map[string]any{"client_id": 7, "client_secret": w.secret("odd")})
				}
			},
			code: guard.AuthFailure, text: "could not be read",
		},
		"used code": {
			world: func(w *world) {
				w.token = func(rw http.ResponseWriter, _ *http.Request) {
					reply(rw, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
				}
			},
			code: guard.AuthFailure, text: "invalid_grant", asked: true,
		},
		"broken token endpoint": {
			world: func(w *world) {
				w.token = func(rw http.ResponseWriter, _ *http.Request) {
					http.Error(rw, "oops "+w.secret("leaked"), http.StatusServiceUnavailable)
				}
			},
			code: guard.Transient, text: "503", asked: true,
		},
		"moved token endpoint": {
			world: func(w *world) {
				w.token = func(rw http.ResponseWriter, r *http.Request) {
					if r.URL.Query().Has("moved") {
						t.Error("the code travelled")
					}
					http.Redirect(rw, r, "/token?moved=1", http.StatusTemporaryRedirect)
				}
			},
			code: guard.AuthFailure, text: "307", asked: true,
		},
		"unreadable token": {
			world: func(w *world) {
				w.token = func(rw http.ResponseWriter, _ *http.Request) {
					reply(rw, http.StatusOK, map[string]any{"access_token": []string{w.secret("odd")}})
				}
			},
			code: guard.AuthFailure, text: "could not be read", asked: true,
		},
		"forbidden registration": {
			world: func(w *world) {
				w.register = func(rw http.ResponseWriter, _ *http.Request) {
					http.Error(rw, "no "+w.secret("odd"), http.StatusForbidden)
				}
			},
			code: guard.AuthFailure, text: "403 Forbidden: [redacted]",
		},
		"endless metadata": {
			world: func(w *world) { w.meta = func(m map[string]any) { m["x"] = strings.Repeat("x", 2<<20) } },
			code:  guard.AuthFailure, text: "longer than",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if c.world != nil {
				c.world(w)
			}
			ask, option := c.ask, c.option
			if ask == nil {
				ask = w.browse
			}
			if option == nil {
				option = func(*oauth.Options) {}
			}
			b := w.manager(ask, option)
			h := b.handler(t, w.server())
			err := b.SignIn(t.Context(), "docs")
			if err == nil || codeOf(t, err) != c.code || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("error = %v, want %s: …%s…", err, c.code, c.text)
			}
			for _, s := range w.secrets {
				if strings.Contains(err.Error(), s) {
					t.Errorf("the error shows a secret: %v", err)
				}
			}
			if got := len(w.asked()) > 0; got != c.asked {
				t.Errorf("the token endpoint was asked: %v", w.asked())
			}
			if tok, err := token(t, h); tok != "" || err != nil {
				t.Errorf("there is a token: %v", err)
			}
			if st, _ := b.Status("docs"); st.State == oauth.Waiting || st.State == oauth.SignedIn {
				t.Errorf("state = %s", st.State)
			}
		})
	}
}
