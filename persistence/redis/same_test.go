package redis_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/persistence/redis"
	"github.com/zephbot/zephbot/tools/cache"
)

// TestSameCounters: the engine in the process answers thousands of operations made up at random as a real server does.
func TestSameCounters(t *testing.T) {
	t.Parallel()
	d := &database{url: server(t)}
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same operations in every run
			own, real := open(t, ""), d.open(t)
			for step := range 3000 {
				op := counterOp(r)
				if got, want := op(t, own), op(t, real); got != want {
					t.Fatalf("step %d: in the process %s, on a server %s", step, got, want)
				}
			}
		})
	}
}

// counterOp makes up one operation on a few counters; it gives its name and everything that it answered.
func counterOp(r *rand.Rand) func(*testing.T, *redis.Store) string {
	keys := []string{"a", "b", "c", "d"}
	id := fmt.Sprint(r.IntN(60))
	expire := time.Now().Add(time.Hour)
	if r.IntN(12) == 0 {
		expire = time.Unix(r.Int64N(1000), 0)
	}
	takes := make([]quota.Take, r.IntN(4))
	for i := range takes { // a counter may be named twice
		takes[i] = quota.Take{Key: keys[r.IntN(4)], N: r.Int64N(4), Limit: r.Int64N(3) * (5 + r.Int64N(40))}
	}
	n := r.Int64N(30)
	if r.IntN(3) == 0 {
		return reservation(r, id, takes, expire)
	}
	switch r.IntN(8) {
	case 0:
		return func(t *testing.T, s *redis.Store) string {
			return fmt.Sprint("restore ", s.Restore(t.Context(), keys[n%4], n, expire))
		}
	case 1, 2, 3:
		return func(t *testing.T, s *redis.Store) string {
			return fmt.Sprint("return ", id, takes, s.Return(t.Context(), id, takes))
		}
	case 4:
		return func(t *testing.T, s *redis.Store) string {
			values, err := s.Read(t.Context(), keys)
			return fmt.Sprint("read ", values, err)
		}
	default:
		return func(t *testing.T, s *redis.Store) string {
			counts, denied, err := s.Take(t.Context(), id, takes, expire)
			return fmt.Sprint("take ", id, takes, expire.Unix() < 1000, counts, denied, err)
		}
	}
}

// reservation makes up one operation of reservations, at one of a few moments.
func reservation(r *rand.Rand, id string, takes []quota.Take, expire time.Time) func(*testing.T, *redis.Store) string {
	now := time.Unix(1e9, 0).Add(time.Duration(r.IntN(4)) * time.Minute)
	hold := quota.Hold{Now: now, Until: now.Add(time.Duration(r.IntN(3)) * time.Minute)}
	name := fmt.Sprint("settlement", r.IntN(900))
	if r.IntN(2) == 0 {
		return func(t *testing.T, s *redis.Store) string {
			room, err := s.Reserve(t.Context(), id, takes, hold, expire)
			return fmt.Sprint("reserve ", id, takes, hold, room, err)
		}
	}
	return func(t *testing.T, s *redis.Store) string {
		counts, err := s.Settle(t.Context(), id, name, takes, expire)
		return fmt.Sprint("settle ", id, name, takes, counts, err)
	}
}

// TestSameCache: so does its cache. Generations are random on a server: they are compared by who has which one.
func TestSameCache(t *testing.T) {
	t.Parallel()
	d := &database{url: server(t)}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // the same operations in every run
			p := &pair{own: open(t, "").Cache(), real: d.open(t).Cache(), theirs: map[string]string{}}
			for step := range 3000 {
				p.step(t, step, r)
			}
		})
	}
}

// pair is a cache in the process and one on a server that are asked the same.
type pair struct {
	own, real cache.Store
	held      []held
	theirs    map[string]string // the server's generation for each of ours
}

// held is an entry that was read from both, to be stored at some time.
type held struct{ own, real cache.Entry }

func (p *pair) step(t *testing.T, step int, r *rand.Rand) {
	t.Helper()
	scope, key := fmt.Sprint(r.IntN(3)), fmt.Sprint(r.IntN(900)%(1+r.IntN(900)))
	switch n := r.IntN(100); {
	case n < 2:
		if a, b := p.own.Drop(t.Context(), scope), p.real.Drop(t.Context(), scope); a != nil || b != nil {
			t.Fatalf("step %d: drop: %v, %v", step, a, b)
		}
	case n < 40 || len(p.held) == 0:
		p.get(t, step, scope, key)
	default:
		h := p.held[max(0, len(p.held)-1-r.IntN(12))] // mostly a generation of now
		value := bytes.Repeat([]byte{byte(r.IntN(256))}, r.IntN(20))
		if r.IntN(60) == 0 { // nine of these are too many, whatever the server counts beside the values
			value = bytes.Repeat([]byte("x"), cache.MaxBytes/8-1<<15)
		}
		h.own.Value, h.real.Value = value, value
		ttl := time.Duration(1+r.IntN(1000)) * time.Hour
		if a, b := p.own.Set(t.Context(), scope, key, h.own, ttl), p.real.Set(t.Context(), scope, key, h.real, ttl); a != nil || b != nil {
			t.Fatalf("step %d: set: %v, %v", step, a, b)
		}
		p.get(t, step, scope, key)
	}
}

func (p *pair) get(t *testing.T, step int, scope, key string) {
	t.Helper()
	own, err := p.own.Get(t.Context(), scope, key)
	if err != nil {
		t.Fatal(err)
	}
	real, err := p.real.Get(t.Context(), scope, key)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(own.Value, real.Value) || (own.Value == nil) != (real.Value == nil) {
		t.Fatalf("step %d: %s of scope %s is %.20q in the process and %.20q on a server", step, key, scope, own.Value, real.Value)
	}
	if theirs, ok := p.theirs[own.Generation]; ok && theirs != real.Generation {
		t.Fatalf("step %d: generation %s is %s and %s on a server", step, own.Generation, theirs, real.Generation)
	}
	p.theirs[own.Generation] = real.Generation
	p.held = append(p.held, held{own, real})
}

// TestEmbeddedExpiry: counters and ids of the engine in the process expire to the second, and are deleted in time.
func TestEmbeddedExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, "")
		take := []quota.Take{{Key: "a", N: 1, Limit: 2}}
		expire := time.Now().Add(3 * time.Hour)
		step := func(id string, denied int, want ...int64) {
			t.Helper()
			counts, got, err := s.Take(t.Context(), id, take, expire)
			if err != nil || got != denied || !slices.Equal(counts, want) {
				t.Errorf("%s: %v, %d, %v; want %v, %d", id, counts, got, err, want, denied)
			}
		}
		if err := s.Restore(t.Context(), "b", 5, expire); err != nil {
			t.Fatal(err)
		}
		step("1", -1, 1)
		step("2", -1, 2)
		step("3", 0, 2)
		time.Sleep(time.Until(expire) - time.Nanosecond) //nolint:forbidigo // the clock of the bubble
		step("1", -1, 2)
		step("3", 0, 2)
		time.Sleep(time.Nanosecond) //nolint:forbidigo // as above
		if got, err := s.Read(t.Context(), []string{"a", "b"}); err != nil || !slices.Equal(got, []int64{0, 0}) {
			t.Errorf("after their time: %v, %v", got, err)
		}
		expire = expire.Add(time.Hour)
		if err := s.Return(t.Context(), "1", take); err != nil { // nothing is known of it any more
			t.Fatal(err)
		}
		step("1", -1, 1)
	})
}

// TestEmbeddedClosed: a closed engine refuses, so that quotas stay closed; it does not count from nothing.
func TestEmbeddedClosed(t *testing.T) {
	t.Parallel()
	s := open(t, "")
	take := []quota.Take{{Key: "a", N: 1}}
	var wg sync.WaitGroup
	for n := range 16 { // whoever is under way ends with an answer or with an error
		wg.Go(func() { _, _, _ = s.Take(t.Context(), fmt.Sprint(n), take, time.Now().Add(time.Hour)) })
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	_, denied, takeErr := s.Take(t.Context(), "1", take, time.Now().Add(time.Hour))
	_, readErr := s.Read(t.Context(), []string{"a"})
	for _, err := range []error{takeErr, readErr, s.Return(t.Context(), "1", take), s.Restore(t.Context(), "a", 1, time.Now()), s.Ping(t.Context())} {
		if err == nil {
			t.Error("a closed engine answers")
		}
	}
	if denied != -1 {
		t.Errorf("denied = %d, want -1", denied)
	}
}
