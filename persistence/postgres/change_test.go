package postgres_test

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

const session = "telegram/1/bot/7/0/7"

var place = bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: "7"}

// handles opens two stores on one database, as two processes would.
func handles(tb testing.TB) (one, two *postgres.Store) {
	tb.Helper()
	cluster := pgtest.Shared(tb)
	url := cluster.URL(cluster.Database(tb, ""))
	return open(tb, postgres.Options{URL: url}), open(tb, postgres.Options{URL: url})
}

// steps are the Changes of a turn: a message comes and begins a turn, the answer ends it, and is sent.
type steps struct {
	tb    testing.TB
	store bot.Store
	turn  int
	lane  bot.Lane
	place bot.Place // that of the session; the zero value = place
}

func (s *steps) apply(change *bot.Change) *bot.Applied {
	s.tb.Helper()
	applied, err := s.store.Apply(s.tb.Context(), change)
	check(s.tb, err)
	return applied
}

func (s *steps) play() {
	s.tb.Helper()
	s.turn++
	place := cmp.Or(s.place, place)
	session := bot.SessionKey(fmt.Sprintf("telegram/1/bot/%s/0/%[1]s", place.Chat))
	now, turn, idle, running, none := time.Now(), fmt.Sprint("t", place.Chat, "/", s.turn), bot.Idle, bot.Running, ""
	began := s.apply(&bot.Change{
		Arrive:  []bot.Arrival{{Channel: "telegram", Bot: "1", ID: turn, Session: session, Raw: []byte("{}"), At: now}},
		Claim:   &bot.Claim{Session: session, Place: place, Fence: s.lane.Fence, Owner: "me", Now: now, Until: now.Add(time.Minute), Arrives: true},
		Append:  &bot.Append{Session: session, After: s.lane.Last, Entries: []journal.Entry{{Turn: turn, Kind: journal.UserEntry, At: now, Text: "hello"}}},
		Lanes:   []bot.LaneUpdate{{Session: session, State: &running, Turn: &turn, Since: &now}},
		Charges: []bot.Charge{{Key: turn, Scope: "user/7", Unit: "turns", Day: "2026-03-01", N: 1}},
	})
	s.lane.Fence = began.Fence
	answered := s.apply(&bot.Change{
		Lease:  &bot.Lease{Session: session, Fence: s.lane.Fence},
		Append: &bot.Append{Session: session, After: s.lane.Last + 1, Entries: []journal.Entry{{Turn: turn, Kind: journal.AnswerEntry, At: now, Text: "hi"}}},
		Lanes:  []bot.LaneUpdate{{Session: session, State: &idle, Turn: &none, Release: true}},
		Done:   began.Seqs,
		Send:   []bot.Row{{Session: session, Turn: turn, Place: place, Purpose: bot.Final, Key: turn, State: bot.Sending, Content: bot.Content{Text: "hi"}}},
	})
	s.lane.Last += 2
	moved := s.apply(&bot.Change{Rows: []bot.RowUpdate{{ID: answered.Rows[0], From: []bot.RowState{bot.Sending}, To: bot.Sent, Message: "9"}}})
	if !moved.Moved[0] {
		s.tb.Error("the row was not sent")
	}
}

// TestEachChangeOfATurnIsOneTrip counts them by a proxy. The first turn prepares the statements, on each connection
// that it uses.
func TestEachChangeOfATurnIsOneTrip(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	proxy := pgtest.NewProxy(t, cluster)
	store := open(t, postgres.Options{URL: proxy.URL(cluster.Database(t, "")) + "&pool_max_conns=1"})
	s := &steps{tb: t, store: store}
	s.play()
	s.play()
	before := proxy.Trips()
	const turns = 10
	for range turns {
		s.play()
	}
	if got := proxy.Trips() - before; got != 3*turns {
		t.Errorf("%d turns of three changes took %d trips", turns, got)
	}
}

func TestTwoHandlesClaimOneLaneOnce(t *testing.T) {
	t.Parallel()
	one, two := handles(t)
	const rounds = 20
	for fence := range int64(rounds) {
		now := time.Now()
		won := race(func(store *postgres.Store) error {
			_, err := store.Apply(t.Context(), &bot.Change{Claim: &bot.Claim{
				Session: session, Place: place, Fence: fence, Owner: "me", Now: now, Until: now.Add(-time.Hour),
			}})
			return err
		}, one, two)
		if won[0] == nil && won[1] == nil || won[0] != nil && won[1] != nil {
			t.Fatalf("round %d: %v", fence, won)
		}
		if err := errors.Join(won...); !errors.Is(err, bot.ErrLost) {
			t.Fatalf("round %d: %v, want ErrLost", fence, err)
		}
	}
}

// race does something on each store at the same time.
func race(do func(*postgres.Store) error, stores ...*postgres.Store) []error {
	errs := make([]error, len(stores))
	var all sync.WaitGroup
	for i, store := range stores {
		all.Go(func() { errs[i] = do(store) })
	}
	all.Wait()
	return errs
}

func TestTwoHandlesCountEveryVote(t *testing.T) {
	t.Parallel()
	one, two := handles(t)
	for round := range 10 {
		id := fmt.Sprint("q", round)
		_, err := one.Apply(t.Context(), &bot.Change{Ask: []bot.Approval{{ID: id, Session: session, Place: place, Needed: 2}}})
		check(t, err)
		var voters sync.Mutex
		by := []string{"ann", "ben"}
		errs := race(func(store *postgres.Store) error {
			voters.Lock()
			voter := by[0]
			by = by[1:]
			voters.Unlock()
			_, err := store.Apply(t.Context(), &bot.Change{Decide: []bot.Decision{{ID: id, State: bot.Open, By: voter, At: time.Now()}}})
			return err
		}, one, two)
		check(t, errors.Join(errs...))
		a, err := two.Approval(t.Context(), id)
		check(t, err)
		if a.State != bot.Approved || len(a.Votes) != 2 {
			t.Fatalf("round %d: %s with the votes of %v", round, a.State, a.Votes)
		}
	}
}

func TestTwoHandlesStoreOneArrivalAndOneKeyOnce(t *testing.T) {
	t.Parallel()
	one, two := handles(t)
	for round := range 20 {
		var mu sync.Mutex
		var seqs, ids []int64
		errs := race(func(store *postgres.Store) error {
			applied, err := store.Apply(t.Context(), &bot.Change{
				Arrive: []bot.Arrival{{Channel: "telegram", Bot: "1", ID: fmt.Sprint(round), Session: session}},
				Send:   []bot.Row{{Session: session, Place: place, Key: fmt.Sprint("k", round)}},
			})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				seqs, ids = append(seqs, applied.Seqs[0]), append(ids, applied.Rows[0])
			}
			return err
		}, one, two)
		check(t, errors.Join(errs...))
		if (seqs[0] == 0) == (seqs[1] == 0) || ids[0] != ids[1] {
			t.Fatalf("round %d: arrivals %v, rows %v", round, seqs, ids)
		}
	}
}

func TestTwoHandlesSetAFactOnce(t *testing.T) {
	t.Parallel()
	one, two := handles(t)
	for round := range 20 {
		var mu sync.Mutex
		set := 0
		errs := race(func(store *postgres.Store) error {
			applied, err := store.Apply(t.Context(), &bot.Change{FactsIf: []bot.Fact{{Bucket: "b", Key: fmt.Sprint(round), Value: "v"}}})
			mu.Lock()
			defer mu.Unlock()
			if err == nil && applied.Set[0] {
				set++
			}
			return err
		}, one, two)
		check(t, errors.Join(errs...))
		if set != 1 {
			t.Fatalf("round %d: set %d times", round, set)
		}
	}
}

// TestAMemoryThatIsOutOfDateDecidesNothing lets two handles take turns on one session: what each remembers is old every
// time.
func TestAMemoryThatIsOutOfDateDecidesNothing(t *testing.T) {
	t.Parallel()
	one, two := handles(t)
	s := &steps{tb: t, store: one}
	for i := range 6 {
		s.store = []bot.Store{one, two}[i%2]
		s.play()
	}
	stale := &bot.Change{Lease: &bot.Lease{Session: session, Fence: s.lane.Fence}, Facts: []bot.Fact{{Bucket: "b", Key: "k", Value: "v"}}}
	if _, err := one.Apply(t.Context(), stale); !errors.Is(err, bot.ErrLost) {
		t.Errorf("work on a lane that was given back: %v", err)
	}
	entries, err := two.Journal(t.Context(), session, 0)
	check(t, err)
	if len(entries) != 12 {
		t.Errorf("%d entries of six turns", len(entries))
	}
}

func TestTextsThatPostgreSQLRefuses(t *testing.T) {
	t.Parallel()
	store := fresh(t)
	value := "a\x00b\xff"
	_, err := store.Apply(t.Context(), &bot.Change{
		Facts:  []bot.Fact{{Bucket: "b", Key: "k", Value: value}},
		Arrive: []bot.Arrival{{Channel: "telegram", Bot: "1", ID: "1", Session: session, Raw: []byte(value)}},
		Ask:    []bot.Approval{{ID: "q", Session: session, Place: place, Caller: value}},
	})
	check(t, err)
	got, err := store.Fact(t.Context(), "b", "k", time.Now())
	check(t, err)
	queue, err := store.Next(t.Context(), session, 0)
	check(t, err)
	a, err := store.Approval(t.Context(), "q")
	check(t, err)
	if got != value || string(queue[0].Raw) != value || a.Caller != "a\uFFFDb\uFFFD" {
		t.Errorf("fact %q, arrival %q, caller %q", got, queue[0].Raw, a.Caller)
	}
}
