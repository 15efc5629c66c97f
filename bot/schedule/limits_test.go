package schedule_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/schedule"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
	tool "github.com/zephbot/zephbot/tools/schedule"
)

// TestMade: what runs of tasks schedule cannot grow without end: it comes in a minute at the earliest, there are five
// such tasks of a person, and a run that updates a task makes none.
func TestMade(t *testing.T) {
	t.Parallel()
	w := open(t, "UTC", 1, schedule.Options{})
	at := time.Now().Add(time.Hour)
	if _, err := w.put("c0", "root", "", at); err != nil {
		t.Fatal(err)
	}
	w.speaker.ID = "schedule-0123456789abcdef-1"
	if _, err := w.put("h", "next", "", time.Now().Add(time.Second)); err == nil || tools.AsError(err).Category != tools.InvalidParameters {
		t.Errorf("a chain of runs: %v", err)
	}
	for i := range 5 {
		if _, err := w.put(fmt.Sprint("m", i), fmt.Sprint("child", i), "", at); err != nil {
			t.Fatal(err)
		}
	}
	for name, wanted := range map[string]string{"a sixth": "child5", "one by cron": "child6"} {
		cron := map[string]string{"child6": "0 9 * * *"}[wanted]
		if _, err := w.put(name, wanted, cron, at); err == nil || !strings.Contains(err.Error(), "5 tasks of this person") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, own := range []string{"root", "child1"} {
		if stored, err := w.put("u"+own, own, "", at.Add(time.Hour)); err != nil || !stored.Updated {
			t.Errorf("a run updates %s: %+v, %v", own, stored, err)
		}
	}
	w.speaker.ID = "100001"
	if _, err := w.put("p1", "child2", "", at); err != nil { // now it is the person's
		t.Fatal(err)
	}
	if _, err := w.put("p2", "more", "", at); err != nil {
		t.Errorf("the person's own: %v", err)
	}
	w.speaker.ID = "schedule-0123456789abcdef-2"
	if _, err := w.put("m9", "child9", "", at); err != nil {
		t.Errorf("in the place of one that the person took over: %v", err)
	}
}

// TestForgedPresses: buttons that were never shown, pages that are not there, and ids of others' tasks change nothing.
func TestForgedPresses(t *testing.T) {
	t.Parallel()
	w := open(t, "UTC", 1, schedule.Options{})
	if _, err := w.put("c1", "tea", "", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	facts, err := w.store.FactsOf(t.Context(), "schedule", "", time.Now())
	if err != nil || len(facts) != 1 {
		t.Fatalf("%v, %v", facts, err)
	}
	id := facts[0].Key[strings.LastIndexByte(facts[0].Key, '/')+1:]
	prefix, _, _ := strings.Cut(w.card(t), ":")
	for _, data := range []string{
		prefix, prefix + ":", prefix + ":y:" + id, prefix + ":y:" + id + ":0:0", prefix + ":x:" + id + ":0", prefix + "::" + id + ":0",
		prefix + ":y::0", prefix + ":y:0000000000000000:0", prefix + ":p:" + id[:8] + ":0",
	} {
		w.press(data, "telegram:42", true)
	}
	for _, verb := range []string{"t", "p", "r", "n", "d", "y"} { // somebody else, an admin too, in their own private chat
		w.press(prefix+":"+verb+":"+id+":0", "telegram:43", verb != "t")
	}
	for _, page := range []string{"-1", "999999999", "99999999999999999999", "x"} {
		if e := w.press(prefix+":l::"+page, "telegram:42", false); !strings.Contains(e.Change.Send[1].Content.Text, "1. tea") {
			t.Errorf("page %s shows %q", page, e.Change.Send[1].Content.Text)
		}
	}
	after, err := w.store.FactsOf(t.Context(), "schedule", "", time.Now())
	if err != nil || len(after) != 1 || after[0] != facts[0] {
		t.Errorf("changed to %+v, %v", after, err)
	}
}

// card returns the data of the first button of /schedule.
func (w *world) card(t *testing.T) string {
	t.Helper()
	msg := &bot.Message{Kind: bot.Text, Place: private, Caller: "telegram:42", Person: "42"}
	e, err := w.desks[0].Command(t.Context(), &turn.Call{Message: msg, Session: session})
	if err != nil || len(e.Change.Send) != 1 || len(e.Change.Send[0].Content.Buttons) == 0 {
		t.Fatalf("%+v, %v", e, err)
	}
	return e.Change.Send[0].Content.Buttons[0][0].Data
}

// TestLeft: when the bot is removed from a group, its tasks are off at once and each owner is told once; those of other
// chats go on. Under a new id of the group they are on again, because nobody removed the bot then.
func TestLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "UTC", 2, schedule.Options{})
		if _, err := w.put("c1", "tea", "", time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		group := bot.Place{Channel: "telegram", Bot: "1", Surface: bot.SurfaceBot, Chat: "-5", Group: true}
		for i, caller := range []string{"42", "42", "43"} {
			w.speaker = bot.Message{Place: group, Title: "Team", Caller: "telegram:" + caller, Person: caller, Name: "Ann", Language: "en"}
			task := tool.Task{Name: fmt.Sprint("g", i), Kind: "custom", Text: "Do it", Cron: "0 * * * *", At: time.Now().Truncate(time.Hour).Add(time.Hour)}
			origin := tools.Origin{Session: string(group.SessionKey("")), Chat: group.ChatKey(), Caller: w.speaker.Caller}
			if _, err := w.desks[0].Put(t.Context(), &tools.Call{ID: fmt.Sprint("g", i), Origin: origin}, task); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second time there is nothing left to switch off
			e, err := w.desks[1].Left(t.Context(), group, "7")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.store.Apply(t.Context(), &e.Change); err != nil {
				t.Fatal(err)
			}
		}
		ann, cy := private, private
		cy.Chat = "43"
		if said := w.toldIn(t, ann); len(said) != 1 || !strings.Contains(said[0], "group Team, so your tasks there are off: g0, g1.") {
			t.Errorf("Ann was told %q", said)
		}
		if said := w.toldIn(t, cy); len(said) != 1 || !strings.Contains(said[0], "g2") {
			t.Errorf("Cy was told %q", said)
		}
		w.desks[0].Forget()
		w.run(3 * time.Hour)
		if len(w.begun) != 1 {
			t.Errorf("%d runs, want that of the private chat", len(w.begun))
		}
		if _, err := w.store.Apply(t.Context(), &bot.Change{Move: &bot.Move{Channel: "telegram", Bot: "1", From: "-5", To: "-1005"}}); err != nil {
			t.Fatal(err)
		}
		w.desks[0].Forget()
		w.run(2 * time.Hour)
		if len(w.begun) < 4 {
			t.Errorf("%d runs after the group got a new id", len(w.begun))
		}
	})
}

// toldIn lists what was said in a place outside of conversations.
func (w *world) toldIn(t *testing.T, place bot.Place) (list []string) {
	t.Helper()
	rows, err := w.store.Rows(t.Context(), "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if rows[i].Place.ChatKey() == place.ChatKey() {
			list = append(list, rows[i].Content.Text)
		}
	}
	return list
}

// TestChatGone: a run that finds its chat gone switches its task off, whether it repeats or runs once, and nothing is lost.
func TestChatGone(t *testing.T) {
	t.Parallel()
	for name, cron := range map[string]string{"repeats": "0 * * * *", "once": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := open(t, "UTC", 2, schedule.Options{})
				w.outcome = journal.ReasonGone
				if _, err := w.put("c1", "report", cron, time.Now().Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
				w.run(24 * time.Hour)
				entries, err := w.desks[1].List(t.Context(), new(w.origin()))
				if err != nil || len(w.begun) != 1 || len(entries) != 1 || entries[0].State != string(texts.TaskLeft) {
					t.Fatalf("%d runs, %+v, %v", len(w.begun), entries, err)
				}
				w.outcome = "answered"
				data := strings.Split(w.card(t), ":")
				w.press(data[0]+":r:"+data[2]+":0", "telegram:42", false)
				w.run(90 * time.Minute)
				if len(w.begun) < 2 {
					t.Errorf("%d runs after it was resumed", len(w.begun))
				}
			})
		})
	}
}

// reading is a store that answers one of the questions for the tasks late.
type reading struct {
	*bottest.Store
	late          atomic.Int32 // which one
	asked, answer chan struct{}
}

func (r *reading) FactsOf(ctx context.Context, bucket, prefix string, now time.Time) ([]bot.Fact, error) {
	list, err := r.Store.FactsOf(ctx, bucket, prefix, now)
	if bucket == "schedule" && r.late.Add(-1) == 0 {
		close(r.asked)
		<-r.answer
	}
	return list, err
}

// TestForgetWhileReading: a task that is stored while all tasks are being read runs at its time, and not only when they
// are read again for another reason.
func TestForgetWhileReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "UTC", 1, schedule.Options{Tick: 24 * time.Hour})
		slow := &reading{Store: w.store, asked: make(chan struct{}), answer: make(chan struct{})}
		slow.late.Store(2) // the first one is about the tasks of the configuration
		deps := w.deps()
		deps.Store = slow
		w.desks[0] = schedule.New(deps, schedule.Options{Tick: 24 * time.Hour})
		go func() {
			<-slow.asked
			if _, err := w.put("c1", "tea", "", time.Now().Add(time.Hour)); err != nil {
				t.Error(err)
			}
			close(slow.answer)
		}()
		w.run(2 * time.Hour)
		if len(w.begun) != 1 {
			t.Errorf("%d runs", len(w.begun))
		}
	})
}
