package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
)

// An outage of 1 s to 10 min at any moment, with any mix of what a Bot API and the way to it can answer, and with
// deaths of the process in between: of 100 answers, questions and replies in ten chats each arrives, in the order of
// its chat, and what arrives again is marked, once.
func TestOutages(t *testing.T) {
	t.Parallel()
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T) { outage(t, &dice{r: rand.New(rand.NewPCG(seed, 77))}) })
		})
	}
}

// kinds of an outage: what a request in it comes to.
var kinds = []struct {
	outcome bot.SendOutcome
	hangs   bool
}{
	{bot.Throttled, false}, {bot.NotSent, false}, {bot.Vague, false}, {bot.Vague, false}, {bot.Vague, true},
}

func outage(t *testing.T, random *dice) {
	w := setup(t)
	w.limits.PerChatPerSecond, w.limits.PerSecond, w.limits.PerGroupPerMinute = 1, 30, 20
	began := time.Now()
	from := began.Add(time.Duration(random.IntN(60_000)) * time.Millisecond)
	length := time.Second + time.Duration(random.IntN(599_000))*time.Millisecond
	if random.IntN(2) == 0 { // many short ones, too
		length = time.Second + time.Duration(random.IntN(9_000))*time.Millisecond
	}
	first := random.IntN(len(kinds))
	mix := 1 + random.IntN(len(kinds)-first)
	var dead atomic.Bool
	w.sender.reaches = func(r *bot.Row) bool { return (r.ID+int64(r.Attempts))%3 == 0 }
	w.sender.answer = func(*bot.Row) error {
		if now := time.Now(); now.Before(from) || now.After(from.Add(length)) {
			return nil
		}
		k := kinds[first+random.IntN(mix)]
		if k.hangs {
			<-time.After(30 * time.Second)
		}
		return &bot.SendError{Outcome: k.outcome, RetryAfter: time.Duration(1+random.IntN(5)) * time.Second, Err: errors.New("as told")}
	}
	w.probe = func(context.Context) error { return w.sender.answer(nil) }
	w.store.Hooks.BeforeApply = func(*bot.Change) error {
		if dead.Load() {
			return errors.New("the process is dead")
		}
		return nil
	}
	w.store.Hooks.AfterApply = func(c *bot.Change) error {
		if len(c.Send) > 0 && w.writer != nil && random.IntN(10) == 0 {
			return errHiccup
		}
		return nil
	}
	offered := random.IntN(2) == 0
	begin := func() {
		w.start()
		if offered {
			w.offered()
		}
	}
	die := func() {
		dead.Store(true)
		w.stop()
		dead.Store(false)
		begin()
	}
	begin()
	ids := map[int64]string{}
	for i := range 100 {
		purpose := []bot.Purpose{bot.Final, bot.Final, bot.Reply, bot.Question}[random.IntN(4)]
		chat := fmt.Sprint(1 + random.IntN(10))
		ids[w.say(in(chat, row(purpose, fmt.Sprintf("<%d>", i))))[0]] = chat
		pass(time.Duration(random.IntN(1000)) * time.Millisecond)
		if random.IntN(40) == 0 {
			die()
		}
	}
	pass(time.Until(from.Add(length)) / 2)
	die()
	pass(30 * time.Minute)
	w.stop()
	arrived(t, w, ids)
}

// arrived wants every row in its chat, in order, again only with one mark.
func arrived(t *testing.T, w *world, ids map[int64]string) {
	t.Helper()
	seen := map[int64]int{}
	for chat, rows := range w.sender.chats {
		last := int64(0)
		for _, r := range rows {
			if r.ID < last {
				t.Errorf("chat %s: row %d after row %d", chat, r.ID, last)
			}
			last = r.ID
			seen[r.ID]++
			if n := strings.Count(r.Content.Text, mark); r.Purpose != bot.Question && (n > 1 || (seen[r.ID] > 1 && n == 0)) {
				t.Errorf("row %d arrived for the %d. time with %d marks", r.ID, seen[r.ID], n)
			}
		}
	}
	for id, chat := range ids {
		if got := w.row(id); got.State != bot.Sent || seen[id] == 0 {
			t.Errorf("row %d of chat %s is %s and arrived %d times (%s)", id, chat, got.State, seen[id], got.Problem)
		}
	}
}

// What is still unknown after three repetitions is given up, and the person learns it with the next message, also when
// the process ended in between and when that message has to be repeated.
func TestLossIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		bad := true
		w.sender.answer = func(r *bot.Row) error {
			if bad && r.Place.Chat == "7" {
				return fail(bot.Vague)
			}
			return nil
		}
		w.start()
		ids := w.say(row(bot.Final, "one"), row(bot.Question, "two"))
		pass(time.Minute)
		if got := w.row(ids[0]); got.State != bot.Pending || got.Unconfirmed != 3 {
			t.Errorf("after a minute the row is %s, %d times unconfirmed", got.State, got.Unconfirmed)
		}
		pass(3 * time.Hour)
		w.say(in("8", row(bot.Final, "hello")))
		pass(time.Minute)
		counts, err := w.store.Counts(context.WithoutCancel(t.Context()), "telegram", "1")
		if n := len(w.sender.sent()); n != 2*4+1 {
			t.Errorf("%d requests, want four a row and one to the other chat", n)
		}
		if err != nil || counts.Lost != 2 {
			t.Errorf("%+v, %v", counts, err)
		}
		w.stop()
		bad = false
		w.start()
		w.say(bot.Row{Purpose: bot.Final, Content: bot.Content{Text: strings.Repeat("x", 4090)}})
		pass(time.Minute)
		w.say(row(bot.Notice, "by the way"), row(bot.Final, "three"))
		pass(time.Minute)
		w.say(row(bot.Final, "four"))
		pass(time.Minute)
		w.stop()
		got := w.sender.texts("7")
		if diff := cmp.Diff([]string{"three\n\n(2 lost)", "by the way", "four"}, got[1:]); diff != "" {
			t.Error(diff)
		}
		if len(got[0]) != 4090 {
			t.Error("a full message was cut for the news")
		}
		if diff := cmp.Diff([]string{"hello"}, w.sender.texts("8")); diff != "" {
			t.Error(diff)
		}
		for _, id := range ids {
			if got := w.row(id); got.State != bot.Dead || got.Problem == "" {
				t.Errorf("row %+v", got)
			}
		}
	})
}

// A question that may not have arrived is asked once more when its repetitions are used up, also if the process ends in
// the last one: nothing else of its turn would tell its loss. What is behind it waits no longer.
func TestLostQuestionIsAskedAgain(t *testing.T) {
	for name, dies := range map[string]bool{"no answers": false, "the process ends": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := setup(t)
				asks := 0
				w.again = func(_ context.Context, row *bot.Row, change *bot.Change) error {
					if row.Key == "ask" {
						asks++
						change.Send = append(change.Send, bot.Row{Place: row.Place, Session: row.Session, Purpose: bot.Question, Key: "again", Content: bot.Content{Text: "again"}})
					}
					return nil
				}
				var refuses atomic.Bool
				w.store.Hooks.BeforeApply = func(c *bot.Change) error {
					if refuses.Load() && len(c.Rows) > 0 && c.Rows[0].Unconfirmed > 0 {
						return errHiccup
					}
					return nil
				}
				w.sender.answer = func(r *bot.Row) error {
					if r.Key == "ask" {
						return fail(bot.Vague)
					}
					return nil
				}
				w.start()
				ask := row(bot.Question, "ask")
				ask.Key = "ask"
				ids := w.say(ask, row(bot.Final, "behind"))
				if dies {
					pass(12 * time.Second)
					refuses.Store(true)
					pass(time.Minute + 2*time.Second)
					w.stop()
					refuses.Store(false)
					w.start()
				}
				pass(2 * time.Minute)
				w.stop()
				if diff := cmp.Diff([]string{"behind", "again"}, w.sender.texts("7")); diff != "" {
					t.Error(diff)
				}
				if got := w.row(ids[0]); got.State != bot.Dead || got.Unconfirmed != 4 || asks == 0 {
					t.Errorf("%s, unconfirmed %d, asked again %d times", got.State, got.Unconfirmed, asks)
				}
				counts, err := w.store.Counts(context.WithoutCancel(t.Context()), "telegram", "1")
				if err != nil || counts.Lost != 0 {
					t.Errorf("%+v, %v", counts, err)
				}
			})
		})
	}
}

// What replaces a lost question is lost like everything else: it is told with the next answer.
func TestLossOfASecondQuestionIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.again = func(_ context.Context, row *bot.Row, change *bot.Change) error {
			if row.Key == "ask" {
				change.Send = append(change.Send, bot.Row{Place: row.Place, Session: row.Session, Purpose: bot.Question, Key: "again", Content: bot.Content{Text: "again"}})
			}
			return nil
		}
		w.sender.answer = func(r *bot.Row) error {
			if r.Purpose == bot.Question {
				return fail(bot.Vague)
			}
			return nil
		}
		w.start()
		ask := row(bot.Question, "ask")
		ask.Key = "ask"
		w.say(ask)
		pass(10 * time.Minute)
		if n := len(w.sender.sent()); n != 2*4 {
			t.Errorf("%d requests, want four of each", n)
		}
		w.say(row(bot.Final, "next"))
		pass(time.Minute)
		w.stop()
		if diff := cmp.Diff([]string{"next\n\n(1 lost)"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
	})
}

// The loss follows a group to its new id.
func TestLossIsToldAfterAMove(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		gone := true
		w.sender.answer = func(r *bot.Row) error {
			switch {
			case gone:
				return fail(bot.Gone)
			case r.Place.Chat == "-7":
				return &bot.SendError{Outcome: bot.Moved, MovedTo: "-1007", Err: errors.New("group migrated")}
			}
			return nil
		}
		w.start()
		w.say(in("-7", row(bot.Final, "one")))
		pass(time.Minute)
		gone = false
		w.say(in("-7", row(bot.Final, "two")))
		pass(time.Minute)
		w.stop()
		if diff := cmp.Diff([]string{"two\n\n(1 lost)"}, w.sender.texts("-1007")); diff != "" {
			t.Error(diff)
		}
	})
}

// The budgets hold at the door of the server, whenever between its beginning and its end a request gets there.
func TestBudgetsHoldAtTheDoor(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				random := &dice{r: rand.New(rand.NewPCG(seed, 5))}
				w := setup(t)
				w.limits.PerChatPerSecond, w.limits.PerSecond, w.limits.PerGroupPerMinute = 1, 30, 20
				doors := map[string][]time.Time{}
				w.sender.answer = func(r *bot.Row) error {
					<-time.After(time.Duration(random.IntN(1200)) * time.Millisecond)
					w.sender.mu.Lock()
					doors[r.Place.Chat] = append(doors[r.Place.Chat], time.Now())
					w.sender.mu.Unlock()
					<-time.After(time.Duration(random.IntN(1200)) * time.Millisecond)
					if random.IntN(4) == 0 {
						return fail([]bot.SendOutcome{bot.NotSent, bot.Vague, bot.Refused}[random.IntN(3)])
					}
					return nil
				}
				w.store.Hooks.BeforeApply = func(*bot.Change) error { // a disk that is slow at times
					if random.IntN(10) == 0 {
						<-time.After(time.Duration(random.IntN(4000)) * time.Millisecond)
					}
					return nil
				}
				w.start()
				for i := range 600 {
					w.say(in(fmt.Sprint([]int{1, -1}[i%2]*(1+random.IntN(40))), row(bot.Final, fmt.Sprint(i))))
				}
				pass(20 * time.Minute)
				w.stop()
				var all []time.Time
				for chat, times := range doors {
					all = append(all, times...)
					slices.SortFunc(times, time.Time.Compare)
					if n := most(times, time.Minute); strings.HasPrefix(chat, "-") && n > 20 {
						t.Errorf("group %s: %d requests in a minute", chat, n)
					}
					for _, span := range []time.Duration{time.Second, 5 * time.Second, 20 * time.Second} {
						if n := most(times, span); n > 3+int(span.Seconds()) {
							t.Errorf("chat %s: %d requests in %s", chat, n, span)
						}
					}
				}
				slices.SortFunc(all, time.Time.Compare)
				if n := most(all, time.Second); n > 30 {
					t.Errorf("%d requests in a second", n)
				}
			})
		})
	}
}

// A 429 in three chats stops the others for as long as the server said, and no longer.
func TestThreeFrozenChats(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		hot := time.Now().Add(20 * time.Second)
		w.sender.answer = func(r *bot.Row) error {
			if r.Place.Chat != "9" && time.Now().Before(hot) {
				return &bot.SendError{Outcome: bot.Throttled, RetryAfter: 20 * time.Second, Err: errors.New("429")}
			}
			return nil
		}
		w.start()
		began := time.Now()
		w.say(in("1", row(bot.Final, "a")), in("2", row(bot.Final, "b")), in("3", row(bot.Final, "c")))
		pass(time.Second)
		w.say(in("9", row(bot.Final, "d")))
		pass(time.Minute)
		w.stop()
		for _, r := range w.sender.sent() {
			if after := r.at.Sub(began); r.row.Place.Chat == "9" && after != 20*time.Second {
				t.Errorf("another chat waited %s, the server said 20 s", after)
			}
		}
		if n := len(w.sender.sent()); n != 7 {
			t.Errorf("%d requests", n)
		}
	})
}

// Ten minutes in which every connection is cut after the request was written: whatever was sent is repeated once, when
// an answer has come back, and none of the three repetitions is used up. Meanwhile only the harmless question is asked.
func TestTenMinutesOfCutConnections(t *testing.T) {
	t.Parallel()
	for _, restarts := range []int{0, 3} {
		t.Run(fmt.Sprint(restarts, " restarts"), func(t *testing.T) {
			bubble(t, func(t *testing.T) { cutConnections(t, restarts) })
		})
	}
}

func cutConnections(t *testing.T, restarts int) {
	const chats, outage = 40, 10 * time.Minute
	w := setup(t)
	w.limits.PerChatPerSecond, w.limits.PerSecond = 1, 30
	began := time.Now()
	cut := func() bool { at := time.Since(began); return at >= time.Minute && at < time.Minute+outage }
	w.sender.answer = func(*bot.Row) error {
		if cut() {
			return fail(bot.Vague)
		}
		return nil
	}
	w.sender.reaches = func(r *bot.Row) bool { return r.ID%2 == 0 }
	var probes, during atomic.Int64
	w.probe = func(ctx context.Context) error {
		probes.Add(1)
		if !cut() {
			return nil
		}
		during.Add(1)
		<-ctx.Done() // the server hangs
		return ctx.Err()
	}
	w.start()
	ids := map[int64]string{}
	for i := range 3 * chats {
		chat := fmt.Sprint(1 + i%chats)
		ids[w.say(in(chat, row([]bot.Purpose{bot.Final, bot.Question, bot.Reply}[i%3], fmt.Sprintf("<%d>", i))))[0]] = chat
		if pass(time.Second); i == chats {
			pass(20 * time.Second) // what follows finds the way closed
		}
	}
	for range restarts {
		w.stop()
		w.start()
		pass(time.Minute)
	}
	pass(time.Until(began.Add(time.Minute + outage + 15*time.Second)))
	for id := range ids {
		if got := w.row(id); got.State != bot.Sent {
			t.Errorf("15 s after the outage row %d is %s, %d times unconfirmed (%s)", id, got.State, got.Unconfirmed, got.Problem)
		}
	}
	w.stop()
	arrived(t, w, ids)
	for id := range ids {
		if got := w.row(id); got.Unconfirmed > 1 {
			t.Errorf("row %d was sent %d times without an answer", id, got.Unconfirmed)
		}
	}
	if n := len(w.sender.sent()) - len(ids); n > chats {
		t.Errorf("%d requests more than rows, with %d chats", n, chats)
	}
	if n := during.Load(); n > int64(outage/(10*time.Second)) || n < 20 {
		t.Errorf("%d questions in an outage of %s (%d in all)", n, outage, probes.Load())
	}
}

// A repetition waits for a question that began after the last loss, whoever has lost something.
func TestALaterLossClosesTheWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		var asked []time.Duration
		began := time.Now()
		w.probe = func(context.Context) error {
			asked = append(asked, time.Since(began))
			return nil
		}
		bad := map[string]int{"1": 2, "2": 1}
		w.sender.answer = func(r *bot.Row) error {
			w.sender.mu.Lock()
			defer w.sender.mu.Unlock()
			if bad[r.Place.Chat]--; bad[r.Place.Chat] >= 0 {
				return fail(bot.Vague)
			}
			return nil
		}
		w.start()
		w.say(in("1", row(bot.Final, "a")))
		pass(3 * time.Second)
		w.say(in("2", row(bot.Final, "b")))
		pass(time.Minute)
		w.stop()
		// Chat 1 loses at 0 and 1 s, chat 2 at 3 s. The question at 4 s is about all three.
		if diff := cmp.Diff([]time.Duration{time.Second, 4 * time.Second}, asked); diff != "" {
			t.Error(diff)
		}
	})
}

// A process that dies at any moment of a long answer: each of its messages and the file come in order, with the next
// answer behind them, and only what was on its way comes again, marked.
func TestALongAnswerSurvivesKills(t *testing.T) {
	t.Parallel()
	for kill := range 8 {
		t.Run(fmt.Sprint("at request ", kill), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := setup(t)
				w.limits.PerChatPerSecond = 1
				var dead atomic.Bool
				requests := 0
				reached := kill%2 == 0
				w.sender.reaches = func(*bot.Row) bool { return reached }
				w.sender.answer = func(*bot.Row) error {
					if requests++; requests == kill+1 {
						dead.Store(true) // the answer of this request is never stored
						return fail(bot.Vague)
					}
					return nil
				}
				w.store.Hooks.BeforeApply = func(*bot.Change) error {
					if dead.Load() {
						return errors.New("the process is dead")
					}
					return nil
				}
				w.start()
				rows := make([]bot.Row, 0, 7)
				for i := range 5 {
					rows = append(rows, row(bot.Final, fmt.Sprintf("<%d>", i)))
				}
				file := bot.File{Name: "answer.txt", Data: []byte(strings.Repeat("all of it\n", 20000))}
				rows = append(rows, bot.Row{Purpose: bot.Final, Content: bot.Content{Text: "<5>", File: &file}}, row(bot.Final, "<6>"))
				ids := map[int64]string{}
				for _, id := range w.say(rows...) {
					ids[id] = "7"
				}
				pass(20 * time.Second)
				if w.stop(); dead.Load() {
					dead.Store(false)
					w.start()
					pass(20 * time.Second)
					w.stop()
				}
				arrived(t, w, ids)
				files := 0
				for _, r := range w.sender.chats["7"] {
					if r.Content.File != nil && string(r.Content.File.Data) == string(file.Data) {
						files++
					}
				}
				if n := len(w.sender.chats["7"]); n > 8 || files == 0 || files > 2 {
					t.Errorf("%d messages, %d of them the file", n, files)
				}
			})
		})
	}
}
