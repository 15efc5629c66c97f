package wire_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zephbot/zephbot/agent/llm/wire"
)

// crowd is a server that answers only after a number of requests have arrived, and counts the connections made to it.
type crowd struct {
	*httptest.Server
	size  int
	conns atomic.Int64

	mu      sync.Mutex
	waiting int
	gate    chan struct{}
}

func newCrowd(t testing.TB, size int) *crowd {
	t.Helper()
	c := &crowd{size: size, gate: make(chan struct{})}
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-c.arrive():
		case <-r.Context().Done():
			return
		}
		_, _ = io.WriteString(w, "data: the answer\n\n")
		_ = http.NewResponseController(w).Flush() // the end of the stream arrives separately
	}))
	c.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			c.conns.Add(1)
		}
	}
	c.Start()
	t.Cleanup(c.Close)
	return c
}

// arrive returns a channel that is closed when all requests have arrived.
func (c *crowd) arrive() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	gate := c.gate
	if c.waiting++; c.waiting == c.size {
		close(gate)
		c.waiting, c.gate = 0, make(chan struct{})
	}
	return gate
}

// wave sends that many requests at once, and reads of each answer what a reader of a stream reads.
func (c *crowd) wave(t testing.TB, client *http.Client) {
	t.Helper()
	var wg sync.WaitGroup
	for range c.size {
		wg.Go(func() {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL, http.NoBody)
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := client.Do(req) //nolint:bodyclose // closed through adapter.Cap
			if err != nil {
				t.Error(err)
				return
			}
			body := wire.LimitBody(resp.Body, 1<<20)
			if _, err := io.ReadFull(body, make([]byte, len("data: the answer\n\n"))); err != nil {
				t.Error(err)
			}
			if err := body.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestConnectionsAreKept: many concurrent turns reuse the connections of earlier ones.
func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	const size, waves = 64, 6
	c := newCrowd(t, size)
	client := wire.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	for range waves {
		c.wave(t, client)
	}
	// A connection becomes idle a moment after its answer. Without room for idle ones, nearly all would be new.
	if got := c.conns.Load(); got > size*waves/2 {
		t.Errorf("%d connections for %d requests of which %d run at once", got, size*waves, size)
	}
}

// BenchmarkConnections measures 256 concurrent calls, with our limit of idle connections and with that of net/http.
func BenchmarkConnections(b *testing.B) {
	for name, client := range map[string]*http.Client{"kept": wire.NewClient(nil), "default": {}} {
		b.Run(name, func(b *testing.B) {
			c := newCrowd(b, 256)
			for b.Loop() {
				c.wave(b, client)
			}
			client.CloseIdleConnections()
		})
	}
}
