package mcp_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools/mcp"
)

func streamable(s func() *sdk.Server, stateless bool) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s() }, &sdk.StreamableHTTPOptions{Stateless: stateless})
}

// TestTransports lists and calls over every transport and every revision.
func TestTransports(t *testing.T) {
	t.Parallel()
	local, _ := inProcess(t, "srv", testServer)
	one := hosted(t)
	for name, cfg := range map[string]mcp.Server{
		"in process": local,
		"stdio":      stdio("srv", "plain"),
		"junk":       stdio("srv", "junk"),
		"streamable": web(t, "srv", streamable(func() *sdk.Server { return one }, false)),
		"stateless":  web(t, "srv", streamable(testServer, true)),
		"sse":        web(t, "srv", sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return one }, nil)),
	} {
		for _, protocol := range []string{"", "2025-06-18", "2025-11-25"} {
			t.Run(name+" "+protocol, func(t *testing.T) {
				t.Parallel()
				cfg := cfg
				cfg.Protocol = protocol
				b := start(t, mcp.Options{Servers: []mcp.Server{cfg}})
				b.ready(t)
				st := b.status(t)
				if st.State != mcp.Connected || st.Problem != "" {
					t.Fatalf("status %+v\n%s", st, b.log)
				}
				if name == "sse" && st.Transport != "sse" {
					t.Errorf("transport %s", st.Transport)
				}
				if protocol != "" && st.Protocol != protocol {
					t.Errorf("protocol %s, want %s", st.Protocol, protocol)
				}
				want := []string{"srv:die", "srv:echo", "srv:env", "srv:fail", "srv:hang", "srv:meta", "srv:roots", "srv:sum", "srv:where"}
				if diff := cmp.Diff(want, b.registry.Names()); diff != "" {
					t.Errorf("tools (-want +got):\n%s", diff)
				}
				b.want(t, "srv:echo", `{"text":"hello"}`, "hello")
				b.want(t, "srv:sum", `{"a":2,"b":3}`, `{"sum":5}`)
				b.want(t, "srv:meta", `{}`, "telegram:42")
				b.stop()
				if names := b.registry.Names(); len(names) != 0 {
					t.Errorf("tools are left: %v", names)
				}
			})
		}
	}
}
