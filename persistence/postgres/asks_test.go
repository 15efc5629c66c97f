package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// numbered stores facts whose values are the numbers of their keys.
func numbered(tb testing.TB, store bot.Store, n int) {
	tb.Helper()
	change := &bot.Change{}
	for i := range n {
		change.Facts = append(change.Facts, bot.Fact{Bucket: "numbers", Key: fmt.Sprint(i), Value: fmt.Sprint(i)})
	}
	_, err := store.Apply(tb.Context(), change)
	check(tb, err)
}

// readNumbers reads facts at the same time, several times each, and wants every one to get its own.
func readNumbers(tb testing.TB, store bot.Store, n, times int) {
	tb.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for range times {
				got, err := store.Fact(tb.Context(), "numbers", fmt.Sprint(i), time.Now())
				if err != nil || got != fmt.Sprint(i) {
					tb.Errorf("fact %d is %q, %v", i, got, err)
				}
			}
		})
	}
	wg.Wait()
}

// TestManyReadsAreFewTrips: what waits meanwhile is read together, and everybody gets their own rows.
func TestManyReadsAreFewTrips(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	proxy := pgtest.NewProxy(t, cluster)
	store := open(t, postgres.Options{URL: proxy.URL(cluster.Database(t, ""))})
	const facts, times = 200, 10
	numbered(t, store, facts)
	proxy.Far(2 * time.Millisecond)
	before := proxy.Trips()
	readNumbers(t, store, facts, times)
	if trips := proxy.Trips() - before; trips > facts*times/10 {
		t.Errorf("%d reads took %d trips", facts*times, trips)
	}
}

// TestReadsThroughManyCuts breaks one piece in six: every read is repeated until it is answered, and none gets the rows
// of another.
func TestReadsThroughManyCuts(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
		proxy, store := behind(t, postgres.Options{Patience: time.Minute})
		numbered(t, store, 30)
		random := rand.New(rand.NewPCG(seed, 0))
		proxy.Break(func([]byte) pgtest.Broken { // called by one at a time
			switch random.IntN(12) {
			case 0:
				return pgtest.Before
			case 1:
				return pgtest.After
			}
			return pgtest.Whole
		})
		readNumbers(t, store, 30, 5)
		proxy.Break(nil)
	})
}

// TestAReadThatFailsSparesOthers: a journal that cannot be read is the problem of its session only.
func TestAReadThatFailsSparesOthers(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	name := cluster.Database(t, "")
	proxy := pgtest.NewProxy(t, cluster)
	store := open(t, postgres.Options{URL: proxy.URL(name)})
	numbered(t, store, 50)
	check(t, cluster.Exec(t.Context(), name, `INSERT INTO journal (session, n, reset, body) VALUES ('odd', 1, false, 'no JSON')`))
	proxy.Far(2 * time.Millisecond)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := store.Tail(t.Context(), "odd", 1000); err == nil {
				t.Error("a journal that is no JSON was read")
			}
		})
	}
	readNumbers(t, store, 50, 5)
	wg.Wait()
}

// TestAReadIsWithdrawn: a caller that gives up while its read waits does not keep that waiting, nor disturbs others; a
// closed store says so.
func TestAReadIsWithdrawn(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	proxy := pgtest.NewProxy(t, cluster)
	store := open(t, postgres.Options{URL: proxy.URL(cluster.Database(t, ""))})
	numbered(t, store, 10)
	proxy.Far(50 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			got, err := store.Fact(ctx, "numbers", fmt.Sprint(i), time.Now())
			if err == nil && got != fmt.Sprint(i) || err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("fact %d is %q, %v", i, got, err)
			}
		})
	}
	cancel()
	wg.Wait()
	readNumbers(t, store, 10, 1)
	check(t, store.Close())
	if _, err := store.Fact(t.Context(), "numbers", "1", time.Now()); err == nil {
		t.Error("a closed store answers")
	}
}
