//go:build unix

package bench_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// agePostgres is age for a PostgreSQL database. At the end the server analyzes its tables, as it does by itself over
// the years.
func agePostgres(ctx context.Context, tb testing.TB, path, dir string, cluster *pgtest.Cluster, database string, sessions, turns int) (entries int64, err error) {
	tb.Helper()
	w := newWorld(tb, 1)
	w.environment = append(w.environment, "ZEPH_DATABASE_URL="+cluster.URL(database))
	p, _, err := start(ctx, tb, path, dir, mirror(tb, 0), w)
	if err != nil {
		return 0, err
	}
	_, err = turn(ctx, w, person(0), "What is the weather like in Lisbon in November, and what should I pack for a week?")
	if err = errors.Join(err, p.end(ctx)); err != nil {
		return 0, err
	}
	if err := cluster.Exec(ctx, database, multiplied(sessions, turns)...); err != nil {
		return 0, err
	}
	counts, err := cluster.Numbers(ctx, database, "SELECT count(*) FROM journal")
	if err != nil {
		return 0, err
	}
	return counts[0], nil
}

// multiplied are the statements that do what multiply does.
func multiplied(sessions, turns int) []string {
	whose := func(column string) string {
		return fmt.Sprintf("replace(m.%s, '%d', (%d + s)::text)", column, person(0), person(0))
	}
	which := func(text string) string {
		return fmt.Sprintf("replace(%s, (SELECT name FROM began), 'old-' || s || '-' || t)", text)
	}
	statements := []string{"CREATE TABLE began AS SELECT convert_from(body, 'UTF8')::jsonb->>'turn' AS name FROM journal LIMIT 1"}
	for _, table := range []struct {
		name    string
		turns   int
		changes string // pairs of a column and its value
	}{
		{"lane", 1, fmt.Sprintf("'session', %s, 'chat', %s, 'caller', %s, 'last', %d", whose("session"), whose("chat"), whose("caller"), 2*turns)},
		{"journal", turns, fmt.Sprintf("'session', %s, 'n', m.n + 2 * t, 'body', convert_to(%s, 'UTF8')", whose("session"), which("convert_from(m.body, 'UTF8')"))},
		{"inbox", turns, fmt.Sprintf("'session', %s, 'id', 'old-' || s || '-' || t, 'seq', nextval(pg_get_serial_sequence('inbox', 'seq'))", whose("session"))},
		{"outbox", turns, fmt.Sprintf(
			"'session', %s, 'chat', %s, 'key', %s, 'turn', %s, 'id', nextval(pg_get_serial_sequence('outbox', 'id'))",
			whose("session"), whose("chat"), which("m.key"), which("m.turn"),
		)},
		{"charge", 1, fmt.Sprintf("'key', %s, 'scope', %s", which(whose("key")), whose("scope"))},
	} {
		statements = append(
			statements,
			fmt.Sprintf("CREATE TABLE model AS SELECT * FROM %s", table.name),
			fmt.Sprintf("DELETE FROM %s", table.name),
			fmt.Sprintf(`INSERT INTO %s SELECT made.* FROM generate_series(0, %d) s, generate_series(0, %d) t, model m,
				LATERAL jsonb_populate_record(m::text::%s, jsonb_build_object(%s)) made ON CONFLICT DO NOTHING`,
				table.name, sessions-1, table.turns-1, table.name, table.changes),
			"DROP TABLE model",
		)
	}
	return append(statements, "DROP TABLE began", "VACUUM ANALYZE")
}
