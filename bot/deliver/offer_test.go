package deliver_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/deliver"
)

// A Change that writes an answer for a free chat stores it as being sent: two commits in all, and nothing is read.
func TestOfferedRowsAreSentAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.opts.Poll = time.Hour
		w.start()
		w.offered()
		synctest.Wait()
		var mu sync.Mutex
		var states []bot.RowState
		w.store.Hooks.BeforeApply = func(c *bot.Change) error {
			mu.Lock()
			defer mu.Unlock()
			for _, r := range c.Send {
				states = append(states, r.State)
			}
			for _, u := range c.Rows {
				states = append(states, u.To)
			}
			return nil
		}
		rows := []bot.Row{row(bot.Final, "one"), row(bot.Final, "two")}
		w.say(rows...)
		synctest.Wait()
		if diff := cmp.Diff([]bot.RowState{bot.Sending, "", bot.Sent, bot.Sending, bot.Sent}, states); diff != "" {
			t.Errorf("states stored (-want +got):\n%s", diff)
		}
		if rows[0].State != "" {
			t.Error("the writer's own rows were changed")
		}
		if diff := cmp.Diff([]string{"one", "two"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
		w.stop()
	})
}

// slowStore lists the rows that are due, and gives the list once somebody takes it.
type slowStore struct {
	deliver.Store
	gate chan struct{}
}

func (s *slowStore) Due(ctx context.Context, channel, botID string, now time.Time, limit int) ([]bot.Row, error) {
	rows, err := s.Store.Due(ctx, channel, botID, now, limit)
	if limit > 0 {
		<-s.gate
	}
	return rows, err
}

// A row that was stored while a look at the store was under way, which does not have it, is not overtaken by the next
// one of its chat: at the start of a process, by the answer of a task whose heading it is.
func TestOfferedBehindAMissedRow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		slow := &slowStore{Store: w.store, gate: make(chan struct{})}
		w.read = slow
		w.start()
		w.offered()
		synctest.Wait()
		w.say(row(bot.Reply, "heading"))
		slow.gate <- struct{}{}
		synctest.Wait()
		w.say(row(bot.Final, "answer"))
		close(slow.gate)
		synctest.Wait()
		if diff := cmp.Diff([]string{"heading", "answer"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
		w.stop()
	})
}

// An edit waits for its message, a notice for what is more important, a full budget for its time: such rows are stored
// as pending.
func TestWhatCannotGoAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.limits.PerChatPerSecond = 1
		w.start()
		w.offered()
		synctest.Wait()
		w.store.Hooks.BeforeApply = func(c *bot.Change) error {
			for _, r := range c.Send {
				if r.State == bot.Sending && r.Content.Text != "one" {
					t.Errorf("%q is stored as being sent", r.Content.Text)
				}
			}
			return nil
		}
		group := func(r bot.Row) bot.Row { return in("-9", r) }
		first := w.say(group(row(bot.Final, "one")))[0]
		synctest.Wait()
		w.say(group(row(bot.Final, "over the budget")))
		w.say(group(bot.Row{Purpose: bot.Record, EditRow: first, Content: bot.Content{Text: "edit"}}))
		w.say(row(bot.Notice, "by the way"))
		later := row(bot.Final, "later")
		later.NotBefore = time.Now().Add(time.Minute)
		w.say(in("8", later))
		w.say(in("6", bot.Row{Purpose: bot.Toast, Query: "q", Content: bot.Content{Text: "toast"}}))
		pass(10 * time.Second)
		if diff := cmp.Diff([]string{"one", "over the budget", "edit m1: edit"}, w.sender.texts("-9")); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([][]string{{"by the way"}, nil, {"toast"}}, [][]string{w.sender.texts("7"), w.sender.texts("8"), w.sender.texts("6")}); diff != "" {
			t.Error(diff)
		}
		pass(time.Minute)
		if diff := cmp.Diff([]string{"later"}, w.sender.texts("8")); diff != "" {
			t.Error(diff)
		}
		w.stop()
	})
}

// When the answer of the commit got lost, its row is taken up at once by this process, in its place in the chat, and is
// not marked: no request was made.
func TestCommitWhoseAnswerGotLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.start()
		w.offered()
		synctest.Wait()
		lost := true
		w.store.Hooks.AfterApply = func(c *bot.Change) error {
			if lost && len(c.Send) > 0 {
				lost = false
				return errHiccup
			}
			return nil
		}
		began := time.Now()
		ids := w.say(row(bot.Final, "one"), row(bot.Final, "two"))
		w.say(row(bot.Final, "three"))
		pass(5 * time.Second)
		if diff := cmp.Diff([]string{"one", "two", "three"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
		if after := w.sender.sent()[0].at.Sub(began); after > 2*time.Second {
			t.Errorf("sent after %s", after)
		}
		if got := w.row(ids[0]); got.State != bot.Sent || !got.Doubt.IsZero() {
			t.Errorf("row %+v", got)
		}
		w.stop()
	})
}

// A Change that is refused gives back what its rows held: chat, budget and place.
func TestRefusedChangeHoldsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.opts.Chats = 2
		w.start()
		w.offered()
		synctest.Wait()
		refuse := true
		w.store.Hooks.BeforeApply = func(c *bot.Change) error {
			if refuse && len(c.Send) > 0 {
				return bot.ErrLost
			}
			return nil
		}
		for range 10 {
			if _, err := w.writer.Apply(t.Context(), &bot.Change{Send: []bot.Row{in("7", bot.Row{Purpose: bot.Final, Key: "k", Content: bot.Content{Text: "no"}})}}); !errors.Is(err, bot.ErrLost) {
				t.Errorf("Apply: %v", err)
			}
		}
		refuse = false
		w.say(row(bot.Final, "yes"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"yes"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
		w.stop()
	})
}

// A row whose key exists is the old one: it is not sent again.
func TestOfferedTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.start()
		w.offered()
		synctest.Wait()
		again := row(bot.Final, "one")
		again.Key = "k"
		for range 3 {
			w.say(again)
			pass(time.Second)
		}
		w.say(row(bot.Final, "two"))
		pass(time.Second)
		w.stop()
		if diff := cmp.Diff([]string{"one", "two"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
	})
}

// What is offered when the end comes is sent: it is stored as being sent already.
func TestOfferedAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.start()
		w.offered()
		synctest.Wait()
		w.store.Hooks.AfterApply = func(c *bot.Change) error {
			if len(c.Send) > 0 {
				w.end()
				synctest.Wait()
			}
			return nil
		}
		id := w.say(row(bot.Final, "one"))[0]
		w.stop()
		if got := w.row(id); got.State != bot.Sent {
			t.Errorf("row is %s", got.State)
		}
	})
}

// A row that somebody else stored stands before what is offered after it: the order of a chat holds although the outbox
// has not read it yet.
func TestOfferedBehindARowOfAnother(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.opts.Poll = time.Hour
		w.start()
		w.offered()
		synctest.Wait()
		w.add(row(bot.Reply, "notice"))
		w.outbox.Wake(row(bot.Reply, "").Place)
		w.say(row(bot.Final, "answer")) // before the outbox has looked
		synctest.Wait()
		if diff := cmp.Diff([]string{"notice", "answer"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
		w.stop()
	})
}

// A store that is late does not get more to do: answers whose Changes are on their way together are all stored as being
// sent, however few requests may be in flight. If it is the channel that is late, rows wait as pending.
func TestOffersOutnumberRequests(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.opts.Chats = 2
		gate, answer := make(chan struct{}), make(chan struct{})
		w.sender.answer = func(*bot.Row) error { <-answer; return nil }
		w.start()
		w.offered()
		synctest.Wait()
		var mu sync.Mutex
		states, changes := map[bot.RowState]int{}, 0
		w.store.Hooks.BeforeApply = func(c *bot.Change) error {
			<-gate
			mu.Lock()
			defer mu.Unlock()
			changes++
			for _, r := range c.Send {
				states[r.State]++
			}
			return nil
		}
		wrote := make(chan struct{})
		write := func(chat string) {
			r := in(chat, row(bot.Final, "to "+chat))
			r.Key, r.Session = "key of "+chat, r.Place.SessionKey("")
			if _, err := w.writer.Apply(context.WithoutCancel(t.Context()), &bot.Change{Send: []bot.Row{r}}); err != nil {
				t.Error(err)
			}
			wrote <- struct{}{}
		}
		for _, chat := range []string{"1", "2", "3", "4", "5", "6"} {
			go write(chat)
		}
		synctest.Wait()
		close(gate)
		for range 6 {
			<-wrote
		}
		synctest.Wait()
		if diff := cmp.Diff(map[bot.RowState]int{bot.Sending: 6}, states); diff != "" {
			t.Errorf("states of rows whose Changes were late (-want +got):\n%s", diff)
		}
		go write("7") // two requests are in flight, and four rows wait for their end
		<-wrote
		if diff := cmp.Diff(map[bot.RowState]int{bot.Sending: 6, "": 1}, states); diff != "" {
			t.Errorf("states while the channel is late (-want +got):\n%s", diff)
		}
		close(answer)
		pass(5 * time.Second)
		for _, chat := range []string{"1", "2", "3", "4", "5", "6", "7"} {
			if diff := cmp.Diff([]string{"to " + chat}, w.sender.texts(chat)); diff != "" {
				t.Error(diff)
			}
		}
		if changes != 7+7+1 { // each answer and its outcome; the last one is claimed besides
			t.Errorf("%d Changes", changes)
		}
		w.stop()
	})
}

// What is stored as being sent and has no request yet when the end comes is left to the next process as it was, without
// a mark.
func TestOfferedWithoutASlotAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.opts.Chats = 1
		answer := make(chan struct{})
		w.sender.answer = func(*bot.Row) error { <-answer; return nil }
		w.start()
		w.offered()
		synctest.Wait()
		first := w.say(in("1", row(bot.Final, "one")))[0]
		synctest.Wait()
		second := w.say(in("2", row(bot.Final, "two")))[0]
		synctest.Wait()
		if got := w.row(second); got.State != bot.Sending {
			t.Fatalf("the second row is %s", got.State)
		}
		w.end()
		synctest.Wait()
		close(answer)
		w.stop()
		if one, two := w.row(first), w.row(second); one.State != bot.Sent || two.State != bot.Pending || !two.Doubt.IsZero() {
			t.Errorf("rows are %s, and %s with the doubt %s", one.State, two.State, two.Doubt)
		}
		if sent := w.sender.texts("2"); len(sent) > 0 {
			t.Errorf("sent: %q", sent)
		}
	})
}
