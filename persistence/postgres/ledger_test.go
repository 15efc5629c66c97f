package postgres_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/persistence/storetest"
)

// fleet are processes that share a database. They end cleanly, which buries them at once, and live long otherwise: a server
// that died may be away for longer than a life on a busy machine.
type fleet struct {
	cluster *pgtest.Cluster
	url     string
	stores  map[string]*postgres.Store
}

func (f *fleet) Start(t *testing.T, owner string) bot.Store {
	t.Helper()
	store, err := postgres.Open(t.Context(), postgres.Options{URL: f.url, Owner: owner, Shared: true, Life: 15 * time.Second})
	check(t, err)
	f.stores[owner] = store
	return store
}

func (f *fleet) Bury(t *testing.T, owner string) {
	t.Helper()
	check(t, f.stores[owner].Close())
	delete(f.stores, owner)
}

func (*fleet) Most() int { return 2 }

func (f *fleet) Crash(t *testing.T) bool {
	t.Helper()
	if testing.Short() {
		return false
	}
	check(t, f.cluster.Crash())
	until(t, "the server answers again", func() bool { return pgtest.Exec(t.Context(), f.url, "SELECT 1") == nil })
	return true
}

func TestMoney(t *testing.T) {
	t.Parallel()
	pgtest.Shared(t) // skips the test if there is no PostgreSQL
	cluster, err := pgtest.Start()
	check(t, err)
	t.Cleanup(func() { check(t, cluster.Close()) })
	f := &fleet{cluster: cluster, url: cluster.URL(cluster.Database(t, "")), stores: map[string]*postgres.Store{}}
	t.Cleanup(func() {
		for _, store := range f.stores {
			_ = store.Close()
		}
	})
	storetest.Money(t, f)
}

// TestTheMoneyOfTheSilentIsCharged: whoever buries a process whose beats have stopped charges what it had set aside, in the
// transaction that frees its lanes: whoever goes on with its turns is not in their way.
func TestTheMoneyOfTheSilentIsCharged(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	url := cluster.URL(cluster.Database(t, ""))
	one := open(t, postgres.Options{URL: url, Owner: "one", Shared: true, Life: shortLife})
	two := open(t, postgres.Options{URL: url, Owner: "two", Shared: true, Life: shortLife})
	aside := func(owner string, n int64) *bot.Change {
		return &bot.Change{Ledger: &bot.Ledger{Holder: owner, Owner: owner, Checked: true, Asides: []bot.Aside{
			{Scope: "user/1", Unit: "microusd", Day: "2026-03-01", N: n, OfDay: 100},
		}}}
	}
	_, err := one.Apply(t.Context(), aside("one", 60))
	check(t, err)
	if _, err := two.Apply(t.Context(), aside("two", 50)); err == nil {
		t.Fatal("what one has set aside was given to two")
	}
	one.Still(true)
	until(t, "what one had set aside is charged", func() bool {
		used, err := two.Used(t.Context(), "user/1", "microusd", "2026-03-01")
		check(t, err)
		return used == 60
	})
	_, err = two.Apply(t.Context(), aside("two", 40))
	check(t, err)
	wantBuried(t, one)
	if two.Older() {
		t.Error("a process of an older version lives")
	}
}

// TestHoldsAreLockedInOrder: whoever takes over a turn and whoever charges what no process has set aside any more lock
// the same rows, and neither ends in a deadlock.
func TestHoldsAreLockedInOrder(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	base := cluster.Database(t, "")
	store := open(t, postgres.Options{URL: cluster.URL(base), Owner: "one", Shared: true})
	// As in a large table: one finds the rows by their key, and the other in the order in which they were stored.
	check(t, cluster.Exec(t.Context(), base, `ALTER DATABASE `+base+` SET enable_bitmapscan = off`,
		`INSERT INTO hold SELECT 'h' || i, 'user/' || i, 'turns', '2026-03-01', 1, 'one', 't' FROM generate_series(1, 5000) i`, `ANALYZE hold`))
	conn, err := pgx.Connect(t.Context(), cluster.URL(base))
	check(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	const rounds, rows = 60, 300
	aside := func(owner string) error {
		_, err := conn.Exec(t.Context(), `SELECT put_aside('turn', $1, 'turn', scopes, array_fill('microusd'::text, ARRAY[$2::int]), array_fill('2026-03-01'::text, ARRAY[$2::int]),
			array_fill(5::bigint, ARRAY[$2::int]), '{}', '{}', '{}', '{}', '{}')
			FROM (SELECT ARRAY(SELECT 'user/' || lpad(i::text, 3, '0') FROM generate_series($2::int, 1, -1) i) AS scopes) AS a`, owner, rows)
		return err
	}
	for range rounds {
		check(t, aside("dead"))
		var both errgroup.Group
		both.Go(func() error { return aside("one") })
		both.Go(func() error {
			_, err := store.Recover(t.Context(), "one")
			return err
		})
		check(t, both.Wait())
	}
	left, err := cluster.Numbers(t.Context(), base, `SELECT count(*) FROM hold WHERE owner = 'dead'`)
	if err != nil || left[0] != 0 {
		t.Errorf("%v of a dead process are left, %v", left, err)
	}
}

// TestHoldsAreFoundByTheirOwner: what a dead process had set aside is charged without a walk over what others have.
func TestHoldsAreFoundByTheirOwner(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	base := cluster.Database(t, "")
	open(t, postgres.Options{URL: cluster.URL(base), Owner: "one", Shared: true})
	check(t, cluster.Exec(t.Context(), base,
		`INSERT INTO hold SELECT 'h' || i, 'user/' || i, 'turns', '2026-03-01', 1, 'one', 't' FROM generate_series(1, 20000) i`,
		`INSERT INTO hold SELECT 'd' || i, 'user/' || i, 'turns', '2026-03-01', 1, 'dead' || i % 2, 't' FROM generate_series(1, 100) i`, `ANALYZE`))
	conn, err := pgx.Connect(t.Context(), cluster.URL(base))
	check(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	queries := statements(t)
	for name, args := range map[string][]any{"chargeHolds": {"dead0"}, "chargeLost": nil} {
		check(t, pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
			walks := 0
			_, err := tx.Exec(t.Context(), queries[name], args...)
			err = cmp.Or(err, tx.QueryRow(t.Context(), `SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'hold'`).Scan(&walks))
			if walks > 0 {
				t.Errorf("%s walks over the table", name)
			}
			return err
		}))
	}
	left, err := cluster.Numbers(t.Context(), base, `SELECT count(*) FROM hold UNION ALL SELECT count(*) FROM charge WHERE key LIKE 'lost/d%'`)
	if err != nil || !slices.Equal(left, []int64{20000, 100}) {
		t.Errorf("left and charged: %v, %v", left, err)
	}
}
