package sql_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"testing"
)

// volume is how much a database holds.
type volume struct{ sessions, entries, arrivals, rows, charges, approvals int }

var small = volume{sessions: 600, entries: 6000, arrivals: 6000, rows: 6000, charges: 4000, approvals: 1500}

// connect opens a database beside the store.
func connect(t testing.TB, path string) *sql.DB {
	t.Helper()
	where := url.URL{Scheme: "file", Path: path, RawQuery: "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"}
	db, err := sql.Open("sqlite", where.String())
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func run(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%v: %s", err, statement)
	}
}

// age fills a database with what a service leaves behind: nothing in it is open.
func age(t testing.TB, db *sql.DB, v volume) {
	t.Helper()
	count := func(n int) string {
		return fmt.Sprintf("WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %d) ", n)
	}
	session := func(i string) string {
		return fmt.Sprintf("'telegram/1/bot/' || (1000 + %s %% %d) || '/0/' || (1000 + %s %% %d)", i, v.sessions, i, v.sessions)
	}
	const place = "'telegram', '1', 'bot', 1000 + i % 500, '', 1"
	run(t, db, count(v.sessions)+`INSERT INTO lane SELECT `+session("i")+`, `+place+`, 'idle', 40, '', 0, '', 0, 0, 0, 0, '', `+
		fmt.Sprint(v.entries/v.sessions)+`, 0, '', '', '' FROM c`)
	run(t, db, count(v.entries)+`INSERT INTO journal SELECT `+session("i")+`, 1 + (i - 1) / `+fmt.Sprint(v.sessions)+
		`, 0, '{"turn":"t","kind":"user","text":"`+`what a person says takes about as many letters as this line has, on the average of a year"}' FROM c`)
	run(t, db, count(v.arrivals)+`INSERT INTO inbox (channel, bot, id, session, express, raw, at, state, finished)
		SELECT 'telegram', '1', i, `+session("i")+`, i % 9 = 0, CASE WHEN i % 2 = 0 THEN 'raw' END, i, CASE WHEN i % 999 = 0 THEN 'dead' ELSE 'done' END, i FROM c`)
	run(t, db, count(v.rows)+`INSERT INTO outbox SELECT i, `+session("i")+`, 't' || i, `+place+`, 'final', CASE WHEN i % 2 = 0 THEN '{"text":"hello"}' END,
		'', '', 0, '', 0, 'final/' || i, 'sent', i, 1, 0, 0, i, '', i, 0 FROM c`)
	run(t, db, count(v.charges)+`INSERT INTO charge SELECT 't' || i, 'user/telegram:' || (1000 + i % `+fmt.Sprint(v.sessions)+`), 'turns', '2026-03-01', 1 FROM c`)
	run(t, db, count(v.charges)+`INSERT INTO usage SELECT '2026-02-' || (10 + i % 20), 'user/telegram:' || i, 'turns', 3 FROM c`)
	run(t, db, count(v.approvals)+`INSERT INTO approval SELECT i, 'a' || i, i % 90, `+session("i")+`, 't', 'c' || i, `+place+`, 'telegram:42', 'bash',
		'h' || i, '{}', CASE WHEN i % 2 = 0 THEN 'approved' ELSE 'denied' END, CASE WHEN i % 4 = 0 THEN 'session' ELSE 'once' END, '', '', '', 1, i, i, i, i FROM c`)
	run(t, db, count(v.sessions)+`INSERT INTO fact SELECT 'bucket' || (i % 7), 'telegram/1/' || i, 'v', CASE WHEN i % 5 = 0 THEN i ELSE 0 END FROM c`)
	run(t, db, count(v.sessions)+`INSERT INTO tool_overflow SELECT 'o' || i, `+session("i")+`, 't', 'c' || i, 'bash', 's', 9, 1, i, 'text' FROM c`)
}
