package receipt_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/receipt"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// world is a store with a turn of person 42, and a desk over it. Person 1 is an admin and 7 an approver.
type world struct {
	desk    *receipt.Receipts
	place   bot.Place
	session bot.SessionKey
	data    string // of the button below the answer
}

func newWorld(t *testing.T, place bot.Place, person string) world {
	t.Helper()
	store := bottest.New()
	session := place.SessionKey(person)
	entry := func(e journal.Entry, after time.Duration) journal.Entry {
		e.Turn, e.At = "telegram-7-100", noon.Add(after)
		return e
	}
	ask := func(call string, from time.Duration) bot.Approval {
		return bot.Approval{
			ID: "id" + call, Short: "s" + call, Session: session, Turn: "telegram-7-100", Call: call, Place: place, Hash: "h", Body: json.RawMessage("{}"), State: bot.Open, Needed: 1,
			Created: noon.Add(from), Expires: noon.Add(time.Hour),
		}
	}
	decide := func(call, by, name string, at time.Duration) bot.Decision {
		return bot.Decision{ID: "id" + call, State: bot.Approved, Scope: bot.Once, By: by, ByName: name, At: noon.Add(at)}
	}
	for _, change := range []bot.Change{
		{Ask: []bot.Approval{ask("1.1", time.Second), ask("1.2", 2*time.Second)}},
		{Decide: []bot.Decision{decide("1.1", "telegram:1", "Ann", 61*time.Second), decide("1.2", "telegram:7", "", 31*time.Second)}},
		{Facts: []bot.Fact{ // it was judged in two runs
			turn.Aside{Calls: 1, Input: 40, Output: 2, USD: 0.01}.Fact("telegram-7-100", "a", noon),
			turn.Aside{Calls: 2, Input: 60, Output: 8, USD: 0.04}.Fact("telegram-7-100", "b", noon),
			turn.Aside{Calls: 9, Input: 9, USD: 9}.Fact("telegram-7-1000", "c", noon),
		}},
		{Append: &bot.Append{Session: session, Entries: []journal.Entry{
			{Turn: "telegram-7-99", Kind: journal.AnswerEntry, At: noon, Usage: llm.Usage{Input: 999}, Model: "m"},
			entry(journal.Entry{Kind: journal.UserEntry, Text: "clean up", Caller: "telegram:42"}, 0),
			entry(journal.Entry{Kind: journal.AssistantEntry, Model: "m", Usage: llm.Usage{Input: 100, Output: 20}, USD: 0.1}, time.Second),
			entry(journal.Entry{Kind: journal.ResultEntry, Call: "1.0", Tool: "read", Ran: true, Audit: "aa"}, 2*time.Second),
			entry(journal.Entry{Kind: journal.ResultEntry, Call: "1.1", Tool: "bash", Ran: true, By: "telegram:1", Audit: "bb"}, 62*time.Second),
			entry(journal.Entry{Kind: journal.ResultEntry, Call: "1.2", Tool: "bash", Ran: true, Failed: true, By: "telegram:7", Audit: "cc"}, 63*time.Second),
			entry(journal.Entry{Kind: journal.ResultEntry, Call: "1.3", Tool: "srv:x", Ran: true, By: "telegram:1", Audit: "0123456789abcdef0123"}, 64*time.Second),
			entry(journal.Entry{Kind: journal.ResultEntry, Call: "1.4", Tool: "write", Failed: true, Refusal: &journal.Refusal{Reason: reason.Plain("no")}}, 64*time.Second),
			entry(journal.Entry{Kind: journal.AnswerEntry, Model: "m", Usage: llm.Usage{Input: 200, Output: 10}, USD: 0.05, Text: "Done"}, 130*time.Second),
		}}},
	} {
		if _, err := store.Apply(t.Context(), &change); err != nil {
			t.Fatal(err)
		}
	}
	w := world{place: place, session: session}
	w.desk = receipt.New(receipt.Deps{
		Store: store, Words: texts.Words{}, Now: func() time.Time { return noon },
		Rights: func(context.Context, bot.Place, string) (approval.Rights, error) {
			return approval.Rights{Approvers: []string{"telegram:1", "telegram:7"}, Admins: []string{"telegram:1"}}, nil
		},
	})
	buttons := w.desk.Buttons(turn.Answer{Language: "en", Session: session, Turn: "telegram-7-100", Stats: journal.Stats{Calls: 5, Ran: 4}})
	if len(buttons) != 1 || buttons[0].Label != "Receipt" || len(buttons[0].Data) > 64 {
		t.Fatalf("buttons %+v", buttons)
	}
	w.data = buttons[0].Data
	return w
}

// press returns the message that a press of somebody gets, and the pop-up.
func (w world) press(t *testing.T, person, data string) (message *bot.Row, popUp string) {
	t.Helper()
	msg := &bot.Message{
		Kind: bot.Press, Place: w.place, Caller: "telegram:" + person, Person: person, Data: data, Query: "q", Message: "6", Language: "en",
	}
	e, err := w.desk.Press(t.Context(), &turn.Call{Message: msg, Session: w.place.SessionKey(person)})
	if err != nil {
		t.Fatal(err)
	}
	toast := e.Change.Send[0]
	if toast.Purpose != bot.Toast || toast.Query != "q" || toast.Alert != (toast.Content.Text != "") {
		t.Errorf("the press is answered with %+v", toast)
	}
	if len(e.Change.Send) == 2 {
		return &e.Change.Send[1], ""
	}
	return nil, toast.Content.Text
}

var (
	private = bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: "42"}
	group   = bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: "-1001234567890", Thread: "2147483647", Group: true}
)

func TestReceipt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, private, "42")
	const short = "Did not run: write\n" +
		"Approved: bash by Ann, 12:01 UTC, bash by 7, 12:00 UTC, srv:x by 1, earlier\n" +
		"Took 2 minutes, 60 seconds of it waiting for decisions · $0.20"
	got, _ := w.press(t, "42", w.data)
	if got == nil || got.Content.Text != short || len(got.Content.Buttons) != 1 {
		t.Fatalf("receipt %+v", got)
	}
	const want = short + "\nTools: read, bash × 2 (1 failed), srv:x\n5 calls of the model · 400 tokens in, 40 out\n" +
		"Audit log: 4 lines, the last one 0123456789abcdef"
	if got, _ = w.press(t, "42", got.Content.Buttons[0][0].Data); got == nil || got.Edit == "" || len(got.Content.Buttons) > 0 {
		t.Fatalf("details %+v", got)
	}
	if diff := cmp.Diff(want, got.Content.Text); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if b := w.desk.Buttons(turn.Answer{Session: w.session, Turn: "x", Stats: journal.Stats{Calls: 2, Refused: 2}}); b != nil {
		t.Errorf("buttons where nothing ran: %+v", b)
	}
	for _, data := range []string{
		"r1", "r1:", "r1:s:0:42:", "r1:s:0:42:0000000000000000", "r1:x:0:42" + w.data[len(w.data)-17:], w.data + "0", strings.Replace(w.data, ":42:", ":4/2:", 1),
	} {
		if row, text := w.press(t, "42", data); row != nil || !strings.HasPrefix(text, "What this answer took is no longer stored") {
			t.Errorf("%s: %+v, %q", data, row, text)
		}
	}
}

// TestUnkept: /undo where no copies of files are kept is not listed, and says so.
func TestUnkept(t *testing.T) {
	t.Parallel()
	command := receipt.New(receipt.Deps{Store: bottest.New()}).Feature().Commands[0]
	e, err := command.Run(t.Context(), &turn.Call{Session: private.SessionKey(""), Message: &bot.Message{Place: private}})
	if err != nil || !command.Unlisted || len(e.Change.Send) != 1 || !strings.Contains(e.Change.Send[0].Content.Text, "I keep no copies of files here") {
		t.Errorf("listed: %t, %+v, %v", !command.Unlisted, e, err)
	}
}

// TestClocks: the time between entries of processes whose clocks differ is at least that of the model.
func TestClocks(t *testing.T) {
	t.Parallel()
	store, session := bottest.New(), private.SessionKey("")
	_, err := store.Apply(t.Context(), &bot.Change{Append: &bot.Append{Session: session, Entries: []journal.Entry{
		{Turn: "t", Kind: journal.UserEntry, At: noon, Caller: "telegram:42"},
		{Turn: "t", Kind: journal.ResultEntry, At: noon, Tool: "read", Ran: true, Call: "1.0"},
		{Turn: "t", Kind: journal.AnswerEntry, At: noon.Add(-time.Minute), Model: "m", Millis: 3000},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	desk := receipt.New(receipt.Deps{
		Store: store, Words: texts.Words{}, Now: time.Now, Rights: func(context.Context, bot.Place, string) (approval.Rights, error) { return approval.Rights{}, nil },
	})
	w := world{desk: desk, place: private}
	row, _ := w.press(t, "42", desk.Buttons(turn.Answer{Session: session, Turn: "t", Stats: journal.Stats{Ran: 1}})[0].Data)
	if row == nil || !strings.Contains(row.Content.Text, "Took 3 seconds") {
		t.Errorf("receipt %+v", row)
	}
}

// TestGroup: in a group, whoever asked, approvers and admins read a receipt, each as a message for them alone.
func TestGroup(t *testing.T) {
	t.Parallel()
	for name, owner := range map[string]string{"own conversations": "42", "one conversation": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, group, owner)
			for person, reads := range map[string]bool{"42": true, "1": true, "7": true, "43": false} {
				row, text := w.press(t, person, w.data)
				switch {
				case reads && (row == nil || row.Content.Only != person || row.ReplyTo != "6" || !strings.HasPrefix(row.Content.Text, "Did not run: write")):
					t.Errorf("%s reads %+v, %q", person, row, text)
				case !reads && (row != nil || !strings.HasPrefix(text, "Only the person who asked")):
					t.Errorf("%s reads %+v, %q", person, row, text)
				}
			}
			elsewhere := w
			elsewhere.place.Chat = "-2"
			if row, text := elsewhere.press(t, "1", w.data); row != nil || !strings.HasPrefix(text, "What this answer took") {
				t.Errorf("in another chat: %+v, %q", row, text)
			}
			lost := w
			lost.place.Thread = "" // the message of the button is no longer accessible
			if row, text := lost.press(t, "42", w.data); row == nil {
				t.Errorf("without a topic: %q", text)
			}
		})
	}
}
