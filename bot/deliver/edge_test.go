package deliver_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/deliver"
	"github.com/zephbot/zephbot/bot/render"
)

// A row made for a later time waits alone.
func TestDeferredRowsHoldUpNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		later := row(bot.Final, "later")
		later.NotBefore = time.Now().Add(time.Hour)
		w.add(later)
		w.start()
		w.say(row(bot.Final, "now"))
		pass(time.Minute)
		if diff := cmp.Diff([]string{"now"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
		pass(time.Hour)
		w.stop()
		if diff := cmp.Diff([]string{"now", "later"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
	})
}

// A row that was made for a later time is sent when the wall clock shows that time, also if the machine was suspended or
// the clock was set.
func TestDeferredRowsFollowTheWallClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		var ahead atomic.Int64
		w.now = func() time.Time { return time.Now().Round(0).Add(time.Duration(ahead.Load())) }
		later := row(bot.Final, "later")
		later.NotBefore = w.now().Add(8 * time.Hour)
		w.add(later)
		w.start()
		pass(time.Minute)
		ahead.Store(int64(9 * time.Hour))
		began := time.Now()
		pass(2 * time.Second)
		w.stop()
		if sent := w.sender.sent(); len(sent) != 1 || sent[0].at.Sub(began) > 2*time.Second {
			t.Errorf("sent %v", sent)
		}
	})
}

// A row that was made to wait behind another keeps its place, also when the next process finds that other one gone.
func TestParkedRowsKeepTheirPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.sender.answer = func(*bot.Row) error {
			return &bot.SendError{Outcome: bot.Throttled, RetryAfter: time.Minute, Err: errors.New("429")}
		}
		w.start()
		head := w.say(row(bot.Final, "head"), row(bot.Final, "two"))[0]
		pass(5 * time.Second)
		w.stop()
		w.sender.answer = nil
		_, err := w.store.Apply(t.Context(), &bot.Change{Rows: []bot.RowUpdate{{ID: head, From: []bot.RowState{bot.Pending}, To: bot.Dead, Problem: "dropped"}}})
		if err != nil {
			t.Fatal(err)
		}
		w.start()
		w.say(row(bot.Final, "three"))
		pass(2 * time.Minute)
		w.stop()
		if diff := cmp.Diff([]string{"two", "three"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
	})
}

// A row that is no longer pending is not sent, even when it was read as pending.
func TestRowTakenAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		release := make(chan struct{})
		w.sender.answer = func(r *bot.Row) error {
			if r.Content.Text == "one" {
				<-release
			}
			return nil
		}
		w.start()
		ids := w.say(row(bot.Final, "one"), row(bot.Final, "two"), row(bot.Final, "three"))
		synctest.Wait()
		_, err := w.store.Apply(t.Context(), &bot.Change{Rows: []bot.RowUpdate{{ID: ids[1], From: []bot.RowState{bot.Pending}, To: bot.Dead, Problem: "dropped"}}})
		if err != nil {
			t.Fatal(err)
		}
		close(release)
		pass(10 * time.Second)
		w.stop()
		if diff := cmp.Diff([]string{"one", "three"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
	})
}

// An outcome that cannot be stored before the end is found by the next process, which repeats the answer and says so.
func TestEndWithoutStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		var broken atomic.Bool
		w.store.Hooks.BeforeApply = func(*bot.Change) error {
			if broken.Load() {
				return errors.New("the disk is away")
			}
			return nil
		}
		w.sender.answer = func(*bot.Row) error {
			broken.Store(true)
			return nil
		}
		w.start()
		ids := w.say(row(bot.Final, "one"), row(bot.Final, "two"))
		pass(10 * time.Second)
		w.stop()
		if got := w.row(ids[0]).State; got != bot.Sending {
			t.Fatalf("row is %s", got)
		}
		if !strings.Contains(w.log.String(), "outcome not stored before shutdown") {
			t.Error("not logged")
		}
		broken.Store(false)
		w.sender.answer = nil
		w.start()
		pass(time.Minute)
		w.stop()
		if diff := cmp.Diff([]string{"one", "one\n\n" + mark, "two"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestEditWithoutAnswerIsGivenUpInTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.opts.GiveUp = 10 * time.Minute
		w.sender.answer = func(*bot.Row) error { return fail(bot.Vague) }
		w.start()
		id := w.say(bot.Row{Purpose: bot.Final, Edit: "3", Content: bot.Content{Text: "x"}})[0]
		pass(9 * time.Minute)
		if got := w.row(id).State; got != bot.Pending {
			t.Errorf("row is %s", got)
		}
		pass(5 * time.Minute)
		w.stop()
		if got := w.row(id).State; got != bot.Unknown {
			t.Errorf("row is %s", got)
		}
		if !strings.Contains(w.log.String(), "message given up") {
			t.Error("not logged")
		}
	})
}

func TestUnreadableStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.add(row(bot.Final, "one"))
		flaky := &flaky{Store: w.store}
		flaky.broken.Store(true)
		var mu sync.Mutex
		var observed []string
		out := deliver.NewOutbox(deliver.Deps{
			Store: flaky, Sender: w.sender, Pacer: deliver.NewPacer(deliver.Limits{}, deliver.PacerOptions{}), Words: words{}, Log: zerolog.New(w.log),
			Observe: func(r bot.Row, outcome string, _ time.Time) {
				mu.Lock()
				defer mu.Unlock()
				observed = append(observed, string(r.Purpose)+" "+outcome)
			},
		}, w.opts)
		ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
		done := make(chan error, 1)
		go func() { done <- out.Run(ctx) }()
		pass(time.Minute)
		flaky.broken.Store(false)
		pass(2 * time.Minute)
		flaky.broken.Store(true)
		pass(time.Minute)
		flaky.broken.Store(false)
		w.add(row(bot.Notice, "two"))
		pass(2 * time.Minute)
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"one", "two"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"final sent", "notice sent"}, observed); diff != "" {
			t.Error(diff)
		}
	})
}

// flaky is a store that cannot be read at times.
type flaky struct {
	deliver.Store
	broken atomic.Bool
}

func (f *flaky) Due(ctx context.Context, channel, id string, now time.Time, limit int) ([]bot.Row, error) {
	if f.broken.Load() {
		return nil, errors.New("the disk is away")
	}
	return f.Store.Due(ctx, channel, id, now, limit)
}

func TestMarkBelowFiles(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		var once sync.Once
		w.sender.answer = func(r *bot.Row) (err error) {
			if r.Place.Chat == "7" {
				once.Do(func() { err = fail(bot.Vague) })
			}
			return err
		}
		w.start()
		w.say(bot.Row{Purpose: bot.Final, Content: bot.Content{Text: strings.Repeat("a", 1024), File: &bot.File{Name: "a.txt", Data: []byte("x")}}})
		w.say(in("8", bot.Row{Purpose: bot.Final, Doubt: time.Now(), Content: bot.Content{File: &bot.File{Name: "a.txt", Data: []byte("x")}}}))
		pass(10 * time.Second)
		w.stop()
		if got := w.sender.chats["7"][0].Content; len(got.Text) != 1024 || len(got.Buttons) != 1 || got.Buttons[0][0].Label != mark {
			t.Errorf("caption of %d units, buttons %v", render.Length(got.Text), got.Buttons)
		}
		if diff := cmp.Diff([]string{mark}, w.sender.texts("8")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestProblemsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.sender.answer = func(*bot.Row) error {
			return &bot.SendError{Outcome: bot.Gone, Err: errors.New(strings.Repeat("ü", 5000))}
		}
		w.start()
		id := w.say(row(bot.Final, "x"))[0]
		pass(time.Second)
		w.stop()
		if got := w.row(id).Problem; len(got) > 500 || strings.ToValidUTF8(got, "?") != got {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	})
}

// What may wait does not slip past what does not.
func TestTryYieldsToWaiters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := exact(deliver.Limits{PerChatPerSecond: 1})
		group := place("-7")
		try(t, p, group, bot.High)
		done := make(chan error, 1)
		go func() {
			over, err := p.Wait(t.Context(), group, bot.High)
			if err == nil {
				over()
			}
			done <- err
		}()
		synctest.Wait()
		if try(t, p, group, bot.Low) {
			t.Error("a modest request overtook an answer")
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		pass(time.Second)
		if !try(t, p, group, bot.Low) {
			t.Error("nothing waits any more")
		}
	})
}

// slow is a store whose list of due rows is old when it arrives.
type slow struct{ deliver.Store }

func (s slow) Due(ctx context.Context, channel, id string, now time.Time, limit int) ([]bot.Row, error) {
	rows, err := s.Store.Due(ctx, channel, id, now, limit)
	<-time.After(300 * time.Millisecond)
	return rows, err
}

func TestOldListsRepeatNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.sender.answer = func(*bot.Row) error {
			<-time.After(100 * time.Millisecond)
			return nil
		}
		out := deliver.NewOutbox(deliver.Deps{
			Store: slow{w.store}, Sender: w.sender, Pacer: deliver.NewPacer(deliver.Limits{}, deliver.PacerOptions{}), Words: words{}, Log: zerolog.New(w.log),
		}, w.opts)
		ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
		done := make(chan error, 1)
		go func() { done <- out.Run(ctx) }()
		for range 20 {
			w.add(bot.Row{Purpose: bot.Record, Edit: "3", Content: bot.Content{Text: "x"}})
			out.Wake(place("7"))
			pass(70 * time.Millisecond)
		}
		pass(10 * time.Second)
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := len(w.sender.sent()); n != 20 {
			t.Errorf("%d requests for 20 edits", n)
		}
	})
}

// A placeholder that never got out is not sent when its answer is there.
func TestPlaceholderIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		first := w.add(row(bot.Placeholder, "…"))[0]
		w.add(bot.Row{Purpose: bot.Final, EditRow: first, Content: bot.Content{Text: "answer"}})
		card := w.add(in("8", row(bot.Question, "may I?")))[0]
		w.add(in("8", bot.Row{Purpose: bot.Record, EditRow: card, Content: bot.Content{Text: "approved"}}))
		w.start()
		pass(10 * time.Second)
		w.stop()
		if diff := cmp.Diff([]string{"answer"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"approved"}, w.sender.texts("8")); diff != "" {
			t.Error(diff)
		}
		if got := w.row(first).State; got != bot.Dead {
			t.Errorf("placeholder is %s", got)
		}
	})
}

// An event that comes together with the end shows nothing, whichever is seen first.
func TestNothingIsShownAfterClose(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			w := begin(t, "7", &screen{drafts: true})
			pass(1500 * time.Millisecond)
			w.say("x")
			w.close()
		})
	}
}

// TestAskedAt: the outcome of an attempt comes with the time at which its request began, not that of its reply.
func TestAskedAt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.sender.answer = func(*bot.Row) error {
			<-time.After(3 * time.Second)
			return fail(bot.Gone)
		}
		var took []time.Duration
		w.watch = func(_ bot.Row, _ string, asked time.Time) { took = append(took, time.Since(asked)) }
		w.add(row(bot.Final, "one"))
		w.start()
		pass(time.Minute)
		w.stop()
		if len(took) != 1 || took[0] < 3*time.Second {
			t.Errorf("asked %v before the outcome, want once 3s", took)
		}
	})
}
