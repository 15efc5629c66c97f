package sql_test

import (
	databasesql "database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/persistence/storetest"
	"github.com/zephbot/zephbot/tools/overflow"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestOverflow(t *testing.T) {
	t.Parallel()
	empty := emptyDatabase(t)
	storetest.Overflow(t, func(t *testing.T) overflow.Store {
		path := filepath.Join(t.TempDir(), "zephbot.db")
		check(t, os.WriteFile(path, empty, 0o600))
		return open(t, sql.Options{Path: path})
	})
}

// output keeps the nth output of a session and gives its id.
func output(t *testing.T, store *sql.Store, session, call string, n int) string {
	t.Helper()
	item := overflow.Item{
		ID: fmt.Sprintf("0f8fad5b-d9cb-469f-a165-7086%08d", n), Session: session, Turn: "t-" + session, Call: call,
		Text: fmt.Sprintf("text %d", n), Created: noon, Expires: noon.Add(day),
	}
	check(t, store.Save(t.Context(), item))
	return item.ID
}

// found says whether the session can read the output at noon.
func found(t *testing.T, store *sql.Store, session, id string) bool {
	t.Helper()
	_, err := store.Load(t.Context(), session, id, noon)
	if err != nil && !errors.Is(err, overflow.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func TestAResetForgetsTheOutputsOfItsConversation(t *testing.T) {
	t.Parallel()
	store := open(t, sql.Options{})
	first, second := output(t, store, "a", "c1", 1), output(t, store, "a", "c2", 2)
	other := output(t, store, "ab", "c1", 3)
	for _, step := range []struct {
		what string
		add  *bot.Append
		want error
		kept bool
	}{
		{"a message", &bot.Append{Session: "a", Entries: []journal.Entry{{Turn: "t", Kind: journal.UserEntry}}}, nil, true},
		{"a reset that is refused", &bot.Append{Session: "a", After: 7, Entries: []journal.Entry{{Turn: "r", Kind: journal.ResetEntry}}}, bot.ErrConflict, true},
		{"a reset elsewhere", &bot.Append{Session: "b", Entries: []journal.Entry{{Turn: "r", Kind: journal.ResetEntry}}}, nil, true},
		{
			"a summary of what goes on",
			&bot.Append{Session: "a", After: 1, Entries: []journal.Entry{{Turn: "r", Kind: journal.SummaryEntry, Text: "was", State: &journal.ConversationState{}}}}, nil, true,
		},
		{"a new beginning", &bot.Append{Session: "a", After: 2, Entries: []journal.Entry{{Turn: "r", Kind: journal.SummaryEntry}}}, nil, false},
		{"a reset", &bot.Append{Session: "a", After: 3, Entries: []journal.Entry{{Turn: "r", Kind: journal.ResetEntry}}}, nil, false},
	} {
		if _, err := store.Apply(t.Context(), &bot.Change{Append: step.add}); !errors.Is(err, step.want) {
			t.Fatalf("%s: %v, want %v", step.what, err, step.want)
		}
		for _, id := range []string{first, second} {
			if found(t, store, "a", id) != step.kept {
				t.Errorf("after %s: output %s is kept: %t, want %t", step.what, id, !step.kept, step.kept)
			}
		}
		if !found(t, store, "ab", other) {
			t.Errorf("after %s: the output of another conversation is gone", step.what)
		}
	}
	if again := output(t, store, "a", "c1", 4); !found(t, store, "a", again) {
		t.Error("nothing is kept after a reset")
	}
}

func TestOutputsMoveWithTheirChat(t *testing.T) {
	t.Parallel()
	store := open(t, sql.Options{})
	const from, to, other = "telegram/1/bot/-100/0/42", "telegram/1/bot/-200/0/42", "telegram/1/bot/-1000/0/42"
	old, met, kept := output(t, store, from, "c1", 1), output(t, store, to, "c1", 2), output(t, store, other, "c1", 3)
	_, err := store.Apply(t.Context(), &bot.Change{Move: &bot.Move{Channel: "telegram", Bot: "1", From: "-100", To: "-200"}})
	check(t, err)
	for _, test := range []struct {
		session, id string
		want        bool
	}{{from, old, false}, {to, old, true}, {to, met, true}, {other, kept, true}} {
		if got := found(t, store, test.session, test.id); got != test.want {
			t.Errorf("%s in %s: found %t, want %t", test.id, test.session, got, test.want)
		}
	}
}

func TestSweepForgetsOutputs(t *testing.T) {
	t.Parallel()
	store := open(t, sql.Options{})
	const many = 45 // more than two batches
	for n := range many {
		output(t, store, "s", fmt.Sprint(n), n)
	}
	kept := overflow.Item{ID: "0f8fad5b-d9cb-469f-a165-708699999999", Session: "s", Call: "kept", Text: "for ever", Created: noon}
	check(t, store.Save(t.Context(), kept))
	for _, step := range []struct {
		at   time.Time
		want int64
	}{{noon.Add(day - 1), 0}, {noon.Add(day), many}, {noon.Add(1000 * day), 0}} {
		swept, err := store.Sweep(t.Context(), step.at, sql.Retention{})
		if err != nil || swept.Outputs != step.want {
			t.Errorf("sweep at %v: %d outputs (%v), want %d", step.at, swept.Outputs, err, step.want)
		}
	}
	if !found(t, store, "s", kept.ID) {
		t.Error("an output without an end was forgotten")
	}
}

func TestOutputsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zephbot.db")
	store := open(t, sql.Options{Path: path})
	id := output(t, store, "s", "c", 1)
	check(t, store.Close())
	if err := store.Save(t.Context(), overflow.Item{ID: id, Session: "s", Call: "c"}); !errors.Is(err, sql.ErrClosed) {
		t.Errorf("save after close: %v", err)
	}
	if !found(t, open(t, sql.Options{Path: path}), "s", id) {
		t.Error("the output is gone")
	}
}

// TestADatabaseOfTheFirstVersionIsBroughtUpToDate makes the schema as it was before there were outputs, with a row in
// it.
func TestADatabaseOfTheFirstVersionIsBroughtUpToDate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zephbot.db")
	db, err := databasesql.Open("sqlite", "file:"+path)
	check(t, err)
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS("migrations/sqlite"))
	check(t, err)
	_, err = provider.UpTo(t.Context(), 1)
	check(t, err)
	_, err = db.ExecContext(t.Context(), `INSERT INTO fact (bucket, key, value, expires) VALUES ('b', 'old', 'v', 0)`)
	check(t, errors.Join(err, db.Close()))

	store := open(t, sql.Options{Path: path})
	if !has(t, store, "old") {
		t.Error("what was stored before is gone")
	}
	if id := output(t, store, "s", "c", 1); !found(t, store, "s", id) {
		t.Error("outputs are not kept")
	}
	check(t, store.Close())
	open(t, sql.Options{Path: path}) // a second time there is nothing to do
}
