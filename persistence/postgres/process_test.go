package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// shortLife is the life of a process in tests: long enough for a machine that is busy with other tests.
const shortLife = time.Second

// until waits for a condition, for at most a minute.
func until(tb testing.TB, what string, so func() bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			tb.Fatalf("in vain: %s", what)
		case <-tick.C:
		}
	}
}

// count asks a database for a number.
func count(tb testing.TB, cluster *pgtest.Cluster, name, query string) (n int64) {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), cluster.URL(name))
	check(tb, err)
	defer func() { check(tb, conn.Close(tb.Context())) }()
	check(tb, conn.QueryRow(tb.Context(), query).Scan(&n))
	return n
}

// holdLock is the lock of versions without a table of processes.
const holdLock = 0x7a657068_00000002

// gone says whether a channel is closed.
func gone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func claimOf(owner string, fence int64) *bot.Change {
	now := time.Now()
	return &bot.Change{Claim: &bot.Claim{Session: session, Place: place, Fence: fence, Owner: owner, Now: now, Until: now.Add(time.Hour)}}
}

func factOf(value string) *bot.Change {
	return &bot.Change{Facts: []bot.Fact{{Bucket: "b", Key: "k", Value: value}}}
}

// wantBuried wants a Change refused because its process was buried.
func wantBuried(t *testing.T, store *postgres.Store) {
	t.Helper()
	_, err := store.Apply(t.Context(), factOf("of the dead"))
	if !errors.Is(err, keeping.ErrBuried) {
		t.Errorf("a Change of a process that was buried: %v", err)
	}
	unavailable(t, "a Change of a process that was buried", err, "restart this one")
	if !gone(store.Buried()) {
		t.Error("a process that was buried is not told")
	}
}

func TestADatabaseIsForOneOwner(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	url := cluster.URL(cluster.Database(t, ""))
	first := open(t, postgres.Options{URL: url, Owner: "first", Life: shortLife})
	_, err := first.Apply(t.Context(), claimOf("first", 0))
	check(t, err)
	for _, shared := range []bool{false, true} {
		_, err = postgres.Open(t.Context(), postgres.Options{URL: url, Owner: "second", Shared: shared, Life: shortLife, Log: zerolog.Nop()})
		unavailable(t, "a second owner", err, "another running zephbot has this database")
	}
	check(t, first.Close())
	_, err = first.Apply(t.Context(), &bot.Change{})
	if !errors.Is(err, keeping.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	second := open(t, postgres.Options{URL: url, Owner: "second", Life: shortLife})
	lane, err := second.Lane(t.Context(), session)
	check(t, err)
	if lane.Owner != "" || lane.Fence != 1 {
		t.Errorf("a process that ended left %+v", lane)
	}
}

// TestRecoverFreesLeasesOfTheGone: of owners that no process has, as versions without a table of processes left them.
func TestRecoverFreesLeasesOfTheGone(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	url := cluster.URL(cluster.Database(t, ""))
	one := open(t, postgres.Options{URL: url, Owner: "one", Shared: true})
	two := open(t, postgres.Options{URL: url, Owner: "two", Shared: true})
	for i, owner := range []string{"one", "two", "nobody"} {
		c := claimOf(owner, 0)
		c.Claim.Session = bot.SessionKey(fmt.Sprint(session, i))
		_, err := one.Apply(t.Context(), c)
		check(t, err)
	}
	freed, err := two.Recover(t.Context(), "two")
	check(t, err)
	if freed != 1 {
		t.Errorf("%d lanes were freed, want the one of nobody", freed)
	}
}

// TestWhoWasReplacedStoresNothing: the connections of a process are lost, and another one is started, which does not
// share the database with it.
func TestWhoWasReplacedStoresNothing(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	proxy := pgtest.NewProxy(t, cluster)
	name := cluster.Database(t, "")
	first := open(t, postgres.Options{URL: proxy.URL(name), Owner: "first"})
	_, err := first.Apply(t.Context(), factOf("v"))
	check(t, err)
	proxy.Cut()
	_, err = first.Apply(t.Context(), factOf("v"))
	check(t, err) // nobody has taken its place
	proxy.Away(true)
	second := open(t, postgres.Options{URL: cluster.URL(name), Owner: "second"})
	proxy.Away(false)
	until(t, "the first learns of it by its beat", func() bool { return gone(first.Buried()) })
	wantBuried(t, first)
	value, err := second.Fact(t.Context(), "b", "k", time.Now())
	check(t, err)
	if value != "v" {
		t.Errorf("the fact is %q", value)
	}
}

// TestTheSilentAreBuried: what a process had is free soon after its last beat, and it can store nothing any more,
// whatever its clock says.
func TestTheSilentAreBuried(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	url := cluster.URL(cluster.Database(t, ""))
	fast, slow := func() time.Time { return time.Now().Add(time.Minute) }, func() time.Time { return time.Now().Add(-time.Minute) }
	one := open(t, postgres.Options{URL: url, Owner: "one", Shared: true, Life: shortLife, Now: fast})
	two := open(t, postgres.Options{URL: url, Owner: "two", Shared: true, Life: shortLife, Now: slow})
	living, err := one.Living(t.Context())
	check(t, err)
	if fmt.Sprint(living) != "[one two]" {
		t.Errorf("living are %v", living)
	}
	claim := claimOf("one", 0)
	claim.Claim.Now, claim.Claim.Until = fast(), fast().Add(time.Hour)
	claim.FactsIf = []bot.Fact{{Bucket: bot.LeaderBucket, Key: "telegram", Value: "one"}, {Bucket: bot.LeaderBucket, Key: "other", Value: "two"}}
	_, err = one.Apply(t.Context(), claim)
	check(t, err)
	if !one.Alive() || !two.Alive() {
		t.Error("a process that beats does not count as alive")
	}
	one.Still(true)
	at := time.Now()
	until(t, "the silent one is buried", func() bool {
		lane, err := two.Lane(t.Context(), session)
		check(t, err)
		if lane.Owner != "" {
			return false
		}
		if one.Alive() {
			t.Error("a process counts itself as alive when its work is free")
		}
		return true
	})
	t.Logf("the lane was free %v after the last beats, with a life of %v", time.Since(at), shortLife)
	leaders, err := two.FactsOf(t.Context(), bot.LeaderBucket, "", slow())
	check(t, err)
	if len(leaders) != 1 || leaders[0].Value != "two" {
		t.Errorf("leaders are %v", leaders)
	}
	one.Still(false)
	until(t, "it learns of it by its next beat", func() bool { return gone(one.Buried()) })
	wantBuried(t, one)
	if gone(two.Buried()) || !two.Alive() {
		t.Error("the other one does not live")
	}
	if living, err = two.Living(t.Context()); err != nil || fmt.Sprint(living) != "[two]" {
		t.Errorf("living are %v (%v)", living, err)
	}
}

// TestNothingIsStoredAfterABurial: a Change that is under way when its process is buried is stored before, or not at
// all.
func TestNothingIsStoredAfterABurial(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	name := cluster.Database(t, "")
	one := open(t, postgres.Options{URL: cluster.URL(name), Owner: "one", Shared: true, Life: shortLife})
	two := open(t, postgres.Options{URL: cluster.URL(name), Owner: "two", Shared: true, Life: shortLife})
	one.Still(true)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var stored []string
	for i := range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				key := fmt.Sprint(i, "-", n)
				if _, err := one.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{{Bucket: "changes", Key: key, Value: "v"}}}); err != nil {
					if !errors.Is(err, keeping.ErrBuried) {
						t.Errorf("change %s: %v", key, err)
					}
					return
				}
				mu.Lock()
				stored = append(stored, key)
				mu.Unlock()
			}
		})
	}
	seen := 0
	until(t, "the process is buried", func() bool {
		living, err := two.Living(t.Context())
		check(t, err)
		if len(living) > 1 {
			return false
		}
		// whoever sees that it is buried sees all that it ever stored
		facts, err := two.FactsOf(t.Context(), "changes", "", time.Now())
		check(t, err)
		seen = len(facts)
		return true
	})
	wg.Wait()
	facts, err := two.FactsOf(t.Context(), "changes", "", time.Now())
	check(t, err)
	if len(facts) != seen || len(stored) != seen {
		t.Errorf("%d changes were stored and told, %d seen with the burial, %d after it", len(stored), seen, len(facts))
	}
}

// TestEverybodyComesBackAfterAnOutage: nobody is buried because the server was away for longer than a life.
func TestEverybodyComesBackAfterAnOutage(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	proxy := pgtest.NewProxy(t, cluster)
	name := cluster.Database(t, "")
	var all []*postgres.Store
	for i := range 3 {
		all = append(all, open(t, postgres.Options{URL: proxy.URL(name), Owner: fmt.Sprint("p", i), Shared: true, Life: shortLife}))
	}
	proxy.Away(true)
	until(t, "nobody is sure to live", func() bool { return !all[0].Alive() && !all[1].Alive() && !all[2].Alive() })
	until(t, "every life is over", func() bool {
		over := count(t, cluster, name, `SELECT count(*) FROM process WHERE until <= (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint`)
		return over == 3
	})
	proxy.Away(false)
	until(t, "all live", func() bool { return all[0].Alive() && all[1].Alive() && all[2].Alive() })
	for i, store := range all {
		_, err := store.Apply(t.Context(), factOf(fmt.Sprint(i)))
		check(t, err)
	}
}

// TestOldVersionsAndNewOnesKeepEachOtherOut: a version without a table of processes holds the lock of one that has the
// database for itself, and its name in meta.
func TestOldVersionsAndNewOnesKeepEachOtherOut(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	name := cluster.Database(t, "")
	check(t, open(t, postgres.Options{URL: cluster.URL(name)}).Close())
	old, err := pgx.Connect(t.Context(), cluster.URL(name))
	check(t, err)
	_, err = old.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, int64(holdLock))
	check(t, err)
	check(t, cluster.Exec(t.Context(), name, `INSERT INTO meta (name, value) VALUES ('owner', 'old')`))
	for _, shared := range []bool{false, true} {
		_, err := postgres.Open(t.Context(), postgres.Options{URL: cluster.URL(name), Owner: "new", Shared: shared, Life: shortLife, Log: zerolog.Nop()})
		unavailable(t, "beside an old version", err, "another running zephbot has this database")
	}
	check(t, old.Close(t.Context()))
	open(t, postgres.Options{URL: cluster.URL(name), Owner: "new", Shared: true, Life: shortLife})
	named := count(t, cluster, name, `SELECT count(*) FROM meta WHERE name = 'owner' AND value = 'new'`)
	free := count(t, cluster, name, fmt.Sprintf(`SELECT pg_try_advisory_lock(%d)::int`, holdLock))
	if named != 1 || free != 0 {
		t.Errorf("an old version may store (%d) or start (%d)", 1-named, free)
	}
}
