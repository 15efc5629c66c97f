package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/policy/netrule"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// names is a resolver of fixed names.
type names map[string]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	text, ok := n[strings.TrimSuffix(host, ".")]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	var list []netip.Addr
	for each := range strings.SplitSeq(text, " ") {
		list = append(list, netip.MustParseAddr(each))
	}
	return list, nil
}

// TestRefused has addresses that may not be reached and servers that do not want us.
func TestRefused(t *testing.T) {
	t.Parallel()
	status := func(code int) mcp.Server {
		return web(t, "srv", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	}
	elsewhere := web(t, "srv", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.example/mcp", http.StatusTemporaryRedirect)
	}))
	local := status(200)
	local.Trust = guard.Untrusted
	resolve := names{"private.example": "93.184.216.34 10.0.0.1", "meta.example": "169.254.169.254"}
	for name, tc := range map[string]struct {
		cfg  mcp.Server
		code guard.Code
		want string
	}{
		"local":        {local, guard.PolicyBlocked, `needs trust_level = "trusted"`},
		"one private":  {mcp.Server{ID: "srv", URL: "https://private.example/mcp"}, guard.PolicyBlocked, `needs trust_level = "trusted"`},
		"metadata":     {mcp.Server{ID: "srv", URL: "http://meta.example/mcp"}, guard.PolicyBlocked, `needs trust_level = "trusted"`},
		"scheme":       {mcp.Server{ID: "srv", URL: "ftp://x.example/mcp"}, guard.InvalidInput, "server srv: "},
		"unauthorised": {status(401), guard.AuthFailure, "wants a sign-in (401)"},
		"forbidden":    {status(403), guard.AuthFailure, "refuses our credentials (403)"},
		"nothing":      {status(404), guard.NotFound, "there is no MCP server at the address of srv (404)"},
		"gone":         {status(410), guard.NotFound, "there is no MCP server at the address of srv (410)"},
		"invalid":      {status(422), guard.InvalidInput, "answered with 422"},
		"redirect":     {elsewhere, guard.InvalidInput, "has moved to http://elsewhere.example; write the new address"},
		"broken":       {status(500), guard.ServerError, "answered with 500"},
		"unavailable":  {status(503), guard.Transient, "answered with 503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, mcp.Options{Resolver: resolve})
			_, err := b.Add(t.Context(), tc.cfg)
			c, te := code(t, err)
			if c != tc.code || !strings.Contains(te.Message, tc.want) {
				t.Errorf("got %s: %s", c, te.Message)
			}
			if len(b.Statuses()) != 0 {
				t.Error("the server was kept")
			}
			if _, err := b.Restart(t.Context(), "srv"); err == nil || !strings.Contains(err.Error(), `there is no server "srv"`) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestAttackSignInAddresses: the transport of a sign-in dials no address of this machine behind a name that a trusted
// server gave, nor one of several.
func TestAttackSignInAddresses(t *testing.T) {
	t.Parallel()
	dialled := make(chan string, 100)
	o := mcp.Options{
		Resolver: names{"here.example": "127.0.0.1", "both.example": "93.184.216.34 127.0.0.1", "meta.example": "169.254.169.254", "lan.example": "10.0.0.1", "any.example": "0.0.0.0"},
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialled <- address
			return nil, errors.New("not here")
		},
	}
	base := o.Transport(netrule.Named{Server: &url.URL{Scheme: "https", Host: "mcp.example"}, Trusted: true})
	for host, want := range map[string]bool{
		"here.example": false, "both.example": false, "meta.example": false, "any.example": false, "lan.example": true, "127.0.0.1": false, "[::1]": false, "[::ffff:127.0.0.1]": false, "169.254.169.254": false,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+"/.well-known/oauth-authorization-server", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := base.RoundTrip(req); err == nil {
			_ = resp.Body.Close()
			t.Errorf("%s answered", host)
		}
		select {
		case address := <-dialled:
			if !want {
				t.Errorf("%s: %s was dialled", host, address)
			}
		default:
			if want {
				t.Errorf("%s was not dialled", host)
			}
		}
	}
}

// TestPublicServer reaches a public address through the test hooks, with headers that stay with the configured host.
func TestPublicServer(t *testing.T) {
	t.Parallel()
	var seen atomic.Value
	one := hosted(t)
	h := streamable(func() *sdk.Server { return one }, false)
	local := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Header.Get("Authorization") + " " + r.Host)
		r.Host = "127.0.0.1"
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		local.CloseClientConnections()
		local.Close()
	})
	var dialled atomic.Value
	b := start(t, mcp.Options{
		Resolver: names{"mcp.example": "93.184.216.34"},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled.Store(address)
			return new(net.Dialer).DialContext(ctx, network, local.Listener.Addr().String())
		},
		Servers: []mcp.Server{{ID: "srv", URL: "http://mcp.example/", Headers: map[string]string{"Authorization": "Bearer x"}}},
	})
	b.ready(t)
	b.want(t, "srv:echo", `{"text":"hi"}`, "hi")
	if got := dialled.Load(); got != "93.184.216.34:80" {
		t.Errorf("dialled %v", got)
	}
	if got := seen.Load(); got != "Bearer x mcp.example" {
		t.Errorf("the server saw %q", got)
	}
}

// TestOtherEndpoint has an old server that sends us to another host.
func TestOtherEndpoint(t *testing.T) {
	t.Parallel()
	b := start(t, mcp.Options{})
	_, err := b.Add(t.Context(), web(t, "srv", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: endpoint\ndata: http://169.254.169.254/latest\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})))
	if _, te := code(t, err); !strings.Contains(te.Message, "answered with 405") {
		t.Errorf("got %v", te)
	}
}

// TestGiantAnswer has answers that do not end: one document, and a stream.
func TestGiantAnswer(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"application/json", "text/event-stream"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			one := hosted(t)
			h := streamable(func() *sdk.Server { return one }, false)
			b := start(t, mcp.Options{MaxMessage: 1 << 20, Servers: []mcp.Server{web(t, "srv", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost {
					h.ServeHTTP(w, r)
					return
				}
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return
				}
				if !strings.Contains(string(body), `"tools/call"`) {
					r.Body = io.NopCloser(strings.NewReader(string(body)))
					h.ServeHTTP(w, r)
					return
				}
				w.Header().Set("Content-Type", kind)
				_, _ = io.WriteString(w, map[bool]string{true: "data: "}[kind == "text/event-stream"]+`{"jsonrpc":"2.0","id":99,"result":"`)
				chunk := strings.Repeat("x", 1<<16)
				for range 1 << 14 {
					if _, err := io.WriteString(w, chunk); err != nil {
						return
					}
				}
			}))}})
			b.ready(t)
			_, _, err := b.call(t, "srv:echo", `{"text":"x"}`)
			if c, te := code(t, err); kind == "application/json" && (c != guard.InvalidInput || !strings.Contains(te.Message, "longer than 1048576 bytes")) {
				t.Errorf("got %s: %s", c, te.Message)
			}
		})
	}
}

// TestForgottenSession restarts a server: a new session is opened without any notice.
func TestForgottenSession(t *testing.T) {
	t.Parallel()
	one := hosted(t)
	var h atomic.Value
	h.Store(streamable(func() *sdk.Server { return one }, false))
	cfg := web(t, "srv", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.Load().(http.Handler).ServeHTTP(w, r) }))
	cfg.Protocol = "2025-11-25" // the newest has no sessions
	b := start(t, mcp.Options{Servers: []mcp.Server{cfg}})
	b.ready(t)
	b.want(t, "srv:echo", `{"text":"1"}`, "1")
	h.Store(streamable(func() *sdk.Server { return one }, false))
	b.want(t, "srv:echo", `{"text":"2"}`, "2")
	select {
	case n := <-b.notices:
		t.Errorf("a notice: %+v", n)
	default:
	}
}

// TestHTTPServerDies has a server on the network go away and come back.
func TestHTTPServerDies(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"", "2025-11-25"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			one := hosted(t)
			h := streamable(func() *sdk.Server { return one }, protocol == "")
			l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's listener
			if err != nil {
				t.Fatal(err)
			}
			var down atomic.Bool
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !down.Load() {
					h.ServeHTTP(w, r)
					return
				}
				conn, _, err := http.NewResponseController(w).Hijack()
				if err == nil {
					_ = conn.Close()
				}
			}))
			_ = s.Listener.Close()
			s.Listener = l
			s.Start()
			t.Cleanup(func() {
				s.CloseClientConnections()
				s.Close()
			})
			b := start(t, mcp.Options{ConnectAttempts: 1000, Servers: []mcp.Server{{ID: "srv", URL: s.URL, Trust: guard.Trusted, Protocol: protocol}}})
			b.ready(t)
			b.want(t, "srv:echo", `{"text":"1"}`, "1")
			down.Store(true)
			_, _, err = b.call(t, "srv:echo", `{"text":"2"}`)
			if c, te := code(t, err); c != guard.Transient || !te.Retryable {
				t.Errorf("got %s: %v", c, te)
			}
			b.notice(t, mcp.Away)
			if _, ok := b.registry.Lookup("srv:echo"); !ok {
				t.Error("the tool has lost its name")
			}
			down.Store(false)
			b.notice(t, mcp.Back)
			b.want(t, "srv:echo", `{"text":"3"}`, "3")
		})
	}
}

// TestStatusOfCall has a server answer calls with a status.
func TestStatusOfCall(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]guard.Code{401: guard.AuthFailure, 429: guard.RateLimited, 503: guard.Transient} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			h := streamable(testServer, true)
			b := start(t, mcp.Options{Servers: []mcp.Server{web(t, "srv", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || strings.Contains(string(body), `"tools/call"`) {
					w.WriteHeader(status)
					return
				}
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				h.ServeHTTP(w, r)
			}))}})
			b.ready(t)
			_, trail, err := b.call(t, "srv:echo", `{"text":"x"}`)
			if c, _ := code(t, err); c != want || trail.MCPErrorCode != string(want) {
				t.Errorf("got %s, %v", c, err)
			}
		})
	}
}
