package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/schedule"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
	tool "github.com/zephbot/zephbot/tools/schedule"
	"github.com/zephbot/zephbot/tools/schedule/when"
)

var (
	private = bot.Place{Channel: "telegram", Bot: "1", Surface: bot.SurfaceBot, Chat: "42"}
	session = private.SessionKey("")
)

// world is a store with processes, each with a desk, and people who are admitted unless they were removed.
type world struct {
	t     *testing.T
	store *bottest.Store
	desks []*schedule.Scheduler
	zone  string

	mu      sync.Mutex
	removed bool
	begun   []time.Time // of the runs
	outcome string      // of each run; "" = it does not end
	speaker bot.Message
}

func (w *world) Speaker(context.Context, bot.SessionKey) (bot.Message, error) { return w.speaker, nil }

func (w *world) Session(msg *bot.Message) bot.SessionKey { return msg.Place.SessionKey("") }

// Wake plays the dispatcher: a run begins and ends at once.
func (w *world) Wake(key bot.SessionKey) {
	ctx := w.t.Context()
	list, err := w.store.Next(ctx, key, 0)
	if err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	outcome := w.outcome
	w.mu.Unlock()
	for i := range list {
		if outcome == "" {
			continue
		}
		facts := w.desks[0].Ended(&list[i], key, outcome)
		if _, err := w.store.Apply(ctx, &bot.Change{Handles: list[i].Seq, Facts: facts}); err != nil {
			if !errors.Is(err, bot.ErrHandled) {
				w.t.Error(err)
			}
			continue
		}
		w.mu.Lock()
		w.begun = append(w.begun, list[i].At)
		w.mu.Unlock()
		w.desks[0].Settle()
	}
}

func (w *world) Admit(context.Context, *bot.Message) (turn.Verdict, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return turn.Verdict{OK: !w.removed}, nil
}

func (w *world) Of(string) *time.Location {
	at, _ := w.For("")
	return at
}

func (w *world) For(string) (*time.Location, string) {
	at, name, err := when.Zone(w.zone)
	if err != nil {
		w.t.Error(err)
	}
	return at, name
}

type outbox struct{}

func (outbox) Wake(bot.Place) {}

// open makes a world with some processes.
func open(t *testing.T, zone string, processes int, opts schedule.Options) *world {
	w := &world{t: t, store: bottest.New(), zone: zone, outcome: "answered"}
	w.store.Now = time.Now
	w.speaker = bot.Message{Place: private, Caller: "telegram:42", Person: "42", Name: "Ann", Language: "en"}
	for range processes {
		w.desks = append(w.desks, schedule.New(w.deps(), opts))
	}
	return w
}

// deps are those of a process.
func (w *world) deps() schedule.Deps {
	return schedule.Deps{
		Channel: "telegram", Bot: "1", Store: w.store, Engine: w, Outbox: outbox{}, Guard: w, Zones: w, Words: texts.Words{},
		Operators: func() []bot.Place {
			return []bot.Place{{Channel: "telegram", Bot: "1", Surface: bot.SurfaceBot, Chat: "7"}}
		},
		Private: func(person string) bot.Place {
			return bot.Place{Channel: "telegram", Bot: "1", Surface: bot.SurfaceBot, Chat: person}
		},
		Tell: func(session bot.SessionKey, id, text string) bot.Fact {
			return bot.Fact{Bucket: "news", Key: string(session) + "/" + id, Value: text}
		},
		Told:    func(bot.SessionKey) {},
		Mention: func(person string) string { return "tg://user?id=" + person },
		Current: func(key bot.SessionKey) bot.SessionKey { return key },
		Now:     time.Now, Log: zerolog.Nop(),
	}
}

// run runs all processes for a time.
func (w *world) run(d time.Duration) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var wg sync.WaitGroup
	for _, desk := range w.desks {
		wg.Go(func() { _ = desk.Run(ctx) })
	}
	time.Sleep(d) //nolint:forbidigo // simulated time
	synctest.Wait()
	cancel()
	wg.Wait()
}

func (w *world) origin() tools.Origin {
	return tools.Origin{Channel: "telegram", Session: string(session), Chat: private.ChatKey(), Caller: "telegram:42"}
}

// put schedules a task as a call.
func (w *world) put(call, name, cron string, at time.Time) (tool.Stored, error) {
	task, err := tool.Checked(name, "", "Do it")
	if err != nil {
		w.t.Fatal(err)
	}
	if task.Cron, task.At = cron, at; cron != "" {
		c, err := tool.Repeats(cron)
		if err != nil {
			w.t.Fatal(err)
		}
		task.At = c.Next(time.Now(), w.Of(""))
	}
	return w.desks[0].Put(w.t.Context(), &tools.Call{ID: call, Origin: w.origin()}, task)
}

// said lists the texts of the rows of the session.
func (w *world) said(key bot.SessionKey) (list []string) {
	rows, err := w.store.Rows(w.t.Context(), key, 10000)
	if err != nil {
		w.t.Error(err)
	}
	for i := range rows {
		list = append(list, rows[i].Content.Text)
	}
	return list
}

// TestYear: a task at half past two runs once on each day of a year with both changes of the clock, on three processes.
func TestYear(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "Europe/Berlin", 3, schedule.Options{Tick: 24 * time.Hour, Look: 24 * time.Hour})
		if _, err := w.put("c1", "daily", "30 2 * * *", time.Time{}); err != nil {
			t.Fatal(err)
		}
		w.run(365 * 24 * time.Hour)
		days, berlin := map[string]int{}, w.Of("")
		for _, at := range w.begun {
			local := at.In(berlin)
			days[local.Format(time.DateOnly)]++
			if clock := local.Format("15:04"); clock != "02:30" && clock != "03:00" {
				t.Errorf("a run at %s", local)
			}
		}
		if len(w.begun) != 365 || len(days) != 365 {
			t.Errorf("%d runs on %d days, want 365", len(w.begun), len(days))
		}
	})
}

// TestOnce: on several processes a task runs once, on time, and is deleted then.
func TestOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "UTC", 3, schedule.Options{})
		due := time.Now().Add(2 * time.Minute)
		if _, err := w.put("c1", "tea", "", due); err != nil {
			t.Fatal(err)
		}
		w.run(10 * time.Minute)
		if len(w.begun) != 1 || w.begun[0].Sub(due).Abs() > time.Second {
			t.Errorf("runs %v, want one at %s", w.begun, due)
		}
		entries, err := w.desks[1].List(t.Context(), new(w.origin()))
		if err != nil || len(entries) != 0 {
			t.Errorf("left: %+v, %v", entries, err)
		}
		facts, err := w.store.FactsOf(t.Context(), "schedule_end", "", time.Now())
		if err != nil || len(facts) != 0 {
			t.Errorf("left: %+v, %v", facts, err)
		}
	})
}

// TestConfiguredOnce: a task of the configuration that runs once does so once, also if the clock is set back before its
// time and the process starts again. It is listed nowhere afterwards. With another time it runs again, and nothing is
// left of it once its entry is gone.
func TestConfiguredOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "UTC", 0, schedule.Options{})
		task, err := tool.Checked("tea", "", "Do it")
		if err != nil {
			t.Fatal(err)
		}
		task.At = time.Now().Add(time.Hour)
		start := func(back time.Duration, config ...schedule.Config) {
			deps := w.deps()
			deps.Now = func() time.Time { return time.Now().Add(-back) }
			w.store.Now = deps.Now
			w.desks = []*schedule.Scheduler{schedule.New(deps, schedule.Options{Config: config})}
			w.run(2 * time.Hour)
		}
		entry := schedule.Config{Task: task, Owner: "42", Place: private}
		start(0, entry)
		start(150*time.Minute, entry)
		start(24*time.Hour, entry)
		if len(w.begun) != 1 {
			t.Errorf("%d runs, want one", len(w.begun))
		}
		if entries, err := w.desks[0].List(t.Context(), new(w.origin())); err != nil || len(entries) != 0 {
			t.Errorf("listed: %+v, %v", entries, err)
		}
		entry.Task.At = time.Now().Add(time.Hour)
		start(0, entry)
		if len(w.begun) != 2 {
			t.Errorf("%d runs with another time, want two", len(w.begun))
		}
		start(0)
		if left, err := w.store.FactsOf(t.Context(), "schedule", "", time.Now()); err != nil || len(left) != 0 {
			t.Errorf("left: %+v, %v", left, err)
		}
	})
}

// TestClockIsSet: a clock that is set forward, or a machine that wakes up, begins what is due within 2 s; one that is set
// back begins nothing again, and nothing is left out afterwards.
func TestClockIsSet(t *testing.T) {
	t.Parallel()
	type set struct{ after, by time.Duration }
	for name, test := range map[string]struct {
		cron string
		once time.Duration
		sets []set
		run  time.Duration
		want []time.Duration // since the beginning, by the running machine
	}{
		"a reminder, suspended over its time":     {"", 8 * time.Hour, []set{{10 * time.Minute, 9 * time.Hour}}, time.Hour, []time.Duration{10 * time.Minute}},
		"a reminder, set forward to its time":     {"", time.Hour, []set{{10 * time.Minute, 50 * time.Minute}}, time.Hour, []time.Duration{10 * time.Minute}},
		"a reminder, set back after its time":     {"", 10 * time.Minute, []set{{20 * time.Minute, -15 * time.Minute}}, 2 * time.Hour, []time.Duration{10 * time.Minute}},
		"hourly, suspended for three":             {"0 * * * *", 0, []set{{10 * time.Minute, 3 * time.Hour}}, 80 * time.Minute, []time.Duration{10 * time.Minute, time.Hour}},
		"hourly, set back over its time":          {"0 * * * *", 0, []set{{time.Hour + time.Minute, -2 * time.Minute}}, 140 * time.Minute, []time.Duration{time.Hour, 2*time.Hour + 2*time.Minute}},
		"hourly, set forward, back, and forward":  {"0 * * * *", 0, []set{{55 * time.Minute, 6 * time.Minute}, {56 * time.Minute, -6 * time.Minute}}, 130 * time.Minute, []time.Duration{55 * time.Minute, 2 * time.Hour}},
		"hourly, set back and forth at the limit": {"0 * * * *", 0, []set{{time.Hour, -time.Second}, {time.Hour + 5*time.Second, time.Second}}, 90 * time.Minute, []time.Duration{time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var ahead atomic.Int64
				now := func() time.Time { return time.Now().Round(0).Add(time.Duration(ahead.Load())) }
				w := open(t, "UTC", 0, schedule.Options{})
				deps := w.deps()
				deps.Now, w.store.Now = now, now
				for range 2 {
					w.desks = append(w.desks, schedule.New(deps, schedule.Options{}))
				}
				began := time.Now() // midnight
				at := time.Time{}
				if test.once > 0 {
					at = now().Add(test.once)
				}
				if _, err := w.put("c1", "it", test.cron, at); err != nil {
					t.Fatal(err)
				}
				var mu sync.Mutex
				var runs []time.Duration
				w.store.Hooks.AfterApply = func(c *bot.Change) error {
					mu.Lock()
					defer mu.Unlock()
					if len(c.Arrive) > 0 {
						runs = append(runs, time.Since(began))
					}
					return nil
				}
				for _, s := range test.sets {
					time.AfterFunc(s.after, func() { ahead.Add(int64(s.by)) })
				}
				w.run(test.run)
				if len(runs) != len(test.want) {
					t.Fatalf("runs at %v, want %v", runs, test.want)
				}
				for i := range runs {
					if late := runs[i] - test.want[i]; late < 0 || late > 2*time.Second {
						t.Errorf("run %d at %s, want %s", i, runs[i], test.want[i])
					}
				}
			})
		})
	}
}

// TestMissed: after an outage a task runs once, and then at its times.
func TestMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "UTC", 2, schedule.Options{})
		if _, err := w.put("c1", "hourly", "0 * * * *", time.Time{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100*time.Hour + 30*time.Minute) //nolint:forbidigo // simulated time
		w.run(time.Hour)
		if len(w.begun) != 2 {
			t.Errorf("%d runs, want one for the outage and one on time: %v", len(w.begun), w.begun)
		}
		if said := w.said(session); len(said) != 2 || !strings.Contains(said[0], "was due") || strings.Contains(said[1], "was due") {
			t.Errorf("said %q", said)
		}
	})
}

// TestOverlap: a run is left out while the last one has not ended, and that is said once.
func TestOverlap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "UTC", 2, schedule.Options{})
		w.outcome = ""
		if _, err := w.put("c1", "often", "*/10 * * * *", time.Time{}); err != nil {
			t.Fatal(err)
		}
		w.run(2 * time.Hour)
		waiting, err := w.store.Next(t.Context(), session, 0)
		if said := w.said(session); err != nil || len(waiting) != 1 || len(said) != 2 || !strings.Contains(said[1], "left out") {
			t.Errorf("%d waiting, %v, said %q", len(waiting), err, said)
		}
		w.outcome = "answered"
		w.Wake(session)
		w.run(30 * time.Minute)
		if len(w.begun) < 3 {
			t.Errorf("%d runs after the first has ended", len(w.begun))
		}
	})
}

// TestFailing: a failing task rests longer and longer, and is switched off with a button for its owner, who resumes it.
func TestFailing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "UTC", 2, schedule.Options{})
		w.outcome = journal.ReasonGivenUp
		if _, err := w.put("c1", "minutely", "* * * * *", time.Time{}); err != nil {
			t.Fatal(err)
		}
		w.run(24 * time.Hour)
		if len(w.begun) != 5 {
			t.Fatalf("%d runs, want 5: %v", len(w.begun), w.begun)
		}
		for i := 1; i < 5; i++ {
			if gap := w.begun[i].Sub(w.begun[i-1]); gap < 5*time.Minute<<(i-1) || gap > 5*time.Minute<<(i-1)+2*time.Minute {
				t.Errorf("run %d comes %s after the one before", i, gap)
			}
		}
		rows, err := w.store.Rows(t.Context(), session, 100)
		last := rows[len(rows)-1]
		if err != nil || !strings.Contains(last.Content.Text, "5 failures") || len(last.Content.Buttons) != 1 {
			t.Fatalf("said at last: %+v, %v", last.Content, err)
		}
		w.outcome = "answered"
		w.press(last.Content.Buttons[0][0].Data, "telegram:42", false)
		w.run(time.Hour)
		if len(w.begun) < 60 {
			t.Errorf("%d runs after it was resumed", len(w.begun)-5)
		}
	})
}

// before calls a function before the first list of the ends of runs is read.
type before struct {
	*bottest.Store
	once sync.Once
	do   func()
}

func (b *before) FactsOf(ctx context.Context, bucket, scope string, now time.Time) ([]bot.Fact, error) {
	if bucket == "schedule_end" {
		b.once.Do(b.do)
	}
	return b.Store.FactsOf(ctx, bucket, scope, now)
}

// TestEndedMeanwhile: another process begins a run after this one has read the tasks, and it ends before this one reads the
// ends: its failure counts.
func TestEndedMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "UTC", 1, schedule.Options{})
		w.outcome = ""
		if _, err := w.put("c1", "minutely", "* * * * *", time.Time{}); err != nil {
			t.Fatal(err)
		}
		first := w.desks
		deps := w.deps()
		deps.Store = &before{Store: w.store, do: func() {
			late := w.desks
			w.desks = first
			w.run(time.Second)
			w.desks, w.outcome = late, journal.ReasonGivenUp
			w.Wake(session)
		}}
		w.desks = []*schedule.Scheduler{schedule.New(deps, schedule.Options{})}
		time.Sleep(time.Minute) //nolint:forbidigo // simulated time
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = w.desks[0].Run(ctx)
		}()
		time.Sleep(4 * time.Minute) //nolint:forbidigo // simulated time
		cancel()
		<-done
		if len(w.begun) != 1 {
			t.Errorf("runs %v, want one, and a rest of five minutes", w.begun)
		}
	})
}

// TestFailingOnce: what runs once is tried again after a failure, and is not forgotten.
func TestFailingOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "UTC", 1, schedule.Options{})
		w.outcome = journal.ReasonGivenUp
		if _, err := w.put("c1", "tea", "", time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		w.run(7 * time.Minute)
		w.outcome = "answered"
		w.run(24 * time.Hour)
		if len(w.begun) != 3 {
			t.Errorf("%d runs, want 3: two that failed, and one", len(w.begun))
		}
	})
}

// TestRemoved: the tasks of somebody who was removed do not run, are switched off, and admins are told once.
func TestRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "UTC", 2, schedule.Options{})
		w.removed = true
		if _, err := w.put("c1", "hourly", "0 * * * *", time.Time{}); err != nil {
			t.Fatal(err)
		}
		w.run(24 * time.Hour)
		if said := w.said(""); len(w.begun) != 0 || len(said) != 1 || !strings.Contains(said[0], "hourly of Ann") {
			t.Errorf("%d runs, admins were told %q", len(w.begun), said)
		}
	})
}

// TestRunNowRemoved: a task cannot be started by a button for somebody who is not admitted any more.
func TestRunNowRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "UTC", 1, schedule.Options{})
		if _, err := w.put("c1", "hourly", "0 * * * *", time.Time{}); err != nil {
			t.Fatal(err)
		}
		data := strings.Split(w.card(t), ":")
		w.removed = true
		w.press(data[0]+":n:"+data[2]+":0", "telegram:42", false)
		w.run(24 * time.Hour)
		entries, err := w.desks[0].List(t.Context(), new(w.origin()))
		if err != nil || len(w.begun) != 0 || len(entries) != 1 || entries[0].State != string(texts.TaskRevoked) {
			t.Errorf("%d runs, %+v, %v", len(w.begun), entries, err)
		}
	})
}

func (w *world) press(data, caller string, admin bool) turn.Effect {
	w.t.Helper()
	msg := &bot.Message{Kind: bot.Press, Place: private, Caller: caller, Person: strings.TrimPrefix(caller, "telegram:"), Data: data, Query: "q", Message: "9"}
	e, err := w.desks[0].Press(w.t.Context(), &turn.Call{Message: msg, Session: session, Admin: admin})
	if err != nil {
		w.t.Fatal(err)
	}
	applied, err := w.store.Apply(w.t.Context(), &e.Change)
	if err != nil {
		w.t.Fatal(err)
	}
	if e.Then != nil {
		if _, err := e.Then(w.t.Context(), applied); err != nil {
			w.t.Fatal(err)
		}
	}
	return e
}

// TestStoredOnce: a call that is run again after a crash changes nothing; the same name updates; too many are refused,
// and so are strangers, guests and bots.
func TestStoredOnce(t *testing.T) {
	t.Parallel()
	w := open(t, "UTC", 2, schedule.Options{MaxTasks: 100})
	at := time.Now().Add(time.Hour)
	first, err := w.put("c1", "a", "", at)
	if err != nil || first.Updated {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := w.put("c1", "a", "", at.Add(time.Hour))
	if err != nil || again.Updated || !again.Next.Equal(at.Truncate(0)) {
		t.Errorf("the same call again: %+v, %v", again, err)
	}
	updated, err := w.put("c2", "a", "", at.Add(2*time.Hour))
	if err != nil || !updated.Updated || !updated.Next.Equal(at.Add(2*time.Hour)) {
		t.Errorf("another call: %+v, %v", updated, err)
	}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() { _, _ = w.put(fmt.Sprint("d", i), fmt.Sprint("n", i), "", at) })
	}
	wg.Wait()
	entries, err := w.desks[1].List(t.Context(), new(w.origin()))
	if err != nil || len(entries) > 25 || len(entries) < 10 {
		t.Errorf("%d tasks of one person, %v", len(entries), err)
	}
	for i := range 30 {
		_, err = w.put(fmt.Sprint("e", i), fmt.Sprint("m", i), "", at)
	}
	if err == nil || !strings.Contains(err.Error(), "25 scheduled tasks") {
		t.Errorf("one too many: %v", err)
	}
	for name, change := range map[string]func(){
		"guest":    func() { w.speaker.Place.Surface = bot.SurfaceGuest },
		"bot":      func() { w.speaker.FromBot = true },
		"stranger": func() { w.speaker.Caller = "telegram:43" },
	} {
		before := w.speaker
		change()
		if _, err := w.put("x", "x", "", at); tools.AsError(err) == nil || tools.AsError(err).Category != tools.PolicyBlocked {
			t.Errorf("%s: %v", name, err)
		}
		w.speaker = before
	}
}

// TestReminders: on several processes that start anew, each reminder is one message, begins no turn, and one for once is
// deleted with it. What was a task before is a reminder at once, also while its last run is open.
func TestReminders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "UTC", 3, schedule.Options{})
		w.outcome = "" // a run does not end
		if _, err := w.put("c1", "pills", "0 * * * *", time.Time{}); err != nil {
			t.Fatal(err)
		}
		w.run(90 * time.Minute) // the run of the task is open
		remind := func(call, name, cron string, at time.Time) {
			task, err := tool.Checked(name, tool.Reminder, "")
			if err != nil {
				t.Fatal(err)
			}
			task.Cron, task.At = cron, at
			if _, err = w.desks[1].Put(t.Context(), &tools.Call{ID: call, Origin: w.origin()}, task); err != nil {
				t.Fatal(err)
			}
		}
		remind("c2", "pills", "0 * * * *", time.Now().Add(30*time.Minute))
		remind("c3", "tea", "", time.Now().Add(2*time.Minute))
		for range 5 {
			w.run(time.Hour)
		}
		counts := map[string]int{}
		for _, said := range w.said(session) {
			counts[said]++
		}
		if counts["⏰ pills"] != 5 || counts["⏰ tea"] != 1 || counts["⏰ Scheduled: pills"] != 1 || len(counts) != 3 {
			t.Errorf("said %v", counts)
		}
		entries, err := w.desks[0].List(t.Context(), new(w.origin()))
		if err != nil || len(entries) != 1 || entries[0].Name != "pills" {
			t.Errorf("%+v, %v", entries, err)
		}
	})
}
