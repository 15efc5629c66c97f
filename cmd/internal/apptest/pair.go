package apptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

// hookURL is where the fake delivers for two processes. The host is never resolved, since the balancer routes each
// delivery to one of them.
const hookURL = "http://balancer.invalid/updates"

// Pair describes how two processes play a scenario.
type Pair struct {
	DatabaseURL string // of an empty database of PostgreSQL
	RedisURL    string
	// Seed decides which process receives each delivery, and which one a restart concerns. It makes a run repeatable.
	Seed uint64
	// Off is how far the clock of the second process is ahead of the first one's.
	Off time.Duration
}

// PlayTogether plays one scenario on two processes of one service, behind a balancer that routes each delivery to one
// of them.
func PlayTogether(t *testing.T, archive *txtar.Archive, pair Pair) {
	t.Helper()
	t.Logf("seed %d, clocks %s apart", pair.Seed, pair.Off)
	play(t, archive, &scene{
		databaseURL: pair.DatabaseURL, pair: newBalancer(pair),
		processes: []*process{{name: "one"}, {name: "two", off: pair.Off}},
	})
}

// balancer routes deliveries to processes: it is an http.RoundTripper of the fake. As long as both processes run, the
// choice only depends on the seed, the update and how often it was delivered.
type balancer struct {
	Pair
	chance    *rand.Rand // of the scenario's goroutine
	transport *http.Transport

	mu        sync.Mutex
	to        string            // the process that gets everything, where the scenario says so and it listens
	addresses map[string]string // by process: where it listens
	tries     map[int64]int     // by update: deliveries
}

func newBalancer(pair Pair) *balancer {
	return &balancer{
		Pair:      pair,
		chance:    rand.New(rand.NewPCG(pair.Seed, 1)), //nolint:gosec // a choice that can be repeated, no secret
		transport: &http.Transport{}, addresses: map[string]string{}, tries: map[int64]int{},
	}
}

// pick returns the next choice for the scenario: a number below n.
func (b *balancer) pick(n int) int { return b.chance.IntN(n) }

// listening returns how many processes accept deliveries.
func (b *balancer) listening() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.addresses)
}

// listen opens the address of a process.
func (b *balancer) listen(ctx context.Context, name string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addresses[name] = l.Addr().String()
	return &backend{Listener: l, closed: func() { b.left(name, l.Addr().String()) }}, nil
}

// left removes a process that no longer listens.
func (b *balancer) left(name, address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.addresses[name] == address {
		delete(b.addresses, name)
	}
}

// backend is the address of a process.
type backend struct {
	net.Listener
	once   sync.Once
	closed func()
}

// Close implements net.Listener.
func (b *backend) Close() error {
	b.once.Do(b.closed)
	return b.Listener.Close()
}

// RoundTrip implements http.RoundTripper.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return nil, fmt.Errorf("read a delivery: %w", err)
	}
	var update struct {
		ID int64 `json:"update_id"`
	}
	if err := json.Unmarshal(body, &update); err != nil {
		return nil, fmt.Errorf("read a delivery: %w", err)
	}
	address, ok := b.choose(update.ID)
	if !ok {
		return nil, errors.New("no process listens")
	}
	r = r.Clone(r.Context())
	r.Body, r.URL.Host = io.NopCloser(bytes.NewReader(body)), address
	return b.transport.RoundTrip(r)
}

// direct plays "to NAME": who gets the updates from now on. One process gets them all anyway.
func (s *scene) direct(name string) error {
	if !slices.Contains([]string{"one", "two", "any"}, name) {
		return errors.New("to one, to two, or to any")
	}
	if s.pair != nil {
		s.pair.mu.Lock()
		defer s.pair.mu.Unlock()
		s.pair.to = name
	}
	return nil
}

// choose returns where a delivery is sent.
func (b *balancer) choose(update int64) (address string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if address, ok := b.addresses[b.to]; ok {
		return address, true
	}
	b.tries[update]++
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d/%d/%d", b.Seed, update, b.tries[update]) // a hash takes everything
	names := []string{"one", "two"}
	if h.Sum64()>>32&1 == 1 {
		slices.Reverse(names)
	}
	for _, name := range names {
		if address, ok := b.addresses[name]; ok {
			return address, true
		}
	}
	return "", false
}

// CloseIdleConnections is what http.Client asks of its transport.
func (b *balancer) CloseIdleConnections() { b.transport.CloseIdleConnections() }
