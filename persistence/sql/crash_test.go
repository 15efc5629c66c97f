package sql_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/sql"
)

// crashFile names the database of TestCrashChild; the test does nothing without it.
const crashFile = "ZEPHBOT_TEST_CRASH_FILE"

func crashSession(n int) bot.SessionKey {
	return bot.SessionKey(fmt.Sprintf("telegram/1/bot/%d/0/0", n))
}

// TestCrashChild writes Changes from many goroutines and prints each when it is acknowledged, until it is killed.
func TestCrashChild(t *testing.T) {
	path := os.Getenv(crashFile)
	if path == "" {
		return // it runs as the child of TestAKillLosesNothingAcknowledged
	}
	store := open(t, sql.Options{Path: path})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for n := w; ; n += 8 {
				session := crashSession(n)
				_, err := store.Apply(t.Context(), &bot.Change{
					Claim:  &bot.Claim{Session: session, Place: bot.Place{Channel: "telegram", Bot: "1"}, Owner: "child"},
					Arrive: []bot.Arrival{{Channel: "telegram", Bot: "1", ID: fmt.Sprint(n), Session: session, Raw: []byte("raw")}},
					Append: &bot.Append{Session: session, Entries: []journal.Entry{{Text: "one"}, {Text: "two"}}},
					Send:   []bot.Row{{Session: session, Key: string(session)}},
					Facts:  []bot.Fact{{Bucket: "b", Key: fmt.Sprint(n), Value: "v"}},
				})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := fmt.Fprintf(os.Stdout, "acknowledged %d\n", n); err != nil {
					return // the parent is gone
				}
			}
		})
	}
	wg.Wait()
}

func TestAKillLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	for _, after := range []int{1, 40} { // killed after so many answers
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "zephbot.db")
			acknowledged := killed(t, path, after)
			store := open(t, sql.Options{Path: path})
			if freed, err := store.Recover(t.Context(), "parent"); err != nil || freed < int64(len(acknowledged)) {
				t.Errorf("recover freed %d leases (%v), want at least %d", freed, err, len(acknowledged))
			}
			last := 0
			for n := range acknowledged {
				last = max(last, n)
				if parts(t, store, n) != 5 {
					t.Errorf("acknowledged change %d: %d of its 5 parts are there", n, parts(t, store, n))
				}
			}
			for n := range last + 100 {
				if got := parts(t, store, n); got != 0 && got != 5 {
					t.Errorf("change %d: %d of its 5 parts are there", n, got)
				}
			}
		})
	}
}

// killed runs the child, kills it after some answers and gives all that it said were stored.
func killed(t *testing.T, path string, after int) map[int]bool {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCrashChild$")
	child.Env = append(os.Environ(), crashFile+"="+path)
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	acknowledged := map[int]bool{}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		var n int
		if _, err := fmt.Sscanf(lines.Text(), "acknowledged %d", &n); err != nil {
			continue // the last line may be cut off
		}
		acknowledged[n] = true
		if len(acknowledged) == after {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := child.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
	if len(acknowledged) < after {
		t.Fatalf("the child acknowledged %d changes only", len(acknowledged))
	}
	return acknowledged
}

// parts counts what is there of a child's change: lane, arrival, journal, row, fact.
func parts(t *testing.T, store *sql.Store, n int) (found int) {
	t.Helper()
	session := crashSession(n)
	lane, err := store.Lane(t.Context(), session)
	check(t, err)
	arrivals, err := store.Next(t.Context(), session, 0)
	check(t, err)
	entries, err := store.Journal(t.Context(), session, 0)
	check(t, err)
	rows, err := store.Rows(t.Context(), session, 0)
	check(t, err)
	for _, there := range []bool{lane.Fence == 1 && lane.Last == 2, len(arrivals) == 1, len(entries) == 2, len(rows) == 1, has(t, store, fmt.Sprint(n))} {
		if there {
			found++
		}
	}
	return found
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// migrateFile names the database of TestMigrateChild; the test does nothing without it.
const migrateFile = "ZEPHBOT_TEST_MIGRATE_FILE"

// TestMigrateChild brings a database up to date.
func TestMigrateChild(t *testing.T) {
	path := os.Getenv(migrateFile)
	if path == "" {
		return // it runs as the child of TestAMigrationIsKilledAnywhere
	}
	check(t, open(t, sql.Options{Path: path}).Close())
}

// TestAMigrationIsKilledAnywhere kills a process that migrates, a little later each time: the next one completes the
// schema.
func TestAMigrationIsKilledAnywhere(t *testing.T) {
	t.Parallel()
	whole := filepath.Join(t.TempDir(), "zephbot.db")
	check(t, open(t, sql.Options{Path: whole}).Close())
	want := schemaOf(t, whole)
	const steps = 40
	var took time.Duration
	for i := range steps + 1 {
		path := filepath.Join(t.TempDir(), "zephbot.db")
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMigrateChild$")
		child.Env = append(os.Environ(), migrateFile+"="+path)
		began := time.Now()
		check(t, child.Start())
		var killer *time.Timer
		if i > 0 { // the first shows how long it takes
			killer = time.AfterFunc(took*time.Duration(i)/steps, func() { _ = child.Process.Kill() })
		}
		err := child.Wait()
		if i == 0 {
			check(t, err)
			took = time.Since(began)
			continue
		}
		killer.Stop()
		check(t, open(t, sql.Options{Path: path}).Close())
		if diff := cmp.Diff(want, schemaOf(t, path)); diff != "" {
			t.Errorf("killed after %d of %d parts of %v (-whole +killed):\n%s", i, steps, took, diff)
		}
	}
}
