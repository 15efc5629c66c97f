// Package redistest is a Redis server for tests that counts the trips to it.
package redistest

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// Server is a Redis in memory, behind a listener that counts what a client writes at once: a request, or several that make one trip. Safe for concurrent use.
type Server struct {
	URL   string // redis://…
	trips atomic.Int64
}

// Start starts a server that ends with the test.
func Start(ctx context.Context, tb testing.TB) *Server {
	tb.Helper()
	behind := miniredis.RunT(tb).Addr()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = listener.Close() })
	s := &Server{URL: "redis://" + listener.Addr().String()}
	go s.serve(ctx, listener, behind)
	return s
}

// Trips is how many there were so far.
func (s *Server) Trips() int64 { return s.trips.Load() }

func (s *Server) serve(ctx context.Context, listener net.Listener, behind string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(ctx, "tcp", behind)
		if err != nil {
			_ = client.Close()
			continue
		}
		go carry(server, client, func() { s.trips.Add(1) })
		go carry(client, server, func() {})
	}
}

// carry copies what comes until one side ends, and tells of each piece.
func carry(to, from net.Conn, count func()) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			count()
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
