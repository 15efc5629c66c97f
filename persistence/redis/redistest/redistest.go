// Package redistest provides Redis servers for tests: one in memory that counts round trips, real ones (a server,
// sentinels, a cluster) as processes on loopback, and a proxy that breaks connections.
package redistest

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// Server is an in-memory Redis behind a proxy. Safe for concurrent use.
type Server struct {
	*Proxy
	URL string // redis://…
}

// Start starts a server that ends with the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	p := Between(tb, miniredis.RunT(tb).Addr())
	return &Server{Proxy: p, URL: "redis://" + p.Addr()}
}
