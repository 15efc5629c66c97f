package postgres_test

import (
	"testing"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/persistence/storetest"
)

// fleet are processes that share a database. They end cleanly, which buries them at once.
type fleet struct {
	url    string
	stores map[string]*postgres.Store
}

func (f *fleet) Start(t *testing.T, owner string) bot.Store {
	t.Helper()
	store, err := postgres.Open(t.Context(), postgres.Options{URL: f.url, Owner: owner, Shared: true})
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

func TestMoney(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	f := &fleet{url: cluster.URL(cluster.Database(t, "")), stores: map[string]*postgres.Store{}}
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
