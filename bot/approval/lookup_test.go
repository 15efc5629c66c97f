package approval_test

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/blob/blobtest"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools/approve"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	w := setup(t)
	look := func(call, hash string) approve.Approval {
		t.Helper()
		a, err := w.Approval(t.Context(), session, call, hash)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if got := look("c1", "hash of c1"); !reflect.DeepEqual(got, approve.Approval{}) {
		t.Errorf("never asked: %+v", got)
	}
	a := w.ask(question("c1"))[0]
	if got := look("c1", "hash of c1"); got.State != approve.Waiting {
		t.Errorf("open: %+v", got)
	}
	if got := look("c1", "other"); !reflect.DeepEqual(got, approve.Approval{}) {
		t.Errorf("open with another hash: %+v", got)
	}
	w.press("boss", data(a, "s"))
	if got := look("c1", "hash of c1"); !reflect.DeepEqual(got, approve.Approval{State: approve.Approved, By: "telegram:boss", Hash: "hash of c1", Scope: bot.Session}) {
		t.Errorf("approved: %+v", got)
	}
	if got := look("c7", "hash of c1"); got.State != approve.Approved || got.Scope != approve.ScopeSession || got.By != "telegram:boss" {
		t.Errorf("another call with the same hash: %+v", got)
	}
	if got := look("c7", "hash of c7"); !reflect.DeepEqual(got, approve.Approval{}) {
		t.Errorf("another hash: %+v", got)
	}
	if got, _ := w.Approval(t.Context(), "telegram/7/bot/-5/0/bob", "c7", "hash of c1"); got.State != "" {
		t.Errorf("another session: %+v", got)
	}
	b := w.ask(question("c2"))[0]
	w.press("ann", data(b, "n"))
	if got := look("c2", "hash of c2"); got.State != approve.Denied {
		t.Errorf("denied: %+v", got)
	}
}

func TestLongCommand(t *testing.T) {
	t.Parallel()
	for name, show := range map[string]string{
		"lines": strings.Repeat("echo line\n", 60),
		"width": strings.Repeat("x", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			q := question("c1")
			q.Show, q.Reason, q.Suspicious, q.Note = show, reason.Plain(strings.Repeat("because ", 1000)), strings.Repeat("s", 1000), reason.Plain(strings.Repeat("n", 1000))
			a := w.ask(q)[0]
			rows, _ := w.store.Rows(t.Context(), session, 0)
			if len(rows) != 2 || rows[0].Content.File == nil || string(rows[0].Content.File.Data) != strings.TrimRight(show, "\n") || rows[1].ID != a.Row {
				t.Fatalf("rows %+v", rows)
			}
			card := rows[1].Content
			if n := render.Length(card.Text); n > 4096 || !strings.Contains(card.Text, "SHA-256") || !strings.Contains(card.Text, "The file is what gets approved.") {
				t.Errorf("%d units: %s", n, card.Text)
			}
			e, _ := w.press("ann", data(a, "y"))
			if n := render.Length(e.Change.Send[1].Content.Text); n > 2000 {
				t.Errorf("the record has %d units", n)
			}
		})
	}
	t.Run("kept beside the row", func(t *testing.T) {
		t.Parallel()
		var files blobtest.Store
		w := setupWith(t, &files)
		q := question("c1")
		q.Show = strings.Repeat("echo line\n", 60)
		w.ask(q)
		rows, _ := w.store.Rows(t.Context(), session, 0)
		if len(rows) != 2 || rows[0].Content.File == nil || rows[0].Content.File.Data != nil {
			t.Fatalf("rows %+v", rows)
		}
		content, size, err := rows[0].Content.File.Open(t.Context(), rows[0].Session, &files)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.TrimRight(q.Show, "\n")
		if got, err := io.ReadAll(content); err != nil || string(got) != want || size != int64(len(want)) {
			t.Errorf("the file has %q (%v), and %d bytes are promised", got, err, size)
		}
	})
	t.Run("no room beside the row", func(t *testing.T) { // the question has to be asked all the same
		t.Parallel()
		w := setupWith(t, &blobtest.Store{Limit: 1})
		q := question("c1")
		q.Show = strings.Repeat("echo line\n", 60)
		w.ask(q)
		rows, _ := w.store.Rows(t.Context(), session, 0)
		if len(rows) != 2 || string(rows[0].Content.File.Data) != strings.TrimRight(q.Show, "\n") {
			t.Errorf("rows %+v", rows)
		}
	})
	t.Run("another tool", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		q := question("c1")
		q.Tool, q.Show, q.Args = "write", "", strings.Repeat("y", 4000)
		w.ask(q)
		rows, _ := w.store.Rows(t.Context(), session, 0)
		if len(rows) != 2 || rows[0].Content.File.Name != "call.txt" {
			t.Errorf("rows %+v", rows)
		}
	})
	t.Run("nothing to show", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		q := question("c1")
		q.Show, q.Args = "", ""
		a := w.ask(q)[0]
		if row, _ := w.store.Row(t.Context(), a.Row); len(row.Content.Entities) != 0 || row.Content.Text == "" {
			t.Errorf("%+v", row)
		}
	})
}

func TestWithdraw(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.ask(question("c1"), question("c2"))
	other := asked(question("c3"))
	other.Turn = "t2"
	change := &bot.Change{}
	if err := w.Ask(t.Context(), other, change); err != nil {
		t.Fatal(err)
	}
	w.apply(change)
	change = &bot.Change{}
	if err := w.Withdraw(t.Context(), session, "t1", "telegram:ann", change); err != nil {
		t.Fatal(err)
	}
	w.apply(change)
	if len(change.Send) != 2 || change.Send[0].EditRow != a[0].Row || len(change.Send[0].Content.Buttons) != 0 || !strings.Contains(change.Send[0].Content.Text, "Withdrawn") {
		t.Errorf("cards %+v", change.Send)
	}
	if got := w.read(a[1].ID); got.State != bot.Withdrawn || got.By != "telegram:ann" {
		t.Errorf("%+v", got)
	}
	if open := w.open(); len(open) != 1 || open[0].Turn != "t2" {
		t.Errorf("open %+v", open)
	}
	change = &bot.Change{}
	if err := w.Withdraw(t.Context(), session, "t1", "", change); err != nil || change.Cancel != nil || len(change.Send) != 0 {
		t.Errorf("again: %+v %v", change, err)
	}
}

// A card that was never delivered: its record goes out as a message of its own.
func TestUndeliveredCard(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.ask(question("c1"))[0]
	w.apply(&bot.Change{Rows: []bot.RowUpdate{{ID: a.Row, From: []bot.RowState{bot.Pending}, To: bot.Dead}}})
	if got := w.command("ann", a.Short, bot.Denied); got != "Noted." {
		t.Error(got)
	}
	due, err := w.store.Due(t.Context(), "telegram", "7", w.now, 0)
	if err != nil || len(due) != 2 || due[1].EditRow != a.Row || due[1].Edit != "" || due[1].Content.Text == "" {
		t.Errorf("due %+v %v", due, err)
	}
}

// away is a store that cannot be read.
type away struct{ *bottest.Store }

var errAway = errors.New("away")

func (away) Approval(context.Context, string) (bot.Approval, error) { return bot.Approval{}, errAway }

func (away) ApprovalOf(context.Context, bot.SessionKey, string) (bot.Approval, error) {
	return bot.Approval{}, errAway
}

func (away) OpenApprovals(context.Context, bot.SessionKey) ([]bot.Approval, error) {
	return nil, errAway
}

func TestStoreAway(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := approval.New(approval.Deps{Store: away{w.store}, Words: texts.Words{}, Now: func() time.Time { return w.now }}, time.Minute)
	m := w.message("ann")
	m.Data = "a1:x:y"
	_, pressErr := b.Press(t.Context(), &m)
	_, commandErr := b.Command(t.Context(), &turn.Call{Message: &m}, bot.Approved)
	_, expiredErr := b.Expired(t.Context(), w.now)
	_, lookErr := b.Approval(t.Context(), session, "c", "h")
	for name, err := range map[string]error{
		"press": pressErr, "command": commandErr, "expired": expiredErr, "lookup": lookErr,
		"ask":      b.Ask(t.Context(), asked(question("c1")), &bot.Change{}),
		"withdraw": b.Withdraw(t.Context(), session, "t", "", &bot.Change{}),
	} {
		if !errors.Is(err, errAway) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
