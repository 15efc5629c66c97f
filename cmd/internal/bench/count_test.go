//go:build unix

package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/persistence/redis/redistest"
	"github.com/zephbot/zephbot/persistence/sql"
)

// tally counts the statements that a service sends to its database, and measures how long the disk takes to make
// commits durable. The latter is meaningful only for SQLite, whose commits happen one after another.
type tally struct {
	took    atomic.Int64
	commits atomic.Int64

	mu         sync.Mutex
	began      time.Time // of the newest commit
	statements map[string]int64
}

func (t *tally) hooks() sql.Hooks {
	return sql.Hooks{
		BeforeCommit: func([]*bot.Change) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.began = time.Now()
		},
		AfterCommit: func([]*bot.Change) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.took.Add(int64(time.Since(t.began)))
			t.commits.Add(1)
		},
		Statement: func(query string) {
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.statements == nil {
				t.statements = map[string]int64{}
			}
			t.statements[query]++
		},
	}
}

// reset sets all counts to zero.
func (t *tally) reset() {
	t.took.Store(0)
	t.commits.Store(0)
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.statements)
}

// perTurn returns how many statements each of n turns took, without those that did not run in nearly every turn because
// they run on a timer.
func (t *tally) perTurn(n int) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var sum int64
	for _, count := range t.statements {
		sum += (count + int64(n)/4) / int64(n)
	}
	return sum
}

// report lists the statements that run in a turn, for the message of a test.
func (t *tally) report(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for query, count := range t.statements {
		if count >= int64(n)*3/4 {
			fmt.Fprintf(&b, "%3d × %.100s\n", (count+int64(n)/4)/int64(n), strings.Join(strings.Fields(query), " "))
		}
	}
	return b.String()
}

// use is the resources that this process has used so far.
type use struct {
	allocations uint64
	written     int64 // bytes written to the disk
}

func used() (use, error) {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(sample)
	written, err := ioCounter("/proc/self/io", "write_bytes:")
	return use{sample[0].Value.Uint64(), written}, err
}

// add adds what was used between two measurements.
func (u *use) add(from, to use) {
	u.allocations += to.allocations - from.allocations
	u.written += to.written - from.written
}

// ioCounter reads one line of a file in /proc; 0 if the system has no such file.
func ioCounter(path, name string) (int64, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name); ok {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no line %s", path, name)
}

// turnCost is the cost of one turn with one call of the model, as counted over several turns.
type turnCost struct{ statements, commits, trips int64 }

// limits are turns, tokens and USD that nobody reaches, with prices.
func limits() []string {
	return []string{
		"ZEPH_LLM_PROVIDERS_MAIN_INPUT_USD_PER_MTOK=1", "ZEPH_LLM_PROVIDERS_MAIN_OUTPUT_USD_PER_MTOK=5",
		"ZEPH_QUOTAS_USER_USD_PER_DAY=1000", "ZEPH_QUOTAS_BOT_USD_PER_MONTH=10000",
		"ZEPH_QUOTAS_USER_TURNS_PER_DAY=10000", "ZEPH_QUOTAS_USER_TOKENS_PER_DAY=1000000000",
	}
}

// measureCost plays n turns one after another on a service whose counters are in a Redis that counts its commands.
func measureCost(ctx context.Context, tb testing.TB, n int, environment ...string) (turnCost, string) {
	tb.Helper()
	redis := redistest.Start(tb)
	w := newWorld(tb, 1)
	w.environment = append([]string{"ZEPH_REDIS_URL=" + redis.URL}, environment...)
	defer service().begin(ctx, tb, w, mirror(tb, 0))()
	medianCost(ctx, tb, w, 3, w.tally.commits.Load, redis.Trips) // warms up connections and caches
	w.tally.reset()
	commits, trips := medianCost(ctx, tb, w, n, w.tally.commits.Load, redis.Trips)
	return turnCost{w.tally.perTurn(n), commits, trips}, w.tally.report(n)
}

// medianCost plays n turns one after another and returns by how much each of two counters grew in the median turn,
// which is one in which nothing ran on a timer. The first counter is that of the store.
func medianCost(ctx context.Context, tb testing.TB, w *world, n int, store, other func() int64) (ofStore, ofOther int64) {
	tb.Helper()
	var grew [2][]int64
	for i := range n {
		before := [2]int64{store(), other()}
		if _, err := turn(ctx, w, person(0), fmt.Sprint("hello ", i)); err != nil {
			tb.Fatal(err)
		}
		awaitQuiet(store)
		grew[0], grew[1] = append(grew[0], store()-before[0]), append(grew[1], other()-before[1])
	}
	slices.Sort(grew[0])
	slices.Sort(grew[1])
	return grew[0][n/2], grew[1][n/2]
}

// awaitQuiet waits until a counter has stood still for 20 ms. A person who writes before their last answer is recorded
// as sent makes the next one wait for that, which costs one more commit.
func awaitQuiet(counter func() int64) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for seen, since := counter(), 0; since < 4; since++ {
		<-tick.C
		if now := counter(); now != seen {
			seen, since = now, 0
		}
	}
}

// Maximum costs of a turn with one call of the model. A change that makes a turn cheaper lowers them.
const (
	mostStatements = 17
	mostCommits    = 3
	mostTrips      = 0
	mostTripsOfAll = 3 // to PostgreSQL and Redis together

	// what limits cost besides
	statementsOfLimits = 1
	tripsOfLimits      = 2
)

// TestTurnTripsOnPostgreSQL counts every round trip of a turn, to PostgreSQL and to Redis, with a proxy in front of
// each.
func TestTurnTripsOnPostgreSQL(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environment []string
		most        int64
	}{
		"without limits": {nil, mostTripsOfAll},
		"with limits":    {limits(), mostTripsOfAll + tripsOfLimits},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			countTrips(t, c.environment, c.most)
		})
	}
}

// countTrips fails if a turn takes more round trips than most.
func countTrips(t *testing.T, environment []string, most int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cluster := pgtest.Shared(t)
	proxy := pgtest.NewProxy(t, cluster)
	redis := redistest.Start(t)
	w := newWorld(t, 1)
	w.environment = append([]string{
		"ZEPH_REDIS_URL=" + redis.URL, "ZEPH_DATABASE_URL=" + proxy.URL(cluster.Database(t, "")) + "&pool_max_conns=2",
	}, environment...)
	defer service().begin(ctx, t, w, mirror(t, 0))()
	const n = 40
	medianCost(ctx, t, w, n, proxy.Trips, redis.Trips) // each connection prepares each statement once
	w.tally.reset()
	postgres, other := medianCost(ctx, t, w, n, proxy.Trips, redis.Trips)
	t.Logf("trips of a turn: %d to PostgreSQL, %d to Redis", postgres, other)
	t.Logf("statements that run in a turn:\n%s", w.tally.report(n))
	if got := postgres + other; got > most {
		t.Errorf("a turn takes %d trips, at most %d are wanted", got, most)
	}
}

// TestTurnCost limits the counts of a turn, which do not depend on the machine.
func TestTurnCost(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, report := measureCost(ctx, t, 20)
	if got.statements > mostStatements || got.commits > mostCommits || got.trips > mostTrips {
		t.Errorf("a turn costs %+v, want at most %d statements, %d commits, %d trips to Redis\n%s", got, mostStatements, mostCommits, mostTrips, report)
	}
	if got.statements <= 0 || got.commits <= 0 {
		t.Errorf("a turn costs %+v: something is not counted", got)
	}
}

// TestTurnCostWithLimits: what a call may cost is set aside by the Changes that a turn makes anyway.
func TestTurnCostWithLimits(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, report := measureCost(ctx, t, 20, limits()...)
	if got.statements > mostStatements+statementsOfLimits || got.commits > mostCommits || got.trips > tripsOfLimits {
		t.Errorf("a turn costs %+v, want at most %d statements, %d commits, %d trips to Redis\n%s", got,
			mostStatements+statementsOfLimits, mostCommits, tripsOfLimits, report)
	}
}
