package sql_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/window"
	"github.com/zephbot/zephbot/bot"
	zephsql "github.com/zephbot/zephbot/persistence/sql"
)

// longAgo writes a session with so many entries of a text, four a turn, the way turns leave them; old ones carry no
// ConversationState.
func longAgo(t testing.TB, store *zephsql.Store, session bot.SessionKey, entries int, text string, old bool) {
	t.Helper()
	var soFar journal.ConversationState
	var batch []journal.Entry
	said := int64(0)
	flush := func(after int64) {
		_, err := store.Apply(t.Context(), &bot.Change{Append: &bot.Append{Session: session, After: after - int64(len(batch)), Entries: batch}})
		if err != nil {
			t.Fatal(err)
		}
		batch = nil
	}
	for i := range entries {
		n := int64(i + 1)
		e := journal.Entry{N: n, Turn: fmt.Sprint("t", i/4), Text: text}
		switch i % 4 {
		case 0:
			e.Kind = journal.UserEntry
		case 1:
			e.Kind, e.Uses = journal.AssistantEntry, []journal.Use{{Call: "c", Name: "read", Args: []byte(`{"path":"a"}`)}}
		case 2:
			e.Kind, e.Call, e.Tool = journal.ResultEntry, "c", "read"
		default:
			e.Kind = journal.AnswerEntry
		}
		if soFar = soFar.After(e); e.Kind == journal.AnswerEntry && n-said >= 32 && !old {
			carried := soFar
			e.State, said = &carried, n
		}
		if batch = append(batch, e); len(batch) == 500 {
			flush(n)
		}
	}
	flush(int64(entries))
}

// rowsRead counts how many rows of a journal a read of its tail takes: a row that was read is one whose body may not be
// spoiled. It also gives the bytes of their bodies.
func rowsRead(t *testing.T, store *zephsql.Store, db *sql.DB, session bot.SessionKey, entries, room int) (rows int, bytes int64) {
	t.Helper()
	first := sort.Search(entries, func(i int) bool { // the first entry, from 0, that is read
		var body string
		check(t, db.QueryRowContext(t.Context(), "SELECT body FROM journal WHERE session = ? AND n = ?", session, i+1).Scan(&body))
		run(t, db, "UPDATE journal SET body = 'spoiled' WHERE session = ? AND n = ?", session, i+1)
		_, err := store.Tail(t.Context(), session, room)
		run(t, db, "UPDATE journal SET body = ? WHERE session = ? AND n = ?", body, session, i+1)
		return err != nil
	})
	check(t, db.QueryRowContext(t.Context(), "SELECT SUM(LENGTH(body)) FROM journal WHERE session = ? AND n > ?", session, first).Scan(&bytes))
	return entries - first, bytes
}

// TestAgeOfAConversation: what a turn reads of its conversation is bounded by the window, and does not grow with the
// conversation.
func TestAgeOfAConversation(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		text   string
		window int
		few    int // entries that fill the window
	}{
		"outputs":       {strings.Repeat("line ", 3000), 64_000, 20},
		"short replies": {"that is fine", 128_000, 1200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "zephbot.db")
			store := open(t, zephsql.Options{Path: path})
			db := connect(t, path)
			room := window.Room(of.window)
			var few int
			for _, entries := range []int{of.few, 20_000 / (1 + len(of.text)/5000)} {
				session := bot.SessionKey(fmt.Sprint("s", entries))
				longAgo(t, store, session, entries, of.text, false)
				rows, bytes := rowsRead(t, store, db, session, entries, room)
				t.Logf("%d entries: %d rows, %d bytes of %d are read", entries, rows, bytes, room)
				if few == 0 {
					few = rows
				}
				if rows > few+8 || bytes > int64(room)+8*int64(len(of.text)+300) {
					t.Errorf("%d entries: %d rows and %d bytes are read, of few entries %d rows", entries, rows, bytes, few)
				}
			}
		})
	}
}

// TestOldJournals: of a journal that was written before entries carried what a conversation had come to all is read
// once, and then no more.
func TestOldJournals(t *testing.T) {
	t.Parallel()
	const entries, room = 4000, 20_000
	path := filepath.Join(t.TempDir(), "zephbot.db")
	store := open(t, zephsql.Options{Path: path})
	db := connect(t, path)
	longAgo(t, store, "old", entries, "text", true)
	if rows, _ := rowsRead(t, store, db, "old", entries, room); rows != entries {
		t.Errorf("%d of %d rows are read", rows, entries)
	}
	tail, err := store.Tail(t.Context(), "old", room)
	check(t, err)
	soFar := tail.StateAt(entries)
	if soFar.Batches != entries/4 || soFar.Calls != entries/4 || len(tail.Entries) > 60 {
		t.Errorf("%d entries, state %+v", len(tail.Entries), soFar)
	}
	next := journal.Entry{N: entries + 1, Turn: "next", Kind: journal.AnswerEntry}
	soFar = soFar.After(next)
	next.State = &soFar
	_, err = store.Apply(t.Context(), &bot.Change{Append: &bot.Append{Session: "old", After: entries, Entries: []journal.Entry{next}}})
	check(t, err)
	if rows, _ := rowsRead(t, store, db, "old", entries+1, room); rows > len(tail.Entries)+2 {
		t.Errorf("%d rows are read after a turn", rows)
	}
}

// BenchmarkTail reads what a turn needs of conversations of several ages, beside all of them: what a turn read before.
func BenchmarkTail(b *testing.B) {
	store := open(b, zephsql.Options{Path: filepath.Join(b.TempDir(), "zephbot.db")})
	room := window.Room(128_000)
	for _, of := range []struct{ name, text string }{{"outputs", strings.Repeat("line ", 5000)}, {"replies", strings.Repeat("fine ", 60)}} {
		for _, entries := range []int{20, 2000, 20_000} {
			if len(of.text) > 5000 && entries > 2000 {
				continue // half a gigabyte
			}
			name := bot.SessionKey(fmt.Sprintf("%s/%d", of.name, entries))
			longAgo(b, store, name, entries, of.text, false)
			b.Run(string(name)+"/tail", func(b *testing.B) {
				b.ReportAllocs()
				rows := 0
				for b.Loop() {
					tail, err := store.Tail(b.Context(), name, room)
					if err != nil {
						b.Fatal(err)
					}
					rows = len(tail.Entries)
				}
				b.ReportMetric(float64(rows), "rows")
			})
			b.Run(string(name)+"/all", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := store.Journal(b.Context(), name, 0); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
