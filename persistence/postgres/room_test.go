package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// setAsideOf is a Change by which a holder sets aside n of an account with a limit a day.
func setAsideOf(owner, holder string, n, limit int64) *bot.Change {
	return &bot.Change{Ledger: &bot.Ledger{Holder: holder, Owner: owner, Checked: true, Asides: []bot.Aside{
		{Scope: "bot/1", Unit: "tokens", Day: "2026-03-01", N: n, OfDay: limit},
	}}}
}

// TestLittleOfMuchWaitsForNobody: who asks for little of an account of which less than half is used does not wait for
// others that do the same, and who asks for much, or later, does.
func TestLittleOfMuchWaitsForNobody(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	base := cluster.Database(t, "")
	store := open(t, postgres.Options{URL: cluster.URL(base), Owner: "one", Shared: true})
	conn, err := pgx.Connect(t.Context(), cluster.URL(base))
	check(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	other, err := conn.Begin(t.Context())
	check(t, err)
	_, err = other.Exec(t.Context(), `SELECT put_aside('other', 'two', 'turn', ARRAY['bot/1'], ARRAY['tokens'], ARRAY['2026-03-01'], ARRAY[10::bigint],
		ARRAY['bot/1'], ARRAY['tokens'], ARRAY['2026-03-01'], ARRAY[1000000::bigint], ARRAY[0::bigint])`)
	check(t, err)
	_, err = store.Apply(t.Context(), setAsideOf("one", "little", 10, 1_000_000))
	check(t, err) // it would wait for the transaction that is open
	waits := make(chan error, 1)
	go func() {
		_, err := store.Apply(t.Context(), setAsideOf("one", "much", 999_985, 1_000_000))
		waits <- err
	}()
	until(t, "much waits", func() bool {
		n, err := cluster.Numbers(t.Context(), base, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`)
		check(t, err)
		return n[0] > 0
	})
	check(t, other.Commit(t.Context()))
	if _, refused := errors.AsType[*bot.NoRoom](<-waits); !refused {
		t.Error("more was set aside than there is: what was not committed yet was not seen")
	}
	_, err = store.Apply(t.Context(), setAsideOf("one", "rest", 999_980, 1_000_000))
	check(t, err)
}

// TestManySmallReservations: at once, in three processes, as many reservations are granted as there is room for, those of
// the first half side by side.
func TestManySmallReservations(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	url := cluster.URL(cluster.Database(t, ""))
	const each, most, people = 7, 3000, 600
	var granted, refused atomic.Int64
	var wg sync.WaitGroup
	for p := range 3 {
		owner := fmt.Sprint("process ", p)
		store := open(t, postgres.Options{URL: url, Owner: owner, Shared: true})
		for i := range people / 3 {
			wg.Go(func() {
				_, err := store.Apply(t.Context(), setAsideOf(owner, fmt.Sprint(p, "/", i), each, most))
				if _, full := errors.AsType[*bot.NoRoom](err); full {
					refused.Add(1)
				} else if err != nil {
					t.Error(err)
				} else {
					granted.Add(1)
				}
			})
		}
	}
	wg.Wait()
	if granted.Load() != most/each || refused.Load() != people-most/each {
		t.Errorf("%d granted, %d refused; there is room for %d of %d", granted.Load(), refused.Load(), most/each, people)
	}
}
