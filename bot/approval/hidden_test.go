package approval_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// hiding is a world whose group does not see its questions; boss and admin have written in private.
func hiding(t *testing.T) *ruled {
	t.Helper()
	w := setup(t)
	w.Broker = approval.New(approval.Deps{
		Store: w.store, Rights: func(context.Context, bot.Place, string) (approval.Rights, error) { return w.rights, nil },
		Words: texts.Words{}, Now: func() time.Time { return w.now }, Hides: func(bot.Place) bool { return true },
	}, 10*time.Minute)
	w.greet("boss", "admin")
	return &ruled{world: w}
}

// greet has people who have written in private.
func (w *world) greet(people ...string) {
	w.t.Helper()
	for _, person := range people {
		to := private(person)
		applied := w.apply(&bot.Change{Send: []bot.Row{{Session: to.SessionKey(""), Place: to, Purpose: bot.Reply, Content: bot.Content{Text: "hi"}}}})
		w.deliver(applied.Rows...)
	}
}

func private(person string) bot.Place {
	place := here
	place.Chat, place.Group = person, false
	return place
}

// deliver marks rows as sent.
func (w *world) deliver(rows ...int64) {
	w.t.Helper()
	for _, id := range rows {
		w.apply(&bot.Change{Rows: []bot.RowUpdate{{ID: id, From: []bot.RowState{bot.Pending}, To: bot.Sent, Message: "m"}}})
	}
}

// seen is what was written in a chat since, in all messages and edits.
func (w *world) seen(place bot.Place) string {
	w.t.Helper()
	var b strings.Builder
	for _, session := range []bot.SessionKey{session, place.SessionKey("")} {
		rows, err := w.store.Rows(w.t.Context(), session, 100)
		if err != nil {
			w.t.Fatal(err)
		}
		for i := range rows {
			if rows[i].Place.ChatKey() == place.ChatKey() {
				b.WriteString(rows[i].Content.Text + "\n")
			}
		}
	}
	return b.String()
}

// TestHidden: the group never reads what a hidden question is about, whatever is pressed; those who were asked see it,
// and all of their cards say who decided.
func TestHidden(t *testing.T) {
	t.Parallel()
	w := hiding(t)
	a := w.ask(question("secret"))[0]
	if got := w.seen(here); !strings.Contains(got, "I have asked those who may give it in private") {
		t.Errorf("the group reads %q", got)
	}
	for _, person := range []string{"boss", "admin"} {
		if got := w.seen(private(person)); !strings.Contains(got, "From a group:\n✋") || !strings.Contains(got, "rm secret") {
			t.Errorf("%s reads %q", person, got)
		}
	}
	if got := w.seen(private("ann")); got != "" {
		t.Errorf("somebody who has never written in private is asked there: %q", got)
	}
	for name, press := range map[string]struct {
		person string
		at     bot.Place
	}{
		"in the group":                    {"boss", here},
		"in the chat of somebody else":    {"admin", private("boss")},
		"by somebody who may not decide":  {"eve", private("eve")},
		"by somebody who was not asked":   {"ann", private("ann")},
		"in another group":                {"boss", bot.Place{Channel: here.Channel, Bot: here.Bot, Surface: here.Surface, Chat: "-9", Group: true}},
		"in the private chat of a second": {"boss", private("admin")},
	} {
		if w.pressIn(press.person, data(a, "y"), press.at); w.read(a.ID).State != bot.Open {
			t.Errorf("%s: decided", name)
		}
	}
	w.rights.Approvers = []string{"telegram:boss"}
	if w.pressIn("admin", data(a, "y"), private("admin")); w.read(a.ID).State != bot.Open {
		t.Error("somebody who has left the list decides")
	}
	w.pressIn("boss", data(a, "n"), private("boss"))
	if got := w.read(a.ID); got.State != bot.Denied {
		t.Errorf("the question is %s", got.State)
	}
	for _, person := range []string{"boss", "admin"} { // also who may not decide any more
		if got := w.seen(private(person)); !strings.Contains(got, "Denied by BOSS") {
			t.Errorf("%s reads %q", person, got)
		}
	}
	if got := w.seen(here); strings.Contains(got, "secret") || !strings.Contains(got, "Denied by BOSS") {
		t.Errorf("the group reads %q", got)
	}
}

// TestHiddenFromAll: while nobody can be asked in private, the group reads so, and nothing runs; whoever may approve
// is shown the card on /approve in private, and cannot decide unseen in the group.
func TestHiddenFromAll(t *testing.T) {
	t.Parallel()
	w := hiding(t)
	w.rights = approval.Rights{Approvers: []string{"telegram:late"}}
	a := w.ask(question("secret"))[0]
	if got := w.seen(here); !strings.Contains(got, "nobody who may give it has ever written to me in private") || strings.Contains(got, "secret") {
		t.Errorf("the group reads %q", got)
	}
	command := func(at bot.Place, state bot.ApprovalState) []bot.Row {
		msg := w.message("late")
		msg.Place = at
		e, err := w.Command(t.Context(), &turn.Call{Message: &msg}, state)
		if err != nil {
			t.Fatal(err)
		}
		w.apply(&e.Change)
		return e.Change.Send
	}
	rows := command(here, bot.Approved)
	if !slices.ContainsFunc(rows, func(r bot.Row) bool { return strings.Contains(r.Content.Text, "You have not seen yet") }) || w.read(a.ID).State != bot.Open {
		t.Errorf("approved unseen: %+v", rows)
	}
	if rows = command(private("late"), bot.Approved); w.read(a.ID).State != bot.Open || len(rows) != 1 || !strings.Contains(rows[0].Content.Text, "rm secret") {
		t.Errorf("the card is not shown: %+v", rows)
	}
	if command(private("late"), bot.Approved); w.read(a.ID).State != bot.Approved {
		t.Errorf("the question is %s", w.read(a.ID).State)
	}
	if got := w.seen(here); strings.Contains(got, "secret") {
		t.Errorf("the group reads %q", got)
	}
}

// TestHiddenFromTooMany: of several approvals none is the asker's, so that their own card offers none, and the group
// reads whether enough others have been asked.
func TestHiddenFromTooMany(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		approvers []string
		group     string
	}{
		"only the asker":    {[]string{"telegram:ann", "telegram:late"}, "This needs 2 approvals, not counting whoever asked, and too few"},
		"one of two others": {[]string{"telegram:ann", "telegram:admin", "telegram:late"}, "too few of those who may give them have ever written"},
		"enough":            {[]string{"telegram:boss", "telegram:admin", "telegram:ann"}, "This needs 2 approvals. I have asked those who may give them in private"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := hiding(t)
			w.greet("ann")
			w.rights = approval.Rights{Approvers: c.approvers, Required: 2}
			change := &bot.Change{}
			if err := w.Ask(t.Context(), asked(question("secret")), change); err != nil {
				t.Fatal(err)
			}
			w.apply(change)
			for i := range change.Send {
				row := &change.Send[i]
				if want := map[string]int{here.Chat: 0, "ann": 1}[row.Place.Chat]; (row.Place.Chat == "ann" || row.Place.Group) && len(row.Content.Buttons) != want {
					t.Errorf("%s can press %v", row.Place.Chat, row.Content.Buttons)
				}
			}
			if got := w.seen(here); !strings.Contains(got, c.group) {
				t.Errorf("the group reads %q", got)
			}
		})
	}
}
