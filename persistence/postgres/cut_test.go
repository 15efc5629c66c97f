package postgres_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// behind opens a store behind a proxy.
func behind(tb testing.TB, options postgres.Options) (*pgtest.Proxy, *postgres.Store) {
	tb.Helper()
	cluster := pgtest.Shared(tb)
	proxy := pgtest.NewProxy(tb, cluster)
	options.URL = proxy.URL(cluster.Database(tb, "")) + "&pool_max_conns=2"
	return proxy, open(tb, options)
}

// TestATurnIsMadeOnceThroughAnyCut breaks the connection at every piece of what a turn sends, before the server has it
// and after, and wants each Change made once and told right.
func TestATurnIsMadeOnceThroughAnyCut(t *testing.T) {
	t.Parallel()
	for _, how := range []pgtest.Broken{pgtest.Before, pgtest.After} {
		t.Run(map[pgtest.Broken]string{pgtest.Before: "before", pgtest.After: "after"}[how], func(t *testing.T) {
			t.Parallel()
			proxy, store := behind(t, postgres.Options{})
			s := &steps{tb: t, store: store}
			s.play()
			const pieces = 8 // more than a turn sends when nothing breaks; a new connection sends some too
			for at := range int64(pieces) {
				var sent atomic.Int64
				proxy.Break(func([]byte) pgtest.Broken {
					if sent.Add(1) == at+1 {
						return how
					}
					return pgtest.Whole
				})
				s.play()
			}
			proxy.Break(nil)
			s.made(pieces + 1)
		})
	}
}

// TestTurnsAreMadeOnceThroughManyCuts breaks one piece in six. The seed of a failing run is in its name.
func TestTurnsAreMadeOnceThroughManyCuts(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
		proxy, store := behind(t, postgres.Options{Patience: time.Minute})
		s := &steps{tb: t, store: store}
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
		const turns = 20
		for range turns {
			s.play()
		}
		proxy.Break(nil)
		s.made(turns)
	})
}

// made wants everything of some turns once.
func (s *steps) made(turns int) {
	s.tb.Helper()
	ctx := s.tb.Context()
	entries, err := s.store.Journal(ctx, session, 0)
	check(s.tb, err)
	rows, err := s.store.Rows(ctx, session, 0)
	check(s.tb, err)
	charged, err := s.store.Used(ctx, "user/7", "turns", "2026-03-01")
	check(s.tb, err)
	counts, err := s.store.Counts(ctx, "telegram", "1")
	check(s.tb, err)
	if len(entries) != 2*turns || len(rows) != turns || charged != int64(turns) || counts != (bot.Counts{Sessions: 1}) {
		s.tb.Errorf("after %d turns: %d entries, %d rows, %d charged, %+v", turns, len(entries), len(rows), charged, counts)
	}
	for i, row := range rows {
		if row.State != bot.Sent || row.Turn != fmt.Sprint("t7/", i+1) {
			s.tb.Errorf("row %d: %+v", i, row)
		}
	}
}

// TestAServerThatIsAwayForAMomentIsWaitedFor: what is asked meanwhile is answered when it is back.
func TestAServerThatIsAwayForAMomentIsWaitedFor(t *testing.T) {
	t.Parallel()
	proxy, store := behind(t, postgres.Options{})
	s := &steps{tb: t, store: store}
	s.play()
	proxy.Away(true)
	read := make(chan error, 1)
	go func() {
		_, err := store.Lane(t.Context(), session)
		read <- err
	}()
	back := time.AfterFunc(200*time.Millisecond, func() { proxy.Away(false) })
	defer back.Stop()
	s.play()
	check(t, <-read)
	s.made(2)
}

func unavailable(t *testing.T, what string, err error, want string) {
	t.Helper()
	failed, ok := errors.AsType[*keeping.Unavailable](err)
	if !ok || !strings.Contains(failed.Advice().String(), want) {
		t.Errorf("%s: %v, want *keeping.Unavailable that says %q", what, err, want)
	}
}

func TestAServerThatStaysAwayIsToldInWords(t *testing.T) {
	t.Parallel()
	proxy, store := behind(t, postgres.Options{Patience: 100 * time.Millisecond})
	proxy.Away(true)
	change := &bot.Change{Facts: []bot.Fact{{Bucket: "b", Key: "k", Value: "v"}}}
	// finds that its connection is gone, and cannot know whether the server had the change
	_, err := store.Apply(t.Context(), change)
	unavailable(t, "the first change", err, "the connection to the server was lost")
	_, err = store.Apply(t.Context(), change)
	unavailable(t, "a change", err, "check that it runs")
	_, err = store.Fact(t.Context(), "b", "k", time.Now())
	unavailable(t, "a read", err, "check that it runs")
	unavailable(t, "health", store.Healthy(t.Context()), "check that it runs")
	proxy.Away(false)
	check(t, store.Healthy(t.Context()))
	check(t, store.Healthy(t.Context()))
}

// TestNobodyKnowsWhatBecameOfAChange: when the answer is lost and the server does not come back, the error says that it
// may have been stored.
func TestNobodyKnowsWhatBecameOfAChange(t *testing.T) {
	t.Parallel()
	proxy, store := behind(t, postgres.Options{Patience: 100 * time.Millisecond})
	s := &steps{tb: t, store: store}
	s.play()
	proxy.Break(func([]byte) pgtest.Broken {
		go proxy.Away(true)
		return pgtest.After
	})
	_, err := store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{{Bucket: "b", Key: "k", Value: "v"}}})
	unavailable(t, "a change without an answer", err, "may have been stored")
}

func TestAServerThatCanOnlyBeReadIsToldInWords(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	proxy := pgtest.NewProxy(t, cluster)
	name := cluster.Database(t, "")
	store := open(t, postgres.Options{URL: proxy.URL(name), Patience: 200 * time.Millisecond})
	change := &bot.Change{Facts: []bot.Fact{{Bucket: "b", Key: "k", Value: "v"}}}
	_, err := store.Apply(t.Context(), change)
	check(t, err)
	check(t, cluster.Exec(t.Context(), "postgres", "ALTER DATABASE "+name+" SET default_transaction_read_only = on"))
	proxy.Cut()
	_, err = store.Lane(t.Context(), session)
	unavailable(t, "a read", err, "is read-only")
	_, err = store.Apply(t.Context(), change)
	unavailable(t, "a change", err, "is read-only")
	unavailable(t, "health", store.Healthy(t.Context()), "is read-only")
	check(t, cluster.Exec(t.Context(), "postgres", "ALTER DATABASE "+name+" SET default_transaction_read_only = off"))
	check(t, store.Healthy(t.Context()))
	_, err = store.Apply(t.Context(), change)
	check(t, err)
}

// TestChangesThatMeetInACircleAreRepeated: two handles insert the same keys in opposite orders, which the server calls
// a deadlock.
func TestChangesThatMeetInACircleAreRepeated(t *testing.T) {
	t.Parallel()
	one, two := handles(t)
	const arrivals = 40
	for round := range 5 {
		errs := race(func(store *postgres.Store) error {
			var change bot.Change
			for i := range arrivals {
				if store == two {
					i = arrivals - 1 - i
				}
				change.Arrive = append(change.Arrive, bot.Arrival{Channel: "telegram", Bot: "1", ID: fmt.Sprint(round, "-", i), Session: session})
			}
			_, err := store.Apply(t.Context(), &change)
			return err
		}, one, two)
		check(t, errors.Join(errs...))
	}
	counts, err := one.Counts(t.Context(), "telegram", "1")
	check(t, err)
	if counts.Queued != 5*arrivals {
		t.Errorf("%d arrivals, want %d", counts.Queued, 5*arrivals)
	}
}
