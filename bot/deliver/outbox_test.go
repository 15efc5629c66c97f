package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/deliver"
	"github.com/zephbot/zephbot/bot/render"
)

func TestOutcomes(t *testing.T) {
	t.Parallel()
	bold := []render.Entity{{Type: "bold", Offset: 0, Length: 2}}
	tests := map[string]struct {
		row     bot.Row
		answers []error // of the requests in order; nil and everything after = well
		state   bot.RowState
		seen    []string // what people see; a vague request does not arrive
		logged  string
	}{
		"well":                   {row: row(bot.Final, "hi"), state: bot.Sent, seen: []string{"hi"}},
		"not sent, repeated":     {row: row(bot.Final, "hi"), answers: []error{fail(bot.NotSent), fail(bot.NotSent)}, state: bot.Sent, seen: []string{"hi"}},
		"throttled, repeated":    {row: row(bot.Notice, "hi"), answers: []error{&bot.SendError{Outcome: bot.Throttled, RetryAfter: 9 * time.Second, Err: errors.New("429")}}, state: bot.Sent, seen: []string{"hi"}},
		"refused notice":         {row: row(bot.Notice, "hi"), answers: []error{fail(bot.Refused)}, state: bot.Dead, logged: "message given up"},
		"refused final, plain":   {row: bot.Row{Purpose: bot.Final, ReplyTo: "5", Content: bot.Content{Text: "hi", Entities: bold}}, answers: []error{fail(bot.Refused)}, state: bot.Sent, seen: []string{"hi"}},
		"refused final for good": {row: bot.Row{Purpose: bot.Final, Content: bot.Content{Text: "hi", Entities: bold}}, answers: slices.Repeat([]error{fail(bot.Refused)}, 4), state: bot.Unknown, logged: `"level":"error"`},
		"gone":                   {row: row(bot.Final, "hi"), answers: []error{fail(bot.Gone)}, state: bot.Unknown, logged: "message given up"},
		"gone notice":            {row: row(bot.Notice, "hi"), answers: []error{fail(bot.Gone)}, state: bot.Dead, logged: "message given up"},
		"vague final":            {row: row(bot.Final, "hi"), answers: []error{fail(bot.Vague)}, state: bot.Sent, seen: []string{"hi\n\n" + mark}},
		"vague reply":            {row: row(bot.Reply, "hi"), answers: []error{errors.New("who knows")}, state: bot.Sent, seen: []string{"hi\n\n" + mark}},
		"vague question":         {row: row(bot.Question, "may I?"), answers: []error{fail(bot.Vague)}, state: bot.Sent, seen: []string{"may I?"}},
		"vague three times":      {row: row(bot.Final, "hi"), answers: slices.Repeat([]error{fail(bot.Vague)}, 3), state: bot.Sent, seen: []string{"hi\n\n" + mark}},
		"vague four times":       {row: row(bot.Final, "hi"), answers: slices.Repeat([]error{fail(bot.Vague)}, 4), state: bot.Unknown, logged: "message given up"},
		"not sent in between": {
			row:     row(bot.Final, "hi"),
			answers: []error{fail(bot.Vague), fail(bot.NotSent), fail(bot.Vague), fail(bot.NotSent), fail(bot.NotSent), fail(bot.Vague), fail(bot.NotSent)},
			state:   bot.Sent, seen: []string{"hi\n\n" + mark},
		},
		"vague file":               {row: bot.Row{Purpose: bot.Notice, Content: bot.Content{Text: "a.png", File: &bot.File{Name: "a.png", Data: []byte("x")}}}, answers: slices.Repeat([]error{fail(bot.Vague)}, 3), state: bot.Sent, seen: []string{"a.png\n\n" + mark}},
		"vague notice":             {row: row(bot.Notice, "hi"), answers: []error{fail(bot.Vague)}, state: bot.Dead},
		"vague placeholder":        {row: row(bot.Placeholder, "…"), answers: []error{fail(bot.Vague)}, state: bot.Dead},
		"edit":                     {row: bot.Row{Purpose: bot.Record, Edit: "3", Content: bot.Content{Text: "done"}}, state: bot.Sent, seen: []string{"edit 3: done"}},
		"vague edit, repeated":     {row: bot.Row{Purpose: bot.Final, Edit: "3", Content: bot.Content{Text: "done"}}, answers: []error{fail(bot.Vague), fail(bot.Vague), fail(bot.Vague)}, state: bot.Sent, seen: []string{"edit 3: done"}},
		"edit of what is missing":  {row: bot.Row{Purpose: bot.Record, Edit: "3", Content: bot.Content{Text: "done"}}, answers: []error{fail(bot.Missing)}, state: bot.Sent, seen: []string{"done"}},
		"edit refused to a final":  {row: bot.Row{Purpose: bot.Final, Edit: "3", Content: bot.Content{Text: "done"}}, answers: []error{fail(bot.Refused)}, state: bot.Sent, seen: []string{"done"}},
		"edit refused to another":  {row: bot.Row{Purpose: bot.Record, Edit: "3", Content: bot.Content{Text: "done"}}, answers: []error{fail(bot.Refused)}, state: bot.Dead},
		"toast":                    {row: bot.Row{Purpose: bot.Toast, Query: "q", Content: bot.Content{Text: "noted"}}, state: bot.Sent, seen: []string{"noted"}},
		"toast not sent":           {row: bot.Row{Purpose: bot.Toast, Query: "q", Content: bot.Content{Text: "noted"}}, answers: []error{fail(bot.NotSent)}, state: bot.Sent, seen: []string{"noted"}},
		"vague toast":              {row: bot.Row{Purpose: bot.Toast, Query: "q", Content: bot.Content{Text: "noted"}}, answers: slices.Repeat([]error{fail(bot.Vague)}, 4), state: bot.Sent, seen: []string{"noted"}},
		"keyboard of what is gone": {row: bot.Row{Purpose: bot.Record, Edit: "3"}, answers: []error{fail(bot.Missing)}, state: bot.Dead},
		"refused toast":            {row: bot.Row{Purpose: bot.Toast, Query: "q", Content: bot.Content{Text: "noted"}}, answers: []error{fail(bot.Refused)}, state: bot.Dead},
		"toast throttled too long": {
			row:     bot.Row{Purpose: bot.Toast, Query: "q", Content: bot.Content{Text: "noted"}},
			answers: []error{&bot.SendError{Outcome: bot.Throttled, RetryAfter: time.Hour, Err: errors.New("429")}}, state: bot.Dead,
		},
		"moved to nowhere": {row: row(bot.Final, "hi"), answers: []error{fail(bot.Moved)}, state: bot.Unknown, logged: "message given up"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := setup(t)
				answers := test.answers
				w.sender.answer = func(*bot.Row) error {
					if len(answers) == 0 {
						return nil
					}
					err := answers[0]
					answers = answers[1:]
					return err
				}
				w.start()
				id := w.say(test.row)[0]
				pass(5 * time.Minute)
				w.stop()
				got := w.row(id)
				if got.State != test.state {
					t.Errorf("state %s, want %s (%s)", got.State, test.state, got.Problem)
				}
				if got.State == bot.Sent && got.Message == "" {
					t.Error("no message id stored")
				}
				if got.State != bot.Sent && got.Problem == "" {
					t.Error("no problem stored")
				}
				if diff := cmp.Diff(test.seen, w.sender.texts("7")); diff != "" {
					t.Errorf("seen (-want +got):\n%s", diff)
				}
				if !strings.Contains(w.log.String(), test.logged) {
					t.Errorf("log has no %s:\n%s", test.logged, w.log)
				}
				if len(answers) > 0 {
					t.Errorf("%d requests too few", len(answers))
				}
			})
		})
	}
}

func TestPlainKeepsButtons(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.sender.answer = func(r *bot.Row) error {
			if len(r.Content.Entities) > 0 {
				return fail(bot.Refused)
			}
			return nil
		}
		w.start()
		w.say(bot.Row{Purpose: bot.Question, ReplyTo: "4", Content: bot.Content{
			Text: "may I?", Entities: []render.Entity{{Type: "bold", Length: 3}}, Buttons: [][]bot.Button{{{Label: "yes", Data: "y"}}},
		}})
		pass(time.Second)
		w.stop()
		got := w.sender.chats["7"][0]
		if len(got.Content.Buttons) != 1 || got.ReplyTo != "" || len(got.Content.Entities) != 0 {
			t.Errorf("sent as %+v", got)
		}
	})
}

func TestOrderWithinAChat(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.add(row(bot.Notice, "later"), row(bot.Placeholder, "…"), row(bot.Final, "one"), row(bot.Question, "two"), row(bot.Reply, "three"),
			bot.Row{Purpose: bot.Toast, Query: "q", Place: place("8"), Content: bot.Content{Text: "toast"}})
		w.start()
		pass(time.Minute)
		w.stop()
		want := []string{"one", "two", "three", "later", "…"}
		if diff := cmp.Diff(want, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
	})
}

// A row that failed holds up what comes after it in its chat, through a restart too, and nobody else.
func TestOrderSurvivesBackoffAndRestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		frozen := true
		w.sender.answer = func(r *bot.Row) error {
			if frozen && r.Place.Chat == "7" {
				return &bot.SendError{Outcome: bot.Throttled, RetryAfter: 5 * time.Minute, Err: errors.New("429")}
			}
			return nil
		}
		w.start()
		w.say(row(bot.Final, "one"), row(bot.Final, "two"))
		pass(3 * time.Second)
		three := w.say(row(bot.Final, "three"))[0]
		pass(3 * time.Second)
		if n := len(w.sender.sent()); n != 1 {
			t.Errorf("%d requests while the chat is frozen", n)
		}
		due, err := w.store.Due(t.Context(), "telegram", "1", time.Now(), 0)
		if err != nil || len(due) != 0 {
			t.Errorf("%d rows of a frozen chat are looked at again and again (%v)", len(due), err)
		}
		w.say(in("8", row(bot.Final, "other")))
		pass(time.Second)
		if diff := cmp.Diff([]string{"other"}, w.sender.texts("8")); diff != "" {
			t.Errorf("another chat is held up: %s", diff)
		}
		w.stop()
		frozen = false
		w.start()
		w.say(row(bot.Final, "four"))
		pass(10 * time.Minute)
		w.stop()
		if diff := cmp.Diff([]string{"one", "two", "three", "four"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
		if got := w.row(three); got.State != bot.Sent {
			t.Errorf("row behind: %s", got.State)
		}
	})
}

// slowDue answers a later look at what is due after a while only.
type slowDue struct {
	deliver.Store
	looks atomic.Int64
}

func (s *slowDue) Due(ctx context.Context, channel, id string, now time.Time, limit int) ([]bot.Row, error) {
	if s.looks.Add(1) > 1 {
		<-time.After(time.Second)
	}
	return s.Store.Due(ctx, channel, id, now, limit)
}

// A row that waits behind an earlier one does so after a restart too, where the earlier one may be sent again and its
// own time has not come.
func TestRowsBehindKeepTheirPlaceAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		ids := w.add(row(bot.Final, "one"), row(bot.Final, "two"))
		pending := []bot.RowState{bot.Pending}
		_, err := w.store.Apply(t.Context(), &bot.Change{Rows: []bot.RowUpdate{
			{ID: ids[0], From: pending, To: bot.Pending, Attempts: 1, NotBefore: time.Now(), Problem: "429"},
			{ID: ids[1], From: pending, To: bot.Pending, NotBefore: time.Now().Add(5 * time.Second), Problem: "waits behind an earlier message"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		w.read = &slowDue{Store: w.store}
		w.start()
		pass(time.Minute)
		w.stop()
		if diff := cmp.Diff([]string{"one", "two"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestSlowChatsHoldUpNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.opts.Chats = 3
		release := make(chan struct{})
		w.sender.answer = func(r *bot.Row) error {
			if r.Content.Text == "slow" {
				<-release
			}
			return nil
		}
		w.start()
		w.say(in("1", row(bot.Final, "slow")), in("2", row(bot.Final, "slow")))
		synctest.Wait()
		for i := range 50 {
			w.say(in(fmt.Sprint(100+i), row(bot.Final, "fast")))
		}
		w.say(bot.Row{Purpose: bot.Toast, Query: "q", Place: place("1"), Content: bot.Content{Text: "toast"}})
		pass(5 * time.Second)
		if n := len(w.sender.sent()); n != 51 {
			t.Errorf("%d requests done beside two slow ones, want 51", n)
		}
		close(release)
		pass(time.Second)
		w.stop()
	})
}

func TestManyRowsOfOneChatDoNotHideOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.limits.PerChatPerSecond = 1
		for i := range 400 {
			w.add(row(bot.Final, fmt.Sprint(i)))
		}
		w.add(in("8", row(bot.Final, "hi")))
		w.start()
		pass(20 * time.Second)
		if got := w.sender.texts("8"); len(got) != 1 {
			t.Errorf("the other chat got %q", got)
		}
		w.stop()
	})
}

func TestEditRow(t *testing.T) {
	t.Parallel()
	t.Run("of a sent row", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := setup(t)
			w.start()
			first := w.say(row(bot.Placeholder, "…"))[0]
			pass(time.Second)
			w.say(bot.Row{Purpose: bot.Final, EditRow: first, Content: bot.Content{Text: "answer"}})
			pass(time.Second)
			w.stop()
			if diff := cmp.Diff([]string{"…", "edit m1: answer"}, w.sender.texts("7")); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("of one that never got out", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := setup(t)
			w.sender.answer = func(r *bot.Row) error {
				if r.Purpose == bot.Placeholder {
					return fail(bot.Vague)
				}
				return nil
			}
			w.start()
			first := w.say(row(bot.Placeholder, "…"))[0]
			w.say(bot.Row{Purpose: bot.Final, EditRow: first, Content: bot.Content{Text: "answer"}})
			pass(time.Second)
			w.stop()
			if diff := cmp.Diff([]string{"answer"}, w.sender.texts("7")); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("of one that waits for the budget", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := setup(t)
			w.limits.PerGroupPerMinute = 5
			w.start()
			for range 3 {
				w.say(in("-5", row(bot.Placeholder, "x"))) // the share of modest rows
			}
			first := w.say(in("-5", row(bot.Placeholder, "…")))[0]
			pass(10 * time.Second)
			began := time.Now()
			w.say(in("-5", bot.Row{Purpose: bot.Final, EditRow: first, Content: bot.Content{Text: "answer"}}))
			pass(5 * time.Second)
			w.stop()
			if got := w.row(first); got.State != bot.Dead {
				t.Errorf("placeholder is %s", got.State)
			}
			if diff := cmp.Diff([]string{"x", "x", "x", "answer"}, w.sender.texts("-5")); diff != "" {
				t.Error(diff)
			}
			sent := w.sender.sent()
			if last := sent[len(sent)-1]; last.at.Sub(began) > time.Second {
				t.Errorf("the answer waited %s for the placeholder", last.at.Sub(began))
			}
		})
	})
}

func TestStranded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		ids := w.add(row(bot.Final, "answer"), row(bot.Notice, "note"), row(bot.Final, "again"))
		for _, id := range ids {
			_, err := w.store.Apply(t.Context(), &bot.Change{Rows: []bot.RowUpdate{{ID: id, From: []bot.RowState{bot.Pending}, To: bot.Sending, Unconfirmed: map[bool]int{true: 3}[id == ids[2]]}}})
			if err != nil {
				t.Fatal(err)
			}
		}
		failures := 2
		w.store.Hooks.BeforeApply = func(*bot.Change) error {
			if failures--; failures >= 0 {
				return errors.New("disk full")
			}
			return nil
		}
		w.start()
		pass(time.Minute)
		w.stop()
		states := []bot.RowState{w.row(ids[0]).State, w.row(ids[1]).State, w.row(ids[2]).State}
		if diff := cmp.Diff([]bot.RowState{bot.Sent, bot.Dead, bot.Dead}, states); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"answer\n\n" + mark + "\n\n(1 lost)"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestToasts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.sender.answer = func(r *bot.Row) error {
			if r.Query == "" {
				return &bot.SendError{Outcome: bot.Throttled, RetryAfter: time.Hour, Err: errors.New("429")}
			}
			return nil
		}
		old := w.add(bot.Row{Purpose: bot.Toast, Query: "q0", Created: time.Now().Add(-3 * time.Minute), Content: bot.Content{Text: "old"}})[0]
		w.start()
		w.say(row(bot.Final, "stuck"))
		pass(time.Second)
		w.say(bot.Row{Purpose: bot.Toast, Query: "q1", Content: bot.Content{Text: "noted"}})
		synctest.Wait()
		if diff := cmp.Diff([]string{"noted"}, w.sender.texts("7")); diff != "" {
			t.Errorf("a toast waited: %s", diff)
		}
		w.stop()
		if got := w.row(old); got.State != bot.Dead {
			t.Errorf("old toast is %s", got.State)
		}
	})
}

func TestMove(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.sender.answer = func(r *bot.Row) error {
			if r.Place.Chat == "-7" {
				return &bot.SendError{Outcome: bot.Moved, MovedTo: "-1007", Err: errors.New("group migrated")}
			}
			return nil
		}
		w.add(in("-7", row(bot.Final, "one")), in("-7", bot.Row{Purpose: bot.Record, Edit: "3", Content: bot.Content{Text: "two"}}), in("-7", row(bot.Final, "three")))
		w.start()
		pass(10 * time.Second)
		w.stop()
		if diff := cmp.Diff([]string{"one", "two", "three"}, w.sender.texts("-1007")); diff != "" {
			t.Error(diff)
		}
		if n := len(w.sender.sent()); n != 4 {
			t.Errorf("%d requests, want one to the old chat and three to the new", n)
		}
	})
}

// A bot that was told to wait does so after a restart too: each request until then would lengthen the wait, and a bot
// that is restarted often would never be let in again.
func TestFloodWaitSurvivesARestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		var flood atomic.Bool
		flood.Store(true)
		w.sender.answer = func(*bot.Row) error {
			if flood.Load() {
				return &bot.SendError{Outcome: bot.Throttled, RetryAfter: 30 * time.Second, Err: errors.New("429")}
			}
			return nil
		}
		w.start()
		for i := range 4 {
			w.say(in(fmt.Sprint(i), row(bot.Final, "told to wait")))
		}
		pass(3 * time.Second)
		w.stop()
		before := len(w.sender.sent())
		w.start()
		for i := range 9 {
			w.say(in(fmt.Sprint(100+i), row(bot.Final, "new")))
		}
		pass(20 * time.Second)
		if n := len(w.sender.sent()); n != before {
			t.Errorf("%d requests after the restart, while the bot has to wait", n-before)
		}
		flood.Store(false)
		pass(time.Minute)
		w.stop()
		if got := w.sender.texts("108"); len(got) != 1 {
			t.Errorf("after the wait: %q", got)
		}
	})
}
