package inquiry_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/inquiry"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
)

const (
	session = "telegram/7/bot/-5/0/ann"
	hash    = "hash of c1"
)

var here = bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: "-5", Group: true}

// world is a broker with a desk on a store.
type world struct {
	*approval.Broker
	t     *testing.T
	store *bottest.Store
	now   time.Time
	id    int
}

func setup(t *testing.T, change func(*inquiry.Deps)) *world {
	t.Helper()
	w := &world{t: t, store: bottest.New(), now: time.Date(2026, 12, 2, 23, 30, 0, 0, time.UTC)} // a Wednesday
	deps := inquiry.Deps{
		Store: w.store, Now: func() time.Time { return w.now }, Messages: true,
		Zone: func(string) *time.Location { return time.FixedZone("", 3600) },
	}
	if change != nil {
		change(&deps)
	}
	w.Broker = approval.New(approval.Deps{
		Store: w.store, Words: texts.Words{}, Now: deps.Now, Replies: deps.Messages, Inquiries: inquiry.New(deps),
		Rights: func(context.Context, bot.Place, string) (approval.Rights, error) {
			return approval.Rights{Approvers: []string{"telegram:boss"}, Admins: []string{"telegram:boss"}, Required: 2}, nil
		},
	}, 10*time.Minute)
	return w
}

// ask asks and returns the question.
func (w *world) ask(questions ...tools.FormQuestion) bot.Approval {
	w.t.Helper()
	change := &bot.Change{}
	err := w.Ask(w.t.Context(), turn.Asked{Session: session, Turn: "t1", Place: here, Caller: "telegram:ann", Name: "Ann", Questions: []tools.Question{{
		Call: "c1", Tool: "ask", Hash: hash, Caller: "telegram:ann", Args: "{}", Form: &tools.Form{Questions: questions},
	}}}, change)
	if err != nil {
		w.t.Fatal(err)
	}
	w.apply(change)
	return w.read()
}

func (w *world) apply(change *bot.Change) {
	w.t.Helper()
	if _, err := w.store.Apply(w.t.Context(), change); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read() bot.Approval {
	w.t.Helper()
	a, err := w.store.ApprovalOf(w.t.Context(), session, "c1")
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *world) message(person string) bot.Message {
	w.id++
	return bot.Message{ID: strconv.Itoa(w.id), Caller: "telegram:" + person, Person: person, Name: person, Place: here, Query: "q", Kind: bot.Text, Addressed: true}
}

// pressing returns what a press does.
func (w *world) pressing(person, choice, text string) turn.Effect {
	w.t.Helper()
	m := w.message(person)
	m.Kind, m.Data, m.Text = bot.Press, approval.InquiryData(w.read().ID, choice), text
	e, err := w.Press(w.t.Context(), &m)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// press presses, and returns the toast and whether the turn goes on.
func (w *world) press(person, choice string) (toast string, goesOn bool) {
	w.t.Helper()
	e := w.pressing(person, choice, "")
	w.apply(&e.Change)
	return e.Change.Send[0].Content.Text, len(e.Decided) > 0
}

// say writes, and reports whether that was an answer.
func (w *world) say(person, text string) (reply string, answers bool) {
	w.t.Helper()
	m := w.message(person)
	m.Text = text
	answers, err := w.Explains(w.t.Context(), &m, w.now)
	if err != nil || !answers {
		return "", false
	}
	e, err := w.Explain(w.t.Context(), &m, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	w.apply(&e.Change)
	for _, row := range e.Change.Send {
		if row.Purpose == bot.Reply {
			reply = row.Content.Text
		}
	}
	return reply, true
}

// reply returns what the call gets.
func (w *world) reply() approve.Approval {
	w.t.Helper()
	found, err := w.Approval(w.t.Context(), session, "c1", hash)
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func choice(several bool, choices ...string) tools.FormQuestion {
	return tools.FormQuestion{Text: "Which?", Kind: tools.ChoiceQuestion, Choices: choices, Several: several}
}

// TestOnlyTheAskedPersonAnswers: not an approver or admin, nor by the buttons and commands of approvals.
func TestOnlyTheAskedPersonAnswers(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	a := w.ask(choice(false, "A", "B"))
	for _, person := range []string{"boss", "ben"} {
		if toast, on := w.press(person, "0.1"); on || toast != "This question is for Ann alone." {
			t.Errorf("%s: %q, %t", person, toast, on)
		}
		if _, answers := w.say(person, "A"); answers {
			t.Errorf("%s has answered", person)
		}
	}
	m := w.message("ann")
	m.Kind = bot.Press
	for _, data := range []string{approval.PressData(a.ID, true), approval.PressData(a.ID, false), "a1:" + a.ID + ":s", "q1:" + a.ID, "q1:x:0.1", "q1:" + a.ID + ":0.2", "q1:" + a.ID + ":1.0", "q1:" + a.ID + ":0.d", "q1:" + a.ID + ":0.k", "q1:" + a.ID + ":0.w", "q1:" + a.ID + ":-1.0", "q1:" + a.ID + ":t", "q1:" + a.ID + ":f"} {
		m.Data, m.Text = data, `[["A"]]`
		e, err := w.Press(t.Context(), &m)
		if err != nil || len(e.Change.Decide)+len(e.Change.Facts) > 0 {
			t.Errorf("%s: %+v, %v", data, e.Change, err)
		}
	}
	m = w.message("ann")
	m.Kind, m.Data, m.Place.Chat = bot.Press, approval.InquiryData(a.ID, "0.0"), "-6"
	if e, err := w.Press(t.Context(), &m); err != nil || len(e.Change.Decide) > 0 {
		t.Errorf("from another chat: %+v, %v", e.Change, err)
	}
	m = w.message("boss")
	e, err := w.Command(t.Context(), &turn.Call{Message: &m}, bot.Denied)
	if err != nil || len(e.Change.Decide) > 0 || w.reply().State != approve.Waiting {
		t.Errorf("by a command: %+v, %v", e.Change, err)
	}
	if toast, on := w.press("ann", "0.1"); !on || toast != "Noted." {
		t.Errorf("%q, %t", toast, on)
	}
	if diff := cmp.Diff(&tools.FormReply{State: tools.FormAnswered, Answers: []tools.FormAnswer{{Chosen: []string{"B"}}}}, w.reply().Reply); diff != "" {
		t.Error(diff)
	}
	if toast, on := w.press("ann", "0.0"); on || !strings.HasPrefix(toast, "This question is over. ✅ Answered by ann") {
		t.Errorf("a second press: %q, %t", toast, on)
	}
	if _, answers := w.say("ann", "A"); answers {
		t.Error("a message after the answer is another one")
	}
}

// TestAnswersOnce: of two presses that were computed from the same state one counts, and a press of a question that was
// answered answers no other one.
func TestAnswersOnce(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	w.ask(choice(false, "A", "B"), choice(false, "C", "D"))
	first, second := w.pressing("ann", "0.0", ""), w.pressing("ann", "0.1", "")
	w.apply(&first.Change)
	if _, err := w.store.Apply(t.Context(), &second.Change); !errors.Is(err, bot.ErrConflict) {
		t.Errorf("both presses count: %v", err)
	}
	if toast, on := w.press("ann", "0.1"); on || toast != "That is answered already." {
		t.Errorf("%q, %t", toast, on)
	}
	last, late := w.pressing("ann", "1.1", ""), w.pressing("ann", "1.0", "")
	w.apply(&last.Change)
	if _, err := w.store.Apply(t.Context(), &late.Change); err == nil {
		t.Error("both last presses count")
	}
	if diff := cmp.Diff([]tools.FormAnswer{{Chosen: []string{"A"}}, {Chosen: []string{"D"}}}, w.reply().Reply.Answers); diff != "" {
		t.Error(diff)
	}
}

// TestWords: what a person writes is read as the choice that it names, as a day, or as it is.
func TestWords(t *testing.T) {
	t.Parallel()
	date := tools.FormQuestion{Text: "When?", Kind: tools.DateQuestion}
	words := tools.FormQuestion{Text: "Why?", Kind: tools.TextQuestion}
	for _, tc := range []struct {
		asked tools.FormQuestion
		said  string
		want  tools.FormAnswer
	}{
		{choice(false, "Lisbon", "Oslo"), " oslo ", tools.FormAnswer{Chosen: []string{"Oslo"}}},
		{choice(false, "Lisbon", "Oslo"), "1", tools.FormAnswer{Chosen: []string{"Lisbon"}}},
		{choice(false, "2", "1"), "1", tools.FormAnswer{Chosen: []string{"1"}}},
		{choice(false, "Lisbon", "Oslo"), "Lisbon, Oslo", tools.FormAnswer{Text: "Lisbon, Oslo"}},
		{choice(true, "Lisbon", "Oslo"), "2, lisbon,2", tools.FormAnswer{Chosen: []string{"Oslo", "Lisbon"}}},
		{choice(true, "Lisbon", "Oslo"), "Oslo, and Rome", tools.FormAnswer{Text: "Oslo, and Rome"}},
		{words, "line\nline", tools.FormAnswer{Text: "line\nline"}},
		{date, "today", tools.FormAnswer{Day: "2026-12-03"}},
		{date, "Tomorrow at 9:30", tools.FormAnswer{Day: "2026-12-04T09:30:00+01:00"}},
		{date, "24.12.", tools.FormAnswer{Day: "2026-12-24"}},
		{date, "next friday", tools.FormAnswer{Day: "2026-12-11"}},
		{date, "nächsten Freitag um 9 Uhr", tools.FormAnswer{Day: "2026-12-04T09:00:00+01:00"}},
		{date, "el viernes que viene", tools.FormAnswer{Day: "2026-12-04"}},
		{date, "через две недели", tools.FormAnswer{Day: "2026-12-17"}},
	} {
		w := setup(t, nil)
		w.ask(tc.asked)
		if reply, answers := w.say("ann", tc.said); !answers || reply != "" {
			t.Errorf("%q: %q, %t", tc.said, reply, answers)
			continue
		}
		if diff := cmp.Diff([]tools.FormAnswer{tc.want}, w.reply().Reply.Answers); diff != "" {
			t.Errorf("%q: %s", tc.said, diff)
		}
	}
	w := setup(t, nil)
	w.ask(date)
	for said, want := range map[string]string{"some day": "I do not understand that as a day.", strings.Repeat("ä", 2001): "An answer can have 2000 characters"} {
		if reply, answers := w.say("ann", said); !answers || !strings.HasPrefix(reply, want) || w.reply().State != approve.Waiting {
			t.Errorf("%.20q: %q", said, reply)
		}
	}
	for _, tc := range []struct{ choice, day, until string }{{"0.0d", "2026-12-03", ""}, {"0.1d", "2026-12-04", ""}, {"0.w", "2026-12-03", "2026-12-06"}} {
		w := setup(t, nil)
		w.ask(date)
		w.press("ann", tc.choice)
		if diff := cmp.Diff([]tools.FormAnswer{{Day: tc.day, Until: tc.until}}, w.reply().Reply.Answers); diff != "" {
			t.Errorf("%s: %s", tc.choice, diff)
		}
	}
}

// TestNoAnswer: messages that are no answers are messages.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	if _, answers := w.say("ann", "before"); answers {
		t.Error("nothing was asked")
	}
	w.ask(choice(false, "A", "B"))
	for name, change := range map[string]func(*bot.Message){
		"a command":        func(m *bot.Message) { m.Command = "status" },
		"forwarded":        func(m *bot.Message) { m.Forwarded = true },
		"a file":           func(m *bot.Message) { m.Files = []bot.Attachment{{Kind: bot.Photo}} },
		"another topic":    func(m *bot.Message) { m.Place.Thread = "9" },
		"another chat":     func(m *bot.Message) { m.Place.Chat = "-6" },
		"nothing":          func(m *bot.Message) { m.Text = " " },
		"a reply to other": func(m *bot.Message) { m.Reply = &bot.Quote{ID: "3", Own: true, Text: "x"} },
		"an edit":          func(m *bot.Message) { m.Kind = bot.Edited },
	} {
		m := w.message("ann")
		m.Text = "A"
		change(&m)
		if answers, err := w.Explains(t.Context(), &m, w.now); answers || err != nil {
			t.Errorf("%s is an answer, %v", name, err)
		}
	}
	m := w.message("ann")
	m.Text = "A"
	if answers, err := w.Explains(t.Context(), &m, w.now); !answers || err != nil {
		t.Fatalf("%t, %v", answers, err)
	}
	w.now = w.now.Add(11 * time.Minute) // it expires before it is handled
	e, err := w.Explain(t.Context(), &m, w.now)
	if err != nil || len(e.Change.Decide) > 0 || !strings.Contains(e.Change.Send[0].Content.Text, "Send it again") {
		t.Errorf("%+v, %v", e.Change, err)
	}
	effects, err := w.Expired(t.Context(), w.now)
	if err != nil || len(effects) != 1 {
		t.Fatalf("%+v, %v", effects, err)
	}
	w.apply(&effects[0].Change)
	if r := w.reply(); r.State != approve.Expired || r.Reply.State != tools.FormExpired {
		t.Errorf("%+v", r)
	}
	if _, answers := w.say("ann", "after"); answers {
		t.Error("it has expired")
	}
}

// TestFilled: a channel that has forms hands in all answers at once.
func TestFilled(t *testing.T) {
	t.Parallel()
	w := setup(t, func(d *inquiry.Deps) { d.Messages = false })
	w.ask(choice(true, "A", "B"), tools.FormQuestion{Text: "When?", Kind: tools.DateQuestion}, tools.FormQuestion{Text: "Why?", Kind: tools.TextQuestion})
	for _, wrong := range []string{"", "[]", `{"a":1}`} {
		if e := w.pressing("ann", approval.Filled, wrong); len(e.Change.Decide)+len(e.Change.Facts) > 0 || !e.Change.Send[0].Alert {
			t.Errorf("%s: %+v", wrong, e.Change)
		}
	}
	e := w.pressing("ann", approval.Filled, `[["a","B"],["2026-12-24","or never"],[""]]`)
	w.apply(&e.Change)
	if diff := cmp.Diff([]tools.FormAnswer{{Chosen: []string{"A", "B"}}, {Day: "2026-12-24", Text: "or never"}, {}}, w.reply().Reply.Answers); diff != "" || len(e.Decided) != 1 {
		t.Error(diff)
	}
}
