package choice_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/choice"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

var models = []choice.Model{{Name: "main", ID: "gpt"}, {Name: "large", ID: "gpt-large"}, {Name: "own"}}

// desk is a process with a store that it may share with others.
type desk struct {
	t     *testing.T
	store *bottest.Store
	c     *choice.Choices
}

func open(t *testing.T, store *bottest.Store, change func(*choice.Deps)) *desk {
	t.Helper()
	deps := choice.Deps{Store: store, Offered: models, Words: texts.Words{}, Now: time.Now}
	if change != nil {
		change(&deps)
	}
	d := &desk{t: t, store: store, c: choice.New(deps)}
	d.follow()
	return d
}

func (d *desk) follow() {
	d.t.Helper()
	if err := d.c.Follow(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

// apply stores an effect like the dispatcher and returns its rows.
func (d *desk) apply(e turn.Effect, err error) []bot.Row {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
	applied, err := d.store.Apply(d.t.Context(), &e.Change)
	if err != nil {
		d.t.Fatal(err)
	}
	if e.Then != nil {
		if _, err := e.Then(d.t.Context(), applied); err != nil {
			d.t.Fatal(err)
		}
	}
	return e.Change.Send
}

func (d *desk) command(call *turn.Call, args string) []bot.Row {
	d.t.Helper()
	call.Message.Args = args
	return d.apply(d.c.Command(d.t.Context(), call))
}

func (d *desk) press(call *turn.Call, data string) []bot.Row {
	d.t.Helper()
	call.Message.Kind, call.Message.Data, call.Message.Query = bot.Press, data, "q"
	return d.apply(d.c.Press(d.t.Context(), call))
}

func call(chat, person string, admin bool) *turn.Call {
	place := bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: chat, Group: strings.HasPrefix(chat, "-")}
	msg := &bot.Message{Kind: bot.Text, Place: place, Caller: "telegram:" + person, Person: person, Name: "Ann", Message: "9"}
	return &turn.Call{Message: msg, Session: place.SessionKey(person), Admin: admin}
}

// buttons returns the labels of a row and their data.
func buttons(row *bot.Row) (labels, data []string) {
	for _, line := range row.Content.Buttons {
		for _, b := range line {
			labels, data = append(labels, b.Label), append(data, b.Data)
		}
	}
	return labels, data
}

// The model of a private conversation is chosen by its person, that of a group by its admins.
func TestWhoChooses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		call *turn.Call
		lock bool
		may  bool
	}{
		{name: "private", call: call("1", "1", false), may: true},
		{name: "group", call: call("-5", "1", false)},
		{name: "group, an admin", call: call("-5", "2", true), may: true},
		{name: "locked", call: call("1", "1", true), lock: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := open(t, bottest.New(), func(deps *choice.Deps) { deps.Lock = tt.lock })
			card := d.command(tt.call, "")
			labels, data := buttons(&card[0])
			want := []string{"✓ main · gpt", "large · gpt-large", "own"}
			if !tt.may {
				want = nil
			}
			if diff := cmp.Diff(want, labels); diff != "" {
				t.Errorf("buttons (-want +got):\n%s", diff)
			}
			if !tt.may {
				_, data = buttons(&open(t, bottest.New(), nil).command(call("1", "1", false), "")[0])
			}
			rows := d.press(tt.call, data[1])
			if got := d.c.Of(tt.call.Session) == "large"; got != tt.may || rows[0].Purpose != bot.Toast || rows[0].Alert == tt.may {
				t.Errorf("chosen %v, rows %+v", got, rows)
			}
			rows = d.command(tt.call, "own")
			if got := d.c.Of(tt.call.Session) == "own"; got != tt.may {
				t.Errorf("chosen %v by name, rows %+v", got, rows)
			}
		})
	}
}

// A choice applies where it was made, in every process, until the first model is chosen again or it is no longer
// offered.
func TestWhereAChoiceHolds(t *testing.T) {
	t.Parallel()
	store := bottest.New()
	one, two := open(t, store, nil), open(t, store, nil)
	ann, bob, group := call("1", "1", false), call("2", "2", false), call("-5", "3", true)
	one.command(ann, "LARGE")
	one.command(group, "gpt-large")
	other := call("-5", "4", false) // of another person in the group
	want := map[*turn.Call]string{ann: "large", bob: "", group: "large", other: "large"}
	for range 2 {
		for c, name := range want {
			if got := one.c.Of(c.Session); got != name {
				t.Errorf("%s has %q, want %q", c.Session, got, name)
			}
			if got := two.c.Of(c.Session); got != "" {
				t.Errorf("the other process knows %q of %s before it looked", got, c.Session)
			}
		}
		one.follow() // its own choice changes nothing
	}
	two.follow()
	for c, name := range want {
		if got := two.c.Of(c.Session); got != name {
			t.Errorf("%s has %q in the other process, want %q", c.Session, got, name)
		}
	}
	without := open(t, store, func(deps *choice.Deps) { deps.Offered = models[:1] })
	if got := without.c.Of(ann.Session); got != "" {
		t.Errorf("%q is not offered", got)
	}
	two.command(ann, "main")
	one.follow()
	if got := one.c.Of(ann.Session) + two.c.Of(ann.Session); got != "" {
		t.Errorf("still %q", got)
	}
	if left, err := store.FactsOf(t.Context(), "model", "", time.Now()); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// A group keeps its model when it gets a new id.
func TestChoiceMoves(t *testing.T) {
	t.Parallel()
	d := open(t, bottest.New(), nil)
	d.command(call("-5", "3", true), "large")
	move := &bot.Move{Channel: "telegram", Bot: "7", From: "-5", To: "-1005"}
	if _, err := d.store.Apply(t.Context(), &bot.Change{Move: move}); err != nil {
		t.Fatal(err)
	}
	d.c.Forget()
	d.follow()
	if got := d.c.Of(call("-1005", "4", false).Session); got != "large" {
		t.Errorf("%q", got)
	}
}

// Pressing or naming a model that is not offered changes nothing and is answered.
func TestNotOffered(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"m1", "m1:", "m1:x", "m1:" + strings.Repeat("A", 60), "a1:x:y"} {
		d := open(t, bottest.New(), nil)
		ann := call("1", "1", true)
		if rows := d.press(ann, data); len(rows) != 1 || !rows[0].Alert || rows[0].Content.Text == "" || d.c.Of(ann.Session) != "" {
			t.Errorf("%q: %+v", data, rows)
		}
	}
	for args, want := range map[string]string{
		"lrage": "I have no such model. Available: main, large, own. Did you mean large?",
		"x y":   "I have no such model. Available: main, large, own.",
	} {
		d := open(t, bottest.New(), nil)
		if rows := d.command(call("1", "1", true), args); rows[0].Content.Text != want {
			t.Errorf("%q: %q", args, rows[0].Content.Text)
		}
	}
}

// failing cannot be read.
type failing struct{ *bottest.Store }

func (failing) Fact(context.Context, string, string, time.Time) (string, error) {
	return "", context.DeadlineExceeded
}

// An unreadable store leaves what was known.
func TestFollowFails(t *testing.T) {
	t.Parallel()
	c := choice.New(choice.Deps{Store: failing{bottest.New()}, Offered: models, Now: time.Now})
	if err := c.Follow(t.Context()); err == nil {
		t.Error("no error")
	}
}

// A topic has the model of its chat until an admin chooses another one there, even the first of the list.
func TestTopics(t *testing.T) {
	t.Parallel()
	d := open(t, bottest.New(), nil)
	in := func(thread string) *turn.Call {
		c := call("-5", "2", true)
		c.Message.Place.Thread = thread
		c.Session = c.Message.Place.SessionKey("2")
		return c
	}
	want := func(of map[string]string) {
		t.Helper()
		for thread, name := range of {
			if got := d.c.Of(in(thread).Session); got != name {
				t.Errorf("topic %q has %q, want %q", thread, got, name)
			}
		}
	}
	d.command(in(""), "large")
	want(map[string]string{"": "large", "7": "large", "8": "large"})
	d.command(in("7"), "own")
	d.command(in("8"), "main")
	want(map[string]string{"": "large", "7": "own", "8": "main", "9": "large"})
	d.command(in(""), "main")
	want(map[string]string{"": "", "7": "own", "8": "main", "9": ""})
	d = open(t, d.store, nil)
	want(map[string]string{"": "", "7": "own", "8": "main"})
	if rows := d.command(in("7"), ""); !strings.HasPrefix(rows[0].Content.Text, "The model of this conversation is own.") {
		t.Errorf("%q", rows[0].Content.Text)
	}
}

// TestAChoiceCountsBeforeItIsRead: the answer to a choice goes out with the commit that stores it, and the next question
// must not be asked of the model before. What another process has chosen counts as soon as the moment is over.
func TestAChoiceCountsBeforeItIsRead(t *testing.T) {
	t.Parallel()
	store, now := bottest.New(), time.Now()
	d := open(t, store, func(deps *choice.Deps) { deps.Now = func() time.Time { return now } })
	other := open(t, store, nil)
	ann := call("7", "7", false)
	choose := func(d *desk, name string) turn.Effect {
		t.Helper()
		ann.Message.Args = name
		e, err := d.c.Command(t.Context(), ann)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.store.Apply(t.Context(), &e.Change); err != nil {
			t.Fatal(err)
		}
		return e
	}
	choose(d, "large")
	if got := d.c.Of(ann.Session); got != "large" {
		t.Errorf("after the commit: %q", got)
	}
	choose(d, "main")
	d.follow()
	if got := d.c.Of(ann.Session); got != "" {
		t.Errorf("after the first one was chosen again: %q", got)
	}
	choose(other, "own")
	d.follow()
	if now = now.Add(time.Minute); d.c.Of(ann.Session) != "own" {
		t.Errorf("chosen elsewhere: %q", d.c.Of(ann.Session))
	}
}
