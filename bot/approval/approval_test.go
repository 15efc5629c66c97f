package approval_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

const session = "telegram/7/bot/-5/0/ann"

var here = bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: "-5", Group: true}

// world is a broker on a store, with a clock that is wound by hand.
type world struct {
	*approval.Broker
	t      *testing.T
	store  *bottest.Store
	now    time.Time
	rights approval.Rights
	id     int
}

func setup(t *testing.T) *world {
	t.Helper()
	return setupWith(t, nil)
}

// setupWith is setup with a place for files.
func setupWith(t *testing.T, files blob.Store) *world {
	t.Helper()
	w := &world{
		t: t, store: bottest.New(), now: time.Date(2026, 11, 1, 14, 0, 0, 0, time.UTC),
		rights: approval.Rights{Requester: true, Approvers: []string{"telegram:boss", "telegram:admin"}},
	}
	w.Broker = approval.New(approval.Deps{
		Store: w.store, Rights: func(context.Context, bot.Place, string) (approval.Rights, error) { return w.rights, nil }, Words: texts.Words{}, Now: func() time.Time { return w.now }, Blobs: files, Replies: true,
	}, 10*time.Minute)
	return w
}

func question(call string) tools.Question {
	return tools.Question{Call: call, Tool: "bash", Hash: "hash of " + call, Show: "rm " + call, Args: `{"command":"rm"}`, Reason: reason.Plain("no rule allows it"), Caller: "telegram:ann"}
}

func asked(questions ...tools.Question) turn.Asked {
	return turn.Asked{
		Session: session, Turn: "t1", Place: here, Caller: "telegram:ann", Name: "Ann", ReplyTo: "12", Questions: questions, Stats: journal.Stats{Steps: 4, USD: 0.012},
	}
}

func (w *world) apply(change *bot.Change) *bot.Applied {
	w.t.Helper()
	applied, err := w.store.Apply(w.t.Context(), change)
	if err != nil {
		w.t.Fatal(err)
	}
	return applied
}

// ask asks and returns the open questions.
func (w *world) ask(questions ...tools.Question) []bot.Approval {
	w.t.Helper()
	change := &bot.Change{}
	if err := w.Ask(w.t.Context(), asked(questions...), change); err != nil {
		w.t.Fatal(err)
	}
	w.apply(change)
	return w.open()
}

func (w *world) open() []bot.Approval {
	w.t.Helper()
	open, err := w.store.OpenApprovals(w.t.Context(), "")
	if err != nil {
		w.t.Fatal(err)
	}
	return open
}

func (w *world) read(id string) bot.Approval {
	w.t.Helper()
	a, err := w.store.Approval(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *world) message(person string) bot.Message {
	w.id++
	return bot.Message{ID: strconv.Itoa(w.id), Caller: "telegram:" + person, Person: person, Name: strings.ToUpper(person), Place: here, Message: "99", Query: "q1"}
}

// press presses and applies what follows; it returns the toast.
func (w *world) press(person, data string) (turn.Effect, bot.Row) {
	w.t.Helper()
	m := w.message(person)
	m.Kind, m.Data = bot.Press, data
	e, err := w.Press(w.t.Context(), &m)
	if err != nil {
		w.t.Fatal(err)
	}
	w.follow(e, w.apply(&e.Change))
	toast := e.Change.Send[0]
	if toast.Purpose != bot.Toast || toast.Query != "q1" || toast.Content.Text == "" && len(e.Change.Send) == 1 {
		w.t.Errorf("every press is answered, this was %+v", toast)
	}
	return e, toast
}

func (w *world) follow(e turn.Effect, applied *bot.Applied) turn.Effect {
	w.t.Helper()
	if e.Then == nil {
		return turn.Effect{}
	}
	next, err := e.Then(w.t.Context(), applied)
	if err != nil {
		w.t.Fatal(err)
	}
	w.apply(&next.Change)
	return next
}

// What may not have arrived of an open question is sent once more: its card as it is now, which is then its card, and its
// file. Every copy decides.
func TestAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	long := question("c1")
	long.Show = strings.Repeat("echo a line\n", 100)
	a := w.ask(long)[0]
	lost, err := w.store.Row(t.Context(), a.Row)
	if err != nil {
		t.Fatal(err)
	}
	again := func(row bot.Row) (change bot.Change) {
		t.Helper()
		if err := w.Again(t.Context(), &row, &change); err != nil {
			t.Fatal(err)
		}
		return change
	}
	resent := texts.Words{}.Resent("en")
	file := lost
	file.Key, file.Content = "ask/"+a.ID+"/file", bot.Content{Text: "call.txt", File: &bot.File{Name: "call.txt"}}
	if c := again(file); len(c.Send) != 1 || len(c.Cards) != 0 || c.Send[0].Content.File == nil || !strings.HasSuffix(c.Send[0].Content.Text, resent) {
		t.Errorf("the file: %+v", c)
	}
	c := again(lost)
	if len(c.Send) != 1 || len(c.Cards) != 1 || c.Send[0].Purpose != bot.Question || c.Send[0].ReplyTo != "12" ||
		!strings.HasPrefix(c.Send[0].Content.Text, lost.Content.Text) || !strings.HasSuffix(c.Send[0].Content.Text, resent) || !reflect.DeepEqual(c.Send[0].Content.Buttons, lost.Content.Buttons) {
		t.Errorf("the card: %+v", c)
	}
	c.Send[0].Doubt = w.now
	w.apply(&c)
	second, err := w.store.Row(t.Context(), w.read(a.ID).Row)
	if err != nil || second.ID == a.Row {
		t.Fatalf("the card is still row %d, %v", second.ID, err)
	}
	for what, row := range map[string]bot.Row{"what was sent once more": second, "something else": {Key: "final/1"}, "nothing that is known": {Key: "ask/unknown"}} {
		if c := again(row); len(c.Send) != 0 {
			t.Errorf("%s is sent once more: %+v", what, c)
		}
	}
	w.apply(&bot.Change{Rows: []bot.RowUpdate{{ID: second.ID, From: []bot.RowState{bot.Pending}, To: bot.Sent, Message: "120"}}})
	w.press("ann", data(a, "y")) // on message 99, an older copy
	if got := w.read(a.ID); got.State != bot.Approved {
		t.Errorf("a copy of the card does not decide: %+v", got)
	}
	if c := again(lost); len(c.Send) != 0 {
		t.Errorf("a decided question is asked again: %+v", c)
	}
}

func data(a bot.Approval, choice string) string { return "a1:" + a.ID + ":" + choice }

func TestCard(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.ask(question("c1"))[0]
	row, err := w.store.Row(t.Context(), a.Row)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"May I run this?", "bash", "rm c1", "no rule allows it", "14:10 UTC", "/approve " + a.Short, "4 steps"} {
		if !strings.Contains(row.Content.Text, want) {
			t.Errorf("the card lacks %q: %s", want, row.Content.Text)
		}
	}
	if row.Purpose != bot.Question || row.ReplyTo != "12" || row.Place != here || row.Session != session {
		t.Errorf("%+v", row)
	}
	units := strings.Index(row.Content.Text, "rm c1")
	if e := row.Content.Entities; len(e) != 1 || e[0].Type != "pre" || e[0].Length != 5 || e[0].Offset != render.Length(row.Content.Text[:units]) {
		t.Errorf("entities %+v", e)
	}
	for _, line := range row.Content.Buttons {
		for _, b := range line {
			if len(b.Data) > 64 || !strings.HasPrefix(b.Data, "a1:"+a.ID+":") {
				t.Errorf("button %+v", b)
			}
		}
	}
	if len(a.ID) != 22 || a.Needed != 1 || !a.Expires.Equal(w.now.Add(10*time.Minute)) {
		t.Errorf("%+v", a)
	}
	// Asked again: nothing new. Decided meanwhile: nothing new either.
	if again := w.ask(question("c1")); len(again) != 1 {
		t.Errorf("asked twice: %d", len(again))
	}
	w.press("ann", data(a, "y"))
	if again := w.ask(question("c1")); len(again) != 0 {
		t.Errorf("asked after the decision")
	}
}

// A question whose call has changed takes the place of the old one.
func TestChangedCall(t *testing.T) {
	t.Parallel()
	w := setup(t)
	old := w.ask(question("c1"))[0]
	q := question("c1")
	q.Hash = "other"
	open := w.ask(q)
	if len(open) != 1 || open[0].Hash != "other" || w.read(old.ID).State != bot.Withdrawn {
		t.Fatalf("open %+v", open)
	}
	rows, _ := w.store.Rows(t.Context(), session, 0)
	if !slices.ContainsFunc(rows, func(r bot.Row) bool { return r.EditRow == old.Row && strings.Contains(r.Content.Text, "Withdrawn") }) {
		t.Errorf("the old card stays: %+v", rows)
	}
}

func TestPress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		person, choice string
		rights         func(*approval.Rights)
		state          bot.ApprovalState
		scope, toast   string
		alert          bool
	}{
		"caller":            {person: "ann", choice: "y", state: bot.Approved, scope: bot.Once, toast: "Noted."},
		"for the session":   {person: "ann", choice: "s", state: bot.Approved, scope: bot.Session, toast: "Noted."},
		"deny":              {person: "ann", choice: "n", state: bot.Denied, scope: bot.Once, toast: "Noted."},
		"approver":          {person: "boss", choice: "y", state: bot.Approved, scope: bot.Once, toast: "Noted."},
		"admin":             {person: "admin", choice: "n", state: bot.Denied, scope: bot.Once, toast: "Noted."},
		"stranger":          {person: "eve", choice: "y", state: bot.Open, toast: "Only Ann or an approver of this chat can decide this.", alert: true},
		"stranger of two":   {person: "eve", choice: "y", rights: func(r *approval.Rights) { r.Required = 2 }, state: bot.Open, toast: "Only approvers of this chat can approve this, and not whoever asked.", alert: true},
		"not the requester": {person: "ann", choice: "y", rights: func(r *approval.Rights) { r.Requester = false }, state: bot.Open, toast: "Somebody else has to approve this: not the person who asked.", alert: true},
		"requester denies":  {person: "ann", choice: "n", rights: func(r *approval.Rights) { r.Requester = false }, state: bot.Denied, scope: bot.Once, toast: "Noted."},
		"one of two":        {person: "ann", choice: "y", rights: func(r *approval.Rights) { r.Required = 2 }, state: bot.Open, toast: "Several people have to approve this, and the person who asked does not count.", alert: true},
		"another of two":    {person: "boss", choice: "y", rights: func(r *approval.Rights) { r.Required = 2 }, state: bot.Open, toast: "Noted. 1 more needed."},
		"session of two":    {person: "boss", choice: "s", rights: func(r *approval.Rights) { r.Required = 2 }, state: bot.Open, toast: "This question is no longer open.", alert: true},
		"one denies of two": {person: "ann", choice: "n", rights: func(r *approval.Rights) { r.Required = 2 }, state: bot.Denied, scope: bot.Once, toast: "Noted."},
		"forged choice":     {person: "ann", choice: "x", state: bot.Open, toast: "This question is no longer open.", alert: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			if c.rights != nil {
				c.rights(&w.rights)
			}
			a := w.ask(question("c1"))[0]
			e, toast := w.press(c.person, data(a, c.choice))
			got := w.read(a.ID)
			if got.State != c.state || got.Scope != c.scope || toast.Content.Text != c.toast || toast.Alert != c.alert {
				t.Errorf("%+v, toast %+v", got, toast)
			}
			if decided := c.state != bot.Open; decided != slices.Contains(e.Decided, session) || (decided && (got.By != "telegram:"+c.person || got.ByName == "")) {
				t.Errorf("decided %v by %q", e.Decided, got.By)
			}
			if c.state != bot.Open {
				card := e.Change.Send[1]
				if card.EditRow != a.Row || len(card.Content.Buttons) != 0 || !strings.Contains(card.Content.Text, "rm c1") || !strings.Contains(card.Content.Text, strings.ToUpper(c.person)) {
					t.Errorf("record %+v", card)
				}
			}
		})
	}
}

// TestAttackForgedPress: whoever has a client of their own sends any data on any message. It is answered, and nothing
// else happens: no decision, no edit, no keyboard that goes.
func TestAttackForgedPress(t *testing.T) {
	t.Parallel()
	w := setup(t)
	open, decided, asked := w.ask(question("c1"))[0], bot.Approval{}, 2
	w.ask(question("c2"))
	for _, a := range w.open() {
		if a.ID != open.ID {
			decided = a
		}
	}
	w.press("ann", data(decided, "n"))
	w.sent(open.Row, "99")
	id := open.ID
	for name, c := range map[string]struct {
		data   string
		change func(*bot.Message)
	}{
		"nothing": {}, "a word": {data: "x"}, "only the version": {data: "a1"}, "no choice": {data: "a1:" + id}, "another version": {data: "a2:" + id + ":y"},
		"unknown question": {data: "a1:" + strings.Repeat("A", 22) + ":y"}, "one part too many": {data: "a1:" + id + ":y:y"}, "no question": {data: "a1::y"},
		"unknown choice": {data: "a1:" + id + ":x"}, "two choices": {data: "a1:" + id + ":yn"}, "upper case": {data: "a1:" + id + ":Y"}, "a blank": {data: "a1:" + id + ":y "},
		"a rule that was not offered":         {data: "a1:" + id + ":A", change: func(m *bot.Message) { m.Caller = "telegram:admin" }},
		"to show a rule that is not there":    {data: "a1:" + id + ":a", change: func(m *bot.Message) { m.Caller = "telegram:admin" }},
		"back from a rule that was not shown": {data: "a1:" + id + ":b", change: func(m *bot.Message) { m.Caller = "telegram:admin" }},
		"another chat":                        {data: data(open, "y"), change: func(m *bot.Message) { m.Place.Chat = "-6" }},
		"another bot":                         {data: data(open, "y"), change: func(m *bot.Message) { m.Place.Bot = "8" }},
		"another surface":                     {data: data(open, "y"), change: func(m *bot.Message) { m.Place.Surface = "business" }},
		"another message":                     {data: data(open, "y"), change: func(m *bot.Message) { m.Message = "98" }},
		"nobody":                              {data: data(open, "y"), change: func(m *bot.Message) { m.Caller = "" }},
		"a stranger":                          {data: data(open, "y"), change: func(m *bot.Message) { m.Caller = "telegram:eve" }},
		"a stranger who denies":               {data: data(open, "n"), change: func(m *bot.Message) { m.Caller = "telegram:eve" }},
		"a stranger who says nobody is there": {data: data(open, "g"), change: func(m *bot.Message) { m.Caller = "telegram:eve" }},
		"an id without channel":               {data: data(open, "y"), change: func(m *bot.Message) { m.Caller = "ann" }},
		"decided before":                      {data: data(decided, "y")},
		"decided before, for the session":     {data: data(decided, "s")},
	} {
		m := w.message("ann")
		m.Data = c.data
		if c.change != nil {
			c.change(&m)
		}
		e, err := w.Press(t.Context(), &m)
		if err != nil || !onlyAnswers(e) {
			t.Errorf("%s: %v %+v", name, err, e)
		}
	}
	if list := w.open(); len(list) != asked-1 || list[0].ID != open.ID {
		t.Errorf("open: %+v", list)
	}
	// The same card pressed as it is.
	if w.press("ann", data(open, "y")); w.read(open.ID).State != bot.Approved {
		t.Error("the real press does not count")
	}
}

// onlyAnswers says whether an effect is no more than one toast.
func onlyAnswers(e turn.Effect) bool {
	sent := e.Change.Send
	e.Change.Send = nil
	if len(sent) != 1 || sent[0].Purpose != bot.Toast || sent[0].Edit != "" || sent[0].EditRow != 0 || sent[0].Content.Text == "" {
		return false
	}
	return e.Then == nil && reflect.DeepEqual(e, turn.Effect{})
}

// sent notes on which message a row went out.
func (w *world) sent(row int64, message string) {
	w.t.Helper()
	w.apply(&bot.Change{Rows: []bot.RowUpdate{{ID: row, From: []bot.RowState{bot.Pending}, To: bot.Sent, Message: message}}})
}

// FuzzPress sends any data: what is not a button of the card has no effect.
func FuzzPress(f *testing.F) {
	for _, s := range []string{"", "a1", "a1:ID:y", "a1:ID:A", "a1:ID:g", "a1:ID:s", "a1:ID:y:", "a1::", "\x00", "a1:ID:n\n", "a1:id:y"} {
		f.Add(s, "ann")
	}
	f.Fuzz(func(t *testing.T, text, person string) {
		w := setup(t)
		a := w.ask(question("c1"))[0]
		m := w.message(person)
		m.Data = strings.ReplaceAll(text, "ID", a.ID)
		e, err := w.Press(t.Context(), &m)
		if err != nil {
			t.Fatal(err)
		}
		known := slices.Contains([]string{data(a, "y"), data(a, "s"), data(a, "n"), data(a, "g")}, m.Data)
		rightful := slices.Contains([]string{"ann", "boss", "admin"}, person)
		if (!known || !rightful) && !onlyAnswers(e) {
			t.Fatalf("%q by %q: %+v", m.Data, person, e)
		}
	})
}

func TestPressTwice(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.ask(question("c1"))[0]
	first, second := w.message("ann"), w.message("boss")
	first.Data, second.Data = data(a, "y"), data(a, "n")
	one, err := w.Press(t.Context(), &first)
	if err != nil {
		t.Fatal(err)
	}
	two, err := w.Press(t.Context(), &second) // computed before the first is in
	if err != nil {
		t.Fatal(err)
	}
	w.apply(&one.Change)
	if _, err := w.store.Apply(t.Context(), &two.Change); !errors.Is(err, bot.ErrDecided) {
		t.Fatalf("both decided: %v", err)
	}
	_, toast := w.press("boss", second.Data) // what the dispatcher does then
	if toast.Content.Text != "Already decided: ✅ Approved once by ANN, 14:00 UTC" || w.read(a.ID).State != bot.Approved {
		t.Errorf("toast %q", toast.Content.Text)
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.ask(question("c1"), question("c2"))
	w.now = w.now.Add(10 * time.Minute)
	e, toast := w.press("ann", data(a[0], "y")) // too late
	if got := w.read(a[0].ID); got.State != bot.Expired || !strings.Contains(toast.Content.Text, "Nobody decided in time") || !slices.Contains(e.Decided, session) {
		t.Errorf("%+v %q", got, toast.Content.Text)
	}
	effects, err := w.Expired(t.Context(), w.now.Add(-time.Second))
	if err != nil || len(effects) != 0 {
		t.Errorf("too early: %v %v", effects, err)
	}
	effects, err = w.Expired(t.Context(), w.now)
	if err != nil || len(effects) != 1 {
		t.Fatalf("%v %v", effects, err)
	}
	w.apply(&effects[0].Change)
	card := effects[0].Change.Send[0]
	if w.read(a[1].ID).State != bot.Expired || card.EditRow != a[1].Row || len(card.Content.Buttons) != 0 || !slices.Contains(effects[0].Decided, session) {
		t.Errorf("%+v", effects[0])
	}
}

// A question whose body cannot be read can be neither shown nor approved, but it ends.
func TestBrokenBody(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := bot.Approval{ID: "x", Short: "x", Session: session, Turn: "t1", Place: here, Caller: "telegram:ann", Tool: "bash", Body: []byte("5"), Expires: w.now}
	w.apply(&bot.Change{Ask: []bot.Approval{a}})
	m := w.message("ann")
	m.Data = data(a, "y")
	if _, err := w.Press(t.Context(), &m); err == nil {
		t.Error("what was approved?")
	}
	effects, err := w.Expired(t.Context(), w.now)
	if err != nil || len(effects) != 1 || !strings.Contains(effects[0].Change.Send[0].Content.Text, "bash") {
		t.Fatalf("%v %v", effects, err)
	}
	w.apply(&effects[0].Change)
}

func TestVotes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.rights.Required = 2
	a := w.ask(question("c1"))[0]
	if _, toast := w.press("ann", data(a, "y")); !toast.Alert || len(w.read(a.ID).Votes) != 0 {
		t.Errorf("the vote of the person who asked counted: %q", toast.Content.Text)
	}
	e, _ := w.press("admin", data(a, "y"))
	if card := e.Change.Send[1]; !strings.Contains(card.Content.Text, "Needs 2 approvals, not counting the person who asked; 1 so far.") || len(card.Content.Buttons) == 0 {
		t.Errorf("card %+v", card)
	}
	if _, toast := w.press("admin", data(a, "y")); toast.Content.Text != "Noted. 1 more needed." || w.read(a.ID).State != bot.Open {
		t.Errorf("one person voted twice: %q", toast.Content.Text)
	}
	e, _ = w.press("boss", data(a, "y"))
	if got := w.read(a.ID); got.State != bot.Approved || len(got.Votes) != 2 || !slices.Contains(e.Decided, session) {
		t.Errorf("%+v", got)
	}
}

// Two people press in the same moment, on two replicas: both are counted, and the turn goes on.
func TestVotesAtOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.rights.Required = 2
	a := w.ask(question("c1"))[0]
	first, second := w.message("admin"), w.message("boss")
	first.Data, second.Data = data(a, "y"), data(a, "y")
	one, err := w.Press(t.Context(), &first)
	if err != nil {
		t.Fatal(err)
	}
	two, err := w.Press(t.Context(), &second)
	if err != nil {
		t.Fatal(err)
	}
	if next := w.follow(one, w.apply(&one.Change)); len(next.Decided) != 0 || len(next.Change.Send) != 0 {
		t.Errorf("the first vote is not the last: %+v", next)
	}
	next := w.follow(two, w.apply(&two.Change))
	if !slices.Contains(next.Decided, session) || len(next.Change.Send) != 1 || !strings.Contains(next.Change.Send[0].Content.Text, "Approved once") {
		t.Errorf("%+v", next)
	}
	if w.read(a.ID).State != bot.Approved {
		t.Error("not approved")
	}
}

// command gives /approve or /deny and applies it; it returns the answer.
func (w *world) command(person, args string, state bot.ApprovalState) string {
	w.t.Helper()
	m := w.message(person)
	m.Args = args
	e, err := w.Command(w.t.Context(), &turn.Call{Message: &m, Session: session}, state)
	if err != nil {
		w.t.Fatal(err)
	}
	w.apply(&e.Change)
	row := e.Change.Send[0]
	if row.Purpose != bot.Reply || row.ReplyTo != "99" {
		w.t.Errorf("%+v", row)
	}
	return row.Content.Text
}

func TestCommand(t *testing.T) {
	t.Parallel()
	w := setup(t)
	if got := w.command("ann", "", bot.Approved); got != "Nothing is waiting for a decision here." {
		t.Error(got)
	}
	elsewhere := asked(question("c9"))
	elsewhere.Place.Chat = "-6"
	change := &bot.Change{}
	if err := w.Ask(t.Context(), elsewhere, change); err != nil {
		t.Fatal(err)
	}
	w.apply(change)
	if got := w.command("ann", "", bot.Approved); got != "Nothing is waiting for a decision here." {
		t.Error(got)
	}
	w.ask(question("c1"), question("c2"), question("c3"))
	open := slices.DeleteFunc(w.open(), func(a bot.Approval) bool { return a.Place != here })
	if len(open) != 3 || open[0].Short == open[1].Short || open[1].Short == open[2].Short {
		t.Fatalf("open %+v", open)
	}
	which := "Several questions are open here. Say which: " + open[0].Short + ", " + open[1].Short + ", " + open[2].Short
	for _, args := range []string{"", "nonsense"} {
		if got := w.command("ann", args, bot.Approved); got != which {
			t.Errorf("%q: %q", args, got)
		}
	}
	if got := w.command("eve", open[0].Short, bot.Approved); !strings.Contains(got, "Only Ann") || w.read(open[0].ID).State != bot.Open {
		t.Error(got)
	}
	if got := w.command("ann", " "+strings.ToUpper(open[0].Short), bot.Approved); got != "Noted." || w.read(open[0].ID).State != bot.Approved {
		t.Error(got)
	}
	if got := w.command("boss", open[1].Short, bot.Denied); got != "Noted." || w.read(open[1].ID).State != bot.Denied {
		t.Error(got)
	}
	if got := w.command("ann", "", bot.Approved); got != "Noted." || w.read(open[2].ID).Scope != bot.Once {
		t.Error(got)
	}
}
