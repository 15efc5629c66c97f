package receipt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/receipt"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/undo"
)

const turnID = "telegram-7-100"

// files is a workspace in which a turn of person 42 in a group has written a file, and a desk over it.
type files struct {
	t      *testing.T
	dir    string
	store  *bottest.Store
	undo   *undo.Store
	desk   *receipt.Receipts
	lines  []receipt.Event // recorded
	told   []string        // to the model
	noted  int
	caches []int64
}

func newFiles(t *testing.T) *files {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &files{t: t, dir: filepath.Join(top, "ws"), store: bottest.New()}
	f.write("a", "old")
	f.undo = undo.New(undo.Options{
		Dir: filepath.Join(top, "undo"), Own: func(tools.Origin) (string, error) { return f.dir, nil }, Workspace: func(tools.Origin) string { return "ws" },
		Now: func() time.Time { return noon },
		Find: func(*tools.Call) (tools.Tool, bool) {
			return tools.Tool{Changes: func(context.Context, *tools.Call) (tools.Changes, error) {
				return tools.Changes{Files: []tools.Area{{Root: f.dir, Paths: []string{f.dir}}}}, nil
			}}, true
		},
	})
	f.run(turnID, func() { f.write("a", "new") })
	entry := func(e journal.Entry) journal.Entry {
		e.Turn, e.At = turnID, noon
		return e
	}
	_, err = f.store.Apply(t.Context(), &bot.Change{Append: &bot.Append{Session: group.SessionKey("42"), Entries: []journal.Entry{
		{Kind: journal.SummaryEntry},
		entry(journal.Entry{Kind: journal.UserEntry, Caller: "telegram:42"}),
		entry(journal.Entry{Kind: journal.AssistantEntry, Uses: []journal.Use{{Call: "1.0", Name: "bash"}, {Call: "1.1", Name: "srv:do"}, {Call: "1.2", Name: "srv:look", ReadOnly: true}}}),
		entry(journal.Entry{Kind: journal.ResultEntry, Call: "1.0", Tool: "bash", Ran: true}),
		entry(journal.Entry{Kind: journal.ResultEntry, Call: "1.1", Tool: "srv:do", Ran: true}),
		entry(journal.Entry{Kind: journal.ResultEntry, Call: "1.2", Tool: "srv:look", Ran: true}),
		entry(journal.Entry{Kind: journal.AnswerEntry}),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	f.desk = receipt.New(receipt.Deps{
		Store: f.store, Words: texts.Words{}, Now: func() time.Time { return noon },
		Rights: func(context.Context, bot.Place, string) (approval.Rights, error) {
			return approval.Rights{Approvers: []string{"telegram:7"}}, nil
		},
		Putting: receipt.Putting{
			Files: f.undo, Workspace: func(string, bot.SessionKey) string { return "ws" },
			Line: func(e receipt.Event) []bot.Fact {
				f.lines = append(f.lines, e)
				return []bot.Fact{{Bucket: "line", Key: e.ID, Value: "x"}}
			},
			Tell: func(_ bot.SessionKey, id, text string) bot.Fact {
				f.told = append(f.told, text)
				return bot.Fact{Bucket: "news", Key: id, Value: text}
			},
			Told:    func(context.Context, bot.SessionKey) { f.noted++ },
			Changed: func(_ context.Context, _ bot.SessionKey, began int64) { f.caches = append(f.caches, began) },
		},
	})
	return f
}

func (f *files) run(turn string, do func()) {
	_, _ = f.undo.Middleware(func(context.Context, *tools.Call) (*tools.Result, error) {
		do()
		return &tools.Result{}, nil
	})(f.t.Context(), &tools.Call{
		ID: "1.0", Def: tools.Definition{Name: "bash"}, Trail: &tools.Trail{}, Origin: tools.Origin{Turn: turn, Session: "s", Caller: "telegram:42"},
	})
}

func (f *files) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *files) content() string {
	raw, err := os.ReadFile(filepath.Join(f.dir, "a"))
	if err != nil {
		f.t.Error(err)
	}
	return string(raw)
}

// press presses a button as somebody; message is the one of the button, id that of the press.
func (f *files) press(verb, person, message, id string) turn.Effect {
	f.t.Helper()
	buttons := f.desk.Buttons(turn.Answer{Session: group.SessionKey("42"), Turn: turnID, Stats: journal.Stats{Ran: 1}})
	msg := &bot.Message{
		ID: id, Kind: bot.Press, Place: group, Caller: "telegram:" + person, Person: person, Name: "P" + person, Query: "q", Message: message, Language: "en",
		Data: strings.Replace(buttons[0].Data, ":s:", ":"+verb+":", 1),
	}
	e, err := f.desk.Press(f.t.Context(), &turn.Call{Message: msg, Session: group.SessionKey(person)})
	if err != nil {
		f.t.Fatal(err)
	}
	return e
}

// said returns what a press is answered with.
func said(e turn.Effect) string { return e.Change.Send[len(e.Change.Send)-1].Content.Text }

// TestUndo: the receipt offers it, one more question is asked, and it is recorded once, whatever happens in between.
func TestUndo(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	row := f.press("s", "42", "6", "1").Change.Send[1]
	if !strings.Contains(row.Content.Text, "Changed: a\nNot covered by Undo, if anything else was done: srv:do (on its server)") || len(row.Content.Buttons[0]) != 2 {
		t.Fatalf("receipt %+v", row)
	}
	row = f.press("u", "42", "7", "2").Change.Send[1]
	if row.Edit != "7" || row.Content.Only != "" || len(row.Content.Buttons[0]) != 2 || !strings.HasPrefix(row.Content.Text, "Put this file back as it was") {
		t.Errorf("question %+v", row)
	}
	if row = f.press("u", "42", "0", "2").Change.Send[1]; row.Edit != "" || row.Content.Only != "42" {
		t.Errorf("the question below a message for one person: %+v", row)
	}
	if got := said(f.press("y", "43", "7", "3")); !strings.HasPrefix(got, "Only the person who asked") || f.content() != "new" {
		t.Errorf("somebody else: %q, %q", got, f.content())
	}
	// The process dies before the first effect is stored, and the press is handled again.
	for range 2 {
		e := f.press("y", "7", "7", "4")
		if row := e.Change.Send[1]; !strings.Contains(row.Content.Text, "Put back: a\n↩ Undone by P7, 12:00 UTC") || row.Edit != "7" || len(row.Content.Buttons) > 0 || len(e.Change.Facts) != 2 || e.Then == nil {
			t.Fatalf("effect %+v", e)
		}
		if f.content() != "old" {
			t.Errorf("a is %q", f.content())
		}
		if _, err := e.Then(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if line := f.lines[0]; line.By != "telegram:7" || line.Session != group.SessionKey("42") || len(line.Files) != 1 || line.ID != "4" {
		t.Errorf("recorded %+v", line)
	}
	if f.told[0] != `[The user has undone the file changes of an earlier answer. These are as they were before it: "a".]` || f.noted != 2 || f.caches[0] != 1 {
		t.Errorf("told %q, noted %d, caches %v", f.told, f.noted, f.caches)
	}
	// Older buttons say that it is done; their message loses them, unless only one person sees it.
	for _, verb := range []string{"y", "u"} {
		e := f.press(verb, "42", "7", "5")
		if row := e.Change.Send[1]; len(e.Change.Facts) > 0 || row.Edit != "7" || !strings.Contains(row.Content.Text, "Undone by P7") ||
			e.Change.Send[0].Content.Text != "This is undone already." || strings.Contains(fmt.Sprint(row.Content.Buttons), "Undo…") {
			t.Errorf("%s once more: %+v", verb, e)
		}
		if e := f.press(verb, "42", "0", "6"); len(e.Change.Facts) > 0 || len(e.Change.Send) != 1 || said(e) != "This is undone already." {
			t.Errorf("%s once more, below what one person sees: %+v", verb, e)
		}
	}
}

// TestUndoWaits: nothing is put back while a turn runs.
func TestUndoWaits(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	session, running := group.SessionKey("42"), "telegram-7-200"
	state := bot.Parked
	lane := func(turn string) {
		if turn == "" {
			state = bot.Idle
		}
		if _, err := f.store.Apply(t.Context(), &bot.Change{Lanes: []bot.LaneUpdate{{Session: session, State: &state, Turn: &turn}}}); err != nil {
			t.Fatal(err)
		}
	}
	lane(running)
	if e := f.press("y", "42", "7", "1"); !strings.HasPrefix(said(e), "Something is running here") || !e.Change.Send[0].Alert || f.content() != "new" {
		t.Errorf("during a turn: %q, %q", said(e), f.content())
	}
	lane("")
	if e := f.press("y", "42", "7", "2"); f.content() != "old" || len(e.Change.Facts) != 2 {
		t.Errorf("after it: %q, %q", said(e), f.content())
	}
}

// TestUndoAfterClear: what is kept of the files is enough to put them back.
func TestUndoAfterClear(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.write("b", "x")
	after := int64(7)
	if _, err := f.store.Apply(t.Context(), &bot.Change{Append: &bot.Append{Session: group.SessionKey("42"), After: after, Entries: []journal.Entry{{Kind: journal.SummaryEntry}}}}); err != nil {
		t.Fatal(err)
	}
	if got := said(f.press("s", "42", "6", "1")); !strings.HasPrefix(got, "What this answer took is no longer stored") || !strings.HasSuffix(got, "\nChanged: a") {
		t.Errorf("receipt %q", got)
	}
	if got := said(f.press("s", "43", "6", "1")); !strings.HasPrefix(got, "Only the person") {
		t.Errorf("somebody else: %q", got)
	}
	if e := f.press("y", "42", "7", "2"); f.content() != "old" || f.caches[0] != 8 {
		t.Errorf("undo: %q, %q, caches %v", said(e), f.content(), f.caches)
	}
}
