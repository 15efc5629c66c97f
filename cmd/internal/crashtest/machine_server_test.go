//go:build linux

package crashtest_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// Faults of the servers that store the data of several processes.
const (
	faultCut     = "PostgreSQL: connections cut"
	faultTorn    = "PostgreSQL: an answer lost"
	faultGone    = "PostgreSQL: away"
	faultEnded   = "PostgreSQL: ends all sessions"
	faultFar     = "PostgreSQL: slow"
	faultRestart = "PostgreSQL: restarted at once"
	faultPause   = "PostgreSQL: stopped by SIGSTOP"
)

// servers is PostgreSQL and Redis, each behind a proxy, and what can fail there.
type servers struct {
	cluster *pgtest.Cluster
	base    string
	proxy   *pgtest.Proxy
	cache   *cache

	pg sync.Mutex // held by a fault that lasts

	mu     sync.Mutex
	sick   int
	healed time.Time
}

func newServers(t *testing.T) *servers {
	t.Helper()
	cluster, err := pgtest.Start() // a cluster of its own: it is killed and stopped
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &servers{cluster: cluster}
	s.base = s.cluster.Database(t, "")
	s.proxy = pgtest.NewProxy(t, s.cluster)
	if s.cache = newCache(t); s.cache == nil {
		t.Fatal("several processes need Redis")
	}
	return s
}

func (s *servers) name() string { return "PostgreSQL and Redis" }
func (s *servers) url() string  { return s.cluster.URL(s.base) }

func (s *servers) number(ctx context.Context, _ *machine, query string, args ...any) (int64, error) {
	list, err := s.cluster.Numbers(ctx, s.base, query, args...)
	if err != nil || len(list) != 1 {
		return 0, fmt.Errorf("%d numbers: %w", len(list), err)
	}
	return list[0], nil
}

func (s *servers) home(m *machine, index int) string {
	return filepath.Join(m.dir, fmt.Sprintf("data%d", index))
}

func (s *servers) config(m *machine, n *node) string {
	return fmt.Sprintf("[database]\nurl = %q\n%s", s.proxy.URL(s.base), s.cache.config())
}

func (s *servers) kinds() []weighted {
	return append(s.cache.kinds(), []weighted{
		{faultCut, 5, 0, 0},
		{faultTorn, 8, 0, 0},
		{faultGone, 2, time.Second / 20, 5 * time.Second},
		{faultEnded, 2, 0, 0},
		{faultFar, 2, time.Second / 5, 4 * time.Second},
		{faultRestart, 1, 0, 0},
		{faultPause, 1, time.Second / 20, 5 * time.Second},
	}...)
}

func (s *servers) apply(ctx context.Context, m *machine, f fault) {
	switch f.Kind {
	case faultCut:
		m.hit(f.Kind)
		s.proxy.Cut()
	case faultTorn:
		s.torn(m, f)
	case faultEnded:
		m.working.Go(func() { s.endSessions(ctx, m, f) })
	case faultGone:
		s.last(ctx, m, f, func() { s.proxy.Away(true) }, func() { s.proxy.Away(false) })
	case faultFar:
		s.last(ctx, m, f, func() { s.proxy.Far(50 * time.Millisecond) }, func() { s.proxy.Far(0) })
	case faultRestart:
		s.last(ctx, m, f, func() { s.server(m, s.cluster.Crash()) }, func() {})
	case faultPause:
		s.last(ctx, m, f, func() { s.server(m, s.cluster.Pause(true)) }, func() { s.server(m, s.cluster.Pause(false)) })
	default:
		s.cache.apply(ctx, m, f, s.ill)
	}
}

// server notes that the server could not be broken.
func (s *servers) server(m *machine, err error) {
	if err != nil {
		m.fail("PostgreSQL: %v", err)
	}
}

// torn loses either the answer to the next message of a client or the message itself.
func (s *servers) torn(m *machine, f fault) {
	left, how := f.Count, []pgtest.Broken{pgtest.Before, pgtest.After}[f.Dice%2]
	s.proxy.Break(func([]byte) pgtest.Broken { // the proxy allows one at a time
		if left <= 0 {
			return pgtest.Whole
		}
		left--
		m.hit(f.Kind)
		return how
	})
}

// endSessions ends every session of the database, like a restart of the server.
func (s *servers) endSessions(ctx context.Context, m *machine, f fault) {
	const all = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
	if err := s.cluster.Exec(ctx, s.base, all); err == nil {
		m.hit(f.Kind)
	}
}

// last makes a fault of the database that lasts; two of them do not overlap.
func (s *servers) last(ctx context.Context, m *machine, f fault, begin, end func()) {
	if !s.pg.TryLock() {
		return
	}
	m.hit(f.Kind)
	healthy := s.ill()
	begin()
	m.working.Go(func() {
		defer s.pg.Unlock()
		pause(ctx, f.Length)
		end()
		healthy()
	})
}

// ill counts a current fault; the returned function ends it.
func (s *servers) ill() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sick++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sick--
		s.healed = time.Now()
	}
}

// fell: a process may end by itself if it was silent for so long that another one declared it dead, or if it cannot
// start; it says so.
func (s *servers) fell(m *machine, n *node, c *child, last string) {
	if !saidWhy(last) {
		m.fail("process %d ended by itself (%v): …%s", n.index, c.err, last)
	}
}

func (s *servers) excused(last string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (s.sick > 0 || time.Since(s.healed) < fallen) && saidWhy(last)
}

// balancer is a load balancer in front of the webhooks of several processes: each delivery goes to the next of them,
// whatever its state.
type balancer struct {
	mu        sync.Mutex
	addresses []string
	next      int
	transport http.Transport
}

// RoundTrip implements http.RoundTripper.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	to := b.addresses[b.next%len(b.addresses)]
	b.next++
	b.mu.Unlock()
	r = r.Clone(r.Context())
	r.URL.Host = to
	return b.transport.RoundTrip(r)
}

// CloseIdleConnections is called by http.Client.
func (b *balancer) CloseIdleConnections() { b.transport.CloseIdleConnections() }

// listen finds an address for another process.
func (b *balancer) listen(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addresses = append(b.addresses, address)
	return address
}
