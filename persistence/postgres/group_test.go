package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// crowd returns players of chats of their own.
func crowd(tb testing.TB, store bot.Store, chats int) []*steps {
	tb.Helper()
	people := make([]*steps, chats)
	for i := range people {
		people[i] = &steps{tb: tb, store: store, place: bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: fmt.Sprint(i + 1)}}
	}
	return people
}

// TestManyChangesAreFewTransactions: what waits meanwhile is committed together.
func TestManyChangesAreFewTransactions(t *testing.T) {
	t.Parallel()
	var commits, changes, most atomic.Int64
	hooks := keeping.Hooks{AfterCommit: func(made []*bot.Change) {
		commits.Add(1)
		changes.Add(int64(len(made)))
		for n := int64(len(made)); n > most.Load(); {
			most.Store(n)
		}
	}}
	cluster := pgtest.Shared(t)
	proxy := pgtest.NewProxy(t, cluster)
	proxy.Far(2 * time.Millisecond)
	store := open(t, postgres.Options{URL: proxy.URL(cluster.Database(t, "")), Hooks: hooks})
	const chats, turns = 200, 5
	var wg sync.WaitGroup
	for _, person := range crowd(t, store, chats) {
		wg.Go(func() {
			for range turns {
				person.play()
			}
		})
	}
	wg.Wait()
	if got := changes.Load(); got != 3*chats*turns {
		t.Errorf("%d Changes were reported, want %d", got, 3*chats*turns)
	}
	if each := float64(commits.Load()) / (chats * turns); each > 0.5 {
		t.Errorf("a turn took %.2f commits, want at most 0.5", each)
	}
	if most.Load() > 64 {
		t.Errorf("a transaction had %d Changes, want at most 64", most.Load())
	}
}

// TestARefusedChangeSparesItsGroup: Changes that are refused by the rules, by what another process has stored, or by the
// server because of what is in them, are made by none and keep no other from being made.
func TestARefusedChangeSparesItsGroup(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	url := cluster.URL(cluster.Database(t, ""))
	store := open(t, postgres.Options{URL: url, Owner: "a", Shared: true})
	other := open(t, postgres.Options{URL: url, Owner: "b", Shared: true})
	const chats = 120
	long := strings.Builder{}
	for random := rand.New(rand.NewPCG(1, 1)); long.Len() < 20000; { // not to be compressed
		fmt.Fprint(&long, random.Uint64())
	}
	people := crowd(t, store, chats)
	for _, person := range people {
		person.play()
	}
	for i := 1; i < chats; i += 4 { // what the first process remembers of these is out of date
		people[i].store = other
		people[i].play()
		people[i].store = store
	}
	var wg sync.WaitGroup
	for i, person := range people {
		wg.Go(func() {
			chat, fence := person.place.Chat, person.lane.Fence
			switch i % 4 {
			case 2: // a lease that it does not have
				_, err := store.Apply(t.Context(), &bot.Change{
					Lease: &bot.Lease{Session: bot.SessionKey("telegram/1/bot/" + chat + "/0/" + chat), Fence: fence + 1},
					Lanes: []bot.LaneUpdate{{Session: bot.SessionKey("telegram/1/bot/" + chat + "/0/" + chat), Release: true}},
				})
				if err == nil {
					t.Errorf("chat %s: a Change without the lease was made", chat)
				}
			case 3: // a key that is too long for the server's index
				_, err := store.Apply(t.Context(), &bot.Change{Charges: []bot.Charge{{Key: chat + long.String(), Scope: "user/" + chat, Unit: "turns", Day: "2026-03-01", N: 1}}})
				if err == nil {
					t.Errorf("chat %s: the server stored a key that is too long", chat)
				}
			}
			person.play()
		})
	}
	wg.Wait()
	for i, person := range people {
		turns := 2
		if i%4 == 1 {
			turns = 3
		}
		entries, err := store.Journal(t.Context(), bot.SessionKey("telegram/1/bot/"+person.place.Chat+"/0/"+person.place.Chat), 0)
		check(t, err)
		if len(entries) != 2*turns {
			t.Errorf("chat %s has %d entries, want %d", person.place.Chat, len(entries), 2*turns)
		}
	}
}

// TestGroupsAreMadeOnceThroughCuts breaks one piece in six while many chats have turns. The seed of a failing run is in
// its name.
func TestGroupsAreMadeOnceThroughCuts(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
		proxy, store := behind(t, postgres.Options{Patience: time.Minute})
		random := rand.New(rand.NewPCG(seed, 0))
		const chats, turns = 40, 3
		people := crowd(t, store, chats)
		for _, person := range people {
			person.play()
		}
		proxy.Break(func([]byte) pgtest.Broken { // called by one at a time
			switch random.IntN(12) {
			case 0:
				return pgtest.Before
			case 1:
				return pgtest.After
			}
			return pgtest.Whole
		})
		var wg sync.WaitGroup
		for _, person := range people {
			wg.Go(func() {
				for range turns {
					person.play()
				}
			})
		}
		wg.Wait()
		proxy.Break(nil)
		for _, person := range people {
			session := bot.SessionKey("telegram/1/bot/" + person.place.Chat + "/0/" + person.place.Chat)
			entries, err := store.Journal(t.Context(), session, 0)
			check(t, err)
			rows, err := store.Rows(t.Context(), session, 0)
			check(t, err)
			if len(entries) != 2*(turns+1) || len(rows) != turns+1 {
				t.Errorf("chat %s: %d entries, %d rows after %d turns", person.place.Chat, len(entries), len(rows), turns+1)
			}
		}
		charged, err := store.Used(t.Context(), "user/7", "turns", "2026-03-01")
		check(t, err)
		if charged != chats*(turns+1) {
			t.Errorf("%d turns are charged, want %d", charged, chats*(turns+1))
		}
	})
}

// TestAWaitingChangeIsWithdrawn: whoever gives up while the groups before are on their way has changed nothing.
func TestAWaitingChangeIsWithdrawn(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}, 64), make(chan struct{})
	hooks := keeping.Hooks{BeforeCommit: func(changes []*bot.Change) {
		if len(changes[0].Charges) > 0 {
			entered <- struct{}{}
			<-leave
		}
	}}
	cluster := pgtest.Shared(t)
	store := open(t, postgres.Options{URL: cluster.URL(cluster.Database(t, "")), Hooks: hooks})
	charge := func(key string) *bot.Change {
		return &bot.Change{Charges: []bot.Charge{{Key: key, Scope: "user/1", Unit: "turns", Day: "2026-03-01", N: 1}}}
	}
	var wg sync.WaitGroup
	for i := range 2 { // as many groups as are on their way at once
		wg.Go(func() {
			_, err := store.Apply(t.Context(), charge(fmt.Sprint(i)))
			check(t, err)
		})
		<-entered
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := store.Apply(ctx, charge("late"))
		gone <- err
	}()
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("a Change that was given up: %v", err)
	}
	close(leave)
	wg.Wait()
	n, err := store.Used(t.Context(), "user/1", "turns", "2026-03-01")
	check(t, err)
	if n != 2 {
		t.Errorf("%d are charged, want 2", n)
	}
}
