package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/persistence/upgradetest"
)

// traces are what the stores of released schemas said, one file a schema.
const traces = "testdata/upgrade"

// newest is the schema of this program.
func newest(t *testing.T) int64 {
	t.Helper()
	files, err := filepath.Glob("migrations/*.sql")
	check(t, err)
	step, err := keeping.StepOf(files[len(files)-1]) // Glob sorts
	check(t, err)
	return step.Version
}

// voice is a connection of a store of the past: it prepares each statement once and keeps it.
type voice struct {
	*testing.T
	conn     *pgconn.PgConn
	prepared map[string]string
}

func speak(t *testing.T, url string) *voice {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), url)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) }) // the database is dropped
	return &voice{T: t, conn: conn, prepared: map[string]string{}}
}

// forget empties the tables.
func (v *voice) forget() {
	v.Helper()
	_, err := v.conn.Exec(v.Context(), `ROLLBACK; DO $$ BEGIN
		EXECUTE (SELECT 'TRUNCATE ' || string_agg(quote_ident(tablename), ', ') || ' RESTART IDENTITY' FROM pg_tables
			WHERE schemaname = 'public' AND tablename NOT LIKE 'goose%');
	END $$; INSERT INTO meta (name, value) VALUES ('blob_bytes', '0')`).ReadAll()
	check(v, err)
}

// replay says a section again and gives the answers.
func (v *voice) replay(section *upgradetest.Section) []string {
	v.Helper()
	v.forget()
	var answers []string
	for _, group := range section.Groups {
		answers = append(answers, v.say(group)...)
	}
	return answers
}

// say sends a group as a store does, in one trip, and gives the answers.
func (v *voice) say(group upgradetest.Group) []string {
	v.Helper()
	for _, run := range group {
		if _, ok := v.prepared[run.Query]; ok {
			continue
		}
		name := fmt.Sprint("s", len(v.prepared))
		if _, err := v.conn.Prepare(v.Context(), name, run.Query, nil); err != nil {
			return []string{said(run) + ": " + told(err)}
		}
		v.prepared[run.Query] = name
	}
	pipeline := v.conn.StartPipeline(v.Context())
	for _, run := range group {
		values, formats := wire(run.Args)
		pipeline.SendQueryPrepared(v.prepared[run.Query], values, formats, nil)
	}
	check(v, pipeline.Sync())
	var answers []string
	for _, run := range group {
		answer, err := result(pipeline)
		if err != nil {
			answers = append(answers, said(run)+": "+told(err))
			break // the server passes over the rest of the trip
		}
		if !run.Ordered() {
			slices.Sort(answer[:max(0, len(answer)-1)]) // the last one says what was done
		}
		if strings.Contains(run.Query, "clock_timestamp") {
			answer = answer[len(answer)-1:] // what the clock says is another thing each time
		}
		answers = append(answers, said(run)+": "+strings.Join(answer, "; "))
	}
	_ = pipeline.Close() // it says the same
	return answers
}

// result gives the rows of the next answer, and at last what was done.
func result(pipeline *pgconn.Pipeline) ([]string, error) {
	next, err := pipeline.GetResults()
	if err != nil {
		return nil, err
	}
	reader, ok := next.(*pgconn.ResultReader)
	if !ok {
		return nil, fmt.Errorf("an answer of kind %T", next)
	}
	var lines []string
	for reader.NextRow() {
		var values []any
		for _, value := range reader.Values() {
			if value == nil {
				values = append(values, nil)
				continue
			}
			values = append(values, slices.Clone(value))
		}
		lines = append(lines, upgradetest.Shown(values))
	}
	tag, err := reader.Close()
	return append(lines, tag.String()), err
}

// wire are arguments as they go to the server.
func wire(args []any) (values [][]byte, formats []int16) {
	for _, arg := range args {
		switch arg := arg.(type) {
		case string:
			values, formats = append(values, []byte(arg)), append(formats, 0)
		case []byte:
			values, formats = append(values, arg), append(formats, 1)
		default:
			values, formats = append(values, nil), append(formats, 0)
		}
	}
	return values, formats
}

func said(run upgradetest.Run) string {
	return strings.Join(strings.Fields(run.Query), " ") + " " + upgradetest.Shown(run.Args)
}

// told is an error as the server says it.
func told(err error) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refused.Code + " " + refused.Message
	}
	return err.Error()
}

// columns are those of each table, but for times by the clock of the server.
func (v *voice) columns() map[string]string {
	v.Helper()
	tables := map[string]string{}
	for _, line := range v.rows(`SELECT table_name || ' ' || string_agg(quote_ident(column_name), ', ' ORDER BY ordinal_position) FROM information_schema.columns
		WHERE table_schema = 'public' AND table_name NOT LIKE 'goose%' AND (table_name, column_name) <> ('applied', 'at') GROUP BY table_name`) {
		text, err := strconv.Unquote(strings.Trim(line, "[]"))
		check(v, err)
		table, list, _ := strings.Cut(text, " ")
		tables[table] = list
	}
	return tables
}

// dump gives what is in columns of tables.
func (v *voice) dump(columns map[string]string) map[string][]string {
	v.Helper()
	tables := map[string][]string{}
	for table, list := range columns {
		lines := v.rows("SELECT " + list + " FROM " + table)
		slices.Sort(lines)
		tables[table] = lines
	}
	return tables
}

func (v *voice) rows(query string) []string {
	v.Helper()
	got := v.conn.ExecParams(v.Context(), query, nil, nil, nil, nil).Read()
	check(v, got.Err)
	var lines []string
	for _, row := range got.Rows {
		var values []any
		for _, value := range row {
			values = append(values, value)
		}
		lines = append(lines, upgradetest.Shown(values))
	}
	return lines
}

// TestTheVersionBeforeGoesOn lets the stores of released schemas speak to the schema of today: what they are answered,
// and what they leave behind, is what it was, also over connections that are older than the new schema.
func TestTheVersionBeforeGoesOn(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(traces + "/*.jsonl.gz")
	check(t, err)
	if len(files) == 0 {
		t.Fatal("no trace of a released schema")
	}
	cluster := pgtest.Shared(t)
	for _, file := range files {
		trace, err := upgradetest.Load(file)
		check(t, err)
		t.Run(fmt.Sprint(trace.Schema), func(t *testing.T) {
			t.Parallel()
			goesOn(t, cluster, trace)
		})
	}
}

func goesOn(t *testing.T, cluster *pgtest.Cluster, trace *upgradetest.Trace) {
	t.Helper()
	url := cluster.URL(cluster.Database(t, ""))
	check(t, postgres.MigrateTo(t.Context(), url, trace.Schema))
	long := speak(t, url)
	columns := long.columns()
	want, left := map[string][]string{}, map[string]map[string][]string{}
	for _, section := range trace.Sections {
		want[section.Name] = long.replay(&section)
		left[section.Name] = long.dump(columns)
	}
	check(t, postgres.MigrateTo(t.Context(), url, newest(t)))
	for what, v := range map[string]*voice{"that is older than the schema": long, "that is new": speak(t, url)} {
		for _, section := range trace.Sections {
			if diff := cmp.Diff(want[section.Name], v.replay(&section)); diff != "" {
				t.Errorf("%s over a connection %s: the answers differ (-old schema +new schema):\n%s", section.Name, what, diff)
			}
			if diff := cmp.Diff(left[section.Name], v.dump(columns)); diff != "" {
				t.Errorf("%s over a connection %s: what is left differs (-old schema +new schema):\n%s", section.Name, what, diff)
			}
		}
	}
}

// TestWhatWasThereBecomesWhatIsWritten: rows that a store of the past wrote before its schema was brought up to date
// are afterwards like those that it writes then: what a migration adds to old rows is what it gives to new rows of old
// writers.
func TestWhatWasThereBecomesWhatIsWritten(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	files, err := filepath.Glob(traces + "/*.jsonl.gz")
	check(t, err)
	for _, file := range files {
		trace, err := upgradetest.Load(file)
		check(t, err)
		url := cluster.URL(cluster.Database(t, ""))
		check(t, postgres.MigrateTo(t.Context(), url, newest(t)))
		now := speak(t, url)
		slices.SortStableFunc(trace.Sections, func(a, b upgradetest.Section) int { return len(b.Groups) - len(a.Groups) })
		for _, section := range trace.Sections[:5] { // the longest: a database for each is dear
			url := cluster.URL(cluster.Database(t, ""))
			check(t, postgres.MigrateTo(t.Context(), url, trace.Schema))
			before := speak(t, url)
			before.replay(&section)
			check(t, postgres.MigrateTo(t.Context(), url, newest(t)))
			now.replay(&section)
			if diff := cmp.Diff(before.dump(before.columns()), now.dump(now.columns())); diff != "" {
				t.Errorf("schema %d, %s: (-migrated afterwards +migrated before)\n%s", trace.Schema, section.Name, diff)
			}
		}
	}
}

// TestMigrationsOnlyAdd: a process of the version before goes on beside each migration since the first release, and the
// migration says how.
func TestMigrationsOnlyAdd(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migrations/*.sql")
	check(t, err)
	for _, file := range files[2:] { // the first release had two
		text, err := os.ReadFile(file)
		check(t, err)
		for _, problem := range upgradetest.Forbidden(string(text)) {
			t.Errorf("%s: %s", file, problem)
		}
		if !upgradetest.Promised(string(text)) {
			t.Errorf("%s: no line %q says what a process of the version before does with it", file, upgradetest.Promise+"…")
		}
	}
}

// What the first release says to take a database for itself, and what it puts before each Change.
const (
	firstLock  = 0x7a657068_00000002
	firstTakes = `SELECT pg_try_advisory_lock($1)`
	firstNames = `INSERT INTO meta (name, value) VALUES ('owner', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value`
	firstSays  = `SELECT must(EXISTS (SELECT 1 FROM meta WHERE name = 'owner' AND value = $1), 'ZB002', 'the database has another owner')`
)

// TestAProcessOfTheFirstRelease: while it has the database, this version is refused in words; once this version has it,
// the other stores nothing.
func TestAProcessOfTheFirstRelease(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	url := cluster.URL(cluster.Database(t, ""))
	check(t, postgres.MigrateTo(t.Context(), url, 2))
	first := speak(t, url)
	if got := first.say(upgradetest.Group{{Query: firstTakes, Args: []any{strconv.Itoa(firstLock)}}, {Query: firstNames, Args: []any{"first"}}}); !strings.Contains(got[0], `"t"`) {
		t.Fatal(got)
	}
	_, err := postgres.Open(t.Context(), postgres.Options{URL: url, Owner: "second", Log: zerolog.Nop()})
	unavailable(t, "beside a process of the first release", err, "another running zephbot")
	change := upgradetest.Group{{Query: firstSays, Args: []any{"first"}}, {Query: "INSERT INTO fact VALUES ('b', 'k', 'v', 0)"}}
	if got := first.say(change); len(got) != 2 || !strings.HasSuffix(got[1], "INSERT 0 1") {
		t.Errorf("the schema is newer, and the first release writes: %q", got)
	}
	check(t, first.conn.Close(t.Context()))
	open(t, postgres.Options{URL: url, Owner: "second"})
	late := speak(t, url)
	if got := late.say(change); len(got) != 1 || !strings.Contains(got[0], "ZB002") {
		t.Errorf("replaced, the first release writes: %q", got)
	}
}
