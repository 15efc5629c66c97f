package mcp_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zephbot/zephbot/policy/netrule"
	"github.com/zephbot/zephbot/tools/mcp"
)

// TestConnectionsToServersAreKept: concurrent calls of many sessions reuse the connections of earlier calls.
func TestConnectionsToServersAreKept(t *testing.T) {
	t.Parallel()
	const size, waves = 32, 6
	var conns atomic.Int64
	var all sync.WaitGroup // nobody is answered before all of a wave have asked
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		all.Done()
		all.Wait()
		_, _ = io.WriteString(w, "{}")
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	base := mcp.Options{}.Transport(netrule.Named{Server: &url.URL{Scheme: "http", Host: "127.0.0.1"}, Trusted: true})
	for range waves {
		all.Add(size)
		var wg sync.WaitGroup
		for range size {
			wg.Go(func() {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, http.NoBody)
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := base.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					t.Error(err)
				}
				_ = resp.Body.Close()
			})
		}
		wg.Wait()
	}
	if got := conns.Load(); got > size*waves/2 {
		t.Errorf("%d connections for %d requests of which %d run at once", got, size*waves, size)
	}
}
