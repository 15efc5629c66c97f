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
	"github.com/zephbot/zephbot/persistence/redis/redistest"
)

// Faults of the servers that store the data of several processes.
const (
	faultCut        = "PostgreSQL: connections cut"
	faultTorn       = "PostgreSQL: an answer lost"
	faultGone       = "PostgreSQL: away"
	faultEnded      = "PostgreSQL: ends all sessions"
	faultFar        = "PostgreSQL: slow"
	faultRedisCut   = "Redis: away"
	faultRedisStall = "Redis: no answers"
	faultRedisRead  = "Redis: cannot write"
	faultRedisFlush = "Redis: flushed"
	faultRedisKill  = "Redis: killed"
)

// servers is PostgreSQL and Redis, each behind a proxy, and what can fail there.
type servers struct {
	cluster    *pgtest.Cluster
	base       string
	proxy      *pgtest.Proxy
	redis      *redistest.Process
	redisProxy *redistest.Proxy

	pg, cache sync.Mutex // held by a fault that lasts

	mu     sync.Mutex
	sick   int
	healed time.Time
}

func newServers(t *testing.T) *servers {
	t.Helper()
	s := &servers{cluster: pgtest.Shared(t)}
	s.base = s.cluster.Database(t, "")
	s.proxy = pgtest.NewProxy(t, s.cluster)
	s.redis = redistest.Run(t)
	s.redisProxy = redistest.Between(t, s.redis.Addr())
	return s
}

func (s *servers) name() string { return "PostgreSQL and Redis" }
func (s *servers) url() string  { return s.cluster.URL(s.base) }

func (s *servers) home(m *machine, index int) string {
	return filepath.Join(m.dir, fmt.Sprintf("data%d", index))
}

func (s *servers) config(m *machine, n *node) string {
	text := fmt.Sprintf("[database]\nurl = %q\n[redis]\nurl = \"redis://%s\"\n", s.proxy.URL(s.base), s.redisProxy.Addr())
	return text
}

func (s *servers) kinds() []weighted {
	return []weighted{
		{faultCut, 5, 0, 0},
		{faultTorn, 8, 0, 0},
		{faultGone, 2, time.Second / 20, 5 * time.Second},
		{faultEnded, 2, 0, 0},
		{faultFar, 2, time.Second / 5, 4 * time.Second},
		{faultRedisCut, 2, time.Second / 20, 5 * time.Second},
		{faultRedisStall, 2, time.Second / 20, 4 * time.Second},
		{faultRedisRead, 1, time.Second / 20, 4 * time.Second},
		{faultRedisFlush, 2, 0, 0},
		{faultRedisKill, 1, time.Second / 20, 3 * time.Second},
	}
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
		s.last(ctx, m, f, &s.pg, func() { s.proxy.Away(true) }, func() { s.proxy.Away(false) })
	case faultFar:
		s.last(ctx, m, f, &s.pg, func() { s.proxy.Far(50 * time.Millisecond) }, func() { s.proxy.Far(0) })
	case faultRedisCut, faultRedisStall, faultRedisRead:
		kind := map[string]redistest.Fault{faultRedisCut: redistest.Cut, faultRedisStall: redistest.Stall, faultRedisRead: redistest.ReadOnly}[f.Kind]
		s.last(ctx, m, f, &s.cache, func() { s.redisProxy.Break(kind) }, func() { s.redisProxy.Break(redistest.None) })
	case faultRedisFlush:
		if s.cache.TryLock() {
			defer s.cache.Unlock()
			m.hit(f.Kind)
			s.redis.Do("FLUSHALL")
		}
	case faultRedisKill:
		s.last(ctx, m, f, &s.cache, s.redis.Kill, s.redis.Again)
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

// last makes a fault that lasts; two faults of one server do not overlap.
func (s *servers) last(ctx context.Context, m *machine, f fault, one *sync.Mutex, begin, end func()) {
	if !one.TryLock() {
		return
	}
	m.hit(f.Kind)
	s.mu.Lock()
	s.sick++
	s.mu.Unlock()
	begin()
	m.working.Go(func() {
		defer one.Unlock()
		pause(ctx, f.Length)
		end()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sick--
		s.healed = time.Now()
	})
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
