//go:build unix

package bench_test

import (
	"context"
	"database/sql" //nolint:depguard // years of work are written directly into the database file
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// Sizes of an old database: a million entries in the journals.
const (
	oldSessions = 100_000
	oldTurns    = 5 // of each session, with two entries each
	idleFor     = 10 * time.Second
)

// age fills the database in dir with what a service stores for sessions × turns: it plays one turn, then copies every
// row that this has produced. It returns the number of entries in the journals.
func age(ctx context.Context, tb testing.TB, path, dir string, sessions, turns int) (entries int, err error) {
	tb.Helper()
	w := newWorld(tb, 1)
	p, _, err := start(ctx, tb, path, dir, mirror(tb, 0), w)
	if err != nil {
		return 0, err
	}
	_, err = turn(ctx, w, person(0), "What is the weather like in Lisbon in November, and what should I pack for a week?")
	if err = errors.Join(err, p.end(ctx)); err != nil {
		return 0, err
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "zephbot.db"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	for _, pragma := range []string{"synchronous = OFF", "temp_store = MEMORY", "cache_size = -100000"} {
		if _, err := db.ExecContext(ctx, "PRAGMA "+pragma); err != nil {
			return 0, err
		}
	}
	if err := multiply(ctx, db, sessions, turns); err != nil {
		return 0, err
	}
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM journal").Scan(&entries)
	return entries, err
}

// multiply turns the rows of one session, and of its one turn, into those of many. The turn also gets other names: a
// new world counts its updates from the beginning.
func multiply(ctx context.Context, db *sql.DB, sessions, turns int) error {
	var name string
	if err := db.QueryRowContext(ctx, "SELECT json_extract(body, '$.turn') FROM journal").Scan(&name); err != nil {
		return err
	}
	first := fmt.Sprint(person(0))
	// The owner of a row: the first person's number is replaced by another one wherever it occurs.
	whose := func(column string) string {
		return fmt.Sprintf("replace(%s, '%s', CAST(%s + s.i AS TEXT))", column, first, first)
	}
	which := func(column string) string {
		return fmt.Sprintf("replace(%s, '%s', 'old-' || s.i || '-' || t.i)", column, name)
	}
	for _, table := range []struct {
		name    string
		turns   int
		changes map[string]string
	}{
		{"lane", 1, map[string]string{"session": whose("session"), "chat": whose("chat"), "last": fmt.Sprint(2 * turns), "caller": whose("caller")}},
		{"journal", turns, map[string]string{"session": whose("session"), "n": "n + 2 * t.i", "body": which("body")}},
		{"inbox", turns, map[string]string{"seq": "NULL", "id": "'old-' || s.i || '-' || t.i", "session": whose("session")}},
		{"outbox", turns, map[string]string{
			"id": "NULL", "key": which("key"), "turn": which("turn"), "session": whose("session"), "chat": whose("chat"),
		}},
		{"charge", 1, map[string]string{"key": which(whose("key")), "scope": whose("scope")}},
	} {
		columns, err := columnsOf(ctx, db, table.name)
		if err != nil {
			return err
		}
		values := slices.Clone(columns)
		for i, column := range columns {
			if change, ok := table.changes[column]; ok {
				values[i] = change
			}
		}
		for _, statement := range []string{
			fmt.Sprintf("CREATE TEMP TABLE model AS SELECT * FROM main.%s", table.name),
			fmt.Sprintf("DELETE FROM main.%s", table.name),
			fmt.Sprintf(`WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < %d),
				t(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM t WHERE i < %d)
				INSERT OR IGNORE INTO main.%s (%s) SELECT %s FROM s, t, temp.model ORDER BY s.i, t.i`,
				sessions-1, table.turns-1, table.name, strings.Join(columns, ", "), strings.Join(values, ", ")),
			"DROP TABLE temp.model",
		} {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", table.name, err)
			}
		}
	}
	return nil
}

func columnsOf(ctx context.Context, db *sql.DB, table string) (columns []string, err error) {
	rows, err := db.QueryContext(ctx, "SELECT name FROM pragma_table_info(?)", table)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close(), rows.Err()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		columns = append(columns, name)
	}
	return columns, nil
}

// aged is what was measured for a young and an old service.
type aged struct {
	young, old []time.Duration // turns
	first      time.Duration   // turn of the old one after its start
	start      time.Duration   // to its first poll
	idle       float64         // of one core, while nobody talks with it
	memory     float64         // in MB, before anybody does
}

// compare starts the old service in dir and a young one, and has both answer alternately.
//
// In PostgreSQL, the databases are named by their URLs, the young one first.
func compare(ctx context.Context, tb testing.TB, path, dir string, turns int, idle time.Duration, urls ...string) (got aged, err error) {
	tb.Helper()
	model := mirror(tb, 0)
	worlds := []*world{newWorld(tb, talkers), newWorld(tb, talkers)}
	for i, url := range urls {
		worlds[i].environment = append(worlds[i].environment, "ZEPH_DATABASE_URL="+url)
	}
	young, _, err := start(ctx, tb, path, tb.TempDir(), model, worlds[0])
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, young.end(ctx)) }()
	var old *process
	if old, got.start, err = start(ctx, tb, path, dir, model, worlds[1]); err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, old.end(ctx)) }()
	if got.first, err = turn(ctx, worlds[1], person(0), "hello again"); err != nil {
		return got, err
	}
	if got.memory, err = old.memory("VmRSS"); err != nil {
		return got, err
	}
	for i := range turns {
		for k, list := range []*[]time.Duration{&got.young, &got.old} {
			took, err := turn(ctx, worlds[k], person(i%talkers), fmt.Sprint("hello ", i))
			if err != nil {
				return got, err
			}
			*list = append(*list, took)
		}
	}
	slices.Sort(got.young)
	slices.Sort(got.old)
	before, err := old.cpu()
	if err != nil {
		return got, err
	}
	wait(ctx, idle)
	after, err := old.cpu()
	got.idle = float64(after-before) / float64(idle)
	return got, err
}

// BenchmarkAge compares a service that has worked for a long time with a young one: 100 000 sessions with a million
// entries in their journals, half a million incoming and half a million outgoing messages.
func BenchmarkAge(b *testing.B) {
	ctx, path := b.Context(), program(b)
	b.Run(sqlite, func(b *testing.B) {
		dir := b.TempDir()
		if _, err := age(ctx, b, path, dir, oldSessions, oldTurns); err != nil {
			b.Fatal(err)
		}
		reportAge(b, path, dir)
	})
	b.Run(postgres, func(b *testing.B) {
		cluster, err := pgtest.Start(durable...)
		if err != nil {
			b.Fatal(err)
		}
		// Registered before the databases are created: they are dropped first.
		b.Cleanup(func() {
			if err := cluster.Close(); err != nil {
				b.Error(err)
			}
		})
		dir, young, old := b.TempDir(), cluster.Database(b, ""), cluster.Database(b, "")
		if _, err := agePostgres(ctx, b, path, dir, cluster, old, oldSessions, oldTurns); err != nil {
			b.Fatal(err)
		}
		reportAge(b, path, dir, cluster.URL(young), cluster.URL(old))
	})
}

// reportAge compares in a loop and reports the last comparison.
func reportAge(b *testing.B, path, dir string, urls ...string) {
	b.Helper()
	var got aged
	for b.Loop() {
		var err error
		if got, err = compare(b.Context(), b, path, dir, 400, idleFor, urls...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(millis(quantile(got.old, 0.5)), "p50-ms")
	b.ReportMetric(float64(quantile(got.old, 0.5))/float64(quantile(got.young, 0.5)), "x-young-p50")
	b.ReportMetric(millis(got.first), "first-turn-ms")
	b.ReportMetric(millis(got.start), "start-ms")
	b.ReportMetric(100*got.idle, "idle-cpu-%")
	b.ReportMetric(got.memory, "MB")
}
