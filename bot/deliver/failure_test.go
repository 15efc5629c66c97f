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

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
)

// The end of Run finishes the request in flight, stores its outcome and takes nothing new.
func TestShutdown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		release := make(chan struct{})
		w.sender.answer = func(*bot.Row) error {
			<-release
			return nil
		}
		w.start()
		ids := w.say(row(bot.Final, "one"), row(bot.Final, "two"))
		pass(time.Second)
		w.end()
		synctest.Wait()
		select {
		case err := <-w.done:
			t.Fatalf("Run returned with a request in flight: %v", err)
		default:
		}
		close(release)
		w.stop()
		if one, two := w.row(ids[0]).State, w.row(ids[1]).State; one != bot.Sent || two != bot.Pending {
			t.Errorf("rows are %s and %s", one, two)
		}
	})
}

// A request that hangs is cut off some time after the end; whether it arrived nobody knows.
func TestShutdownIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.opts.Grace, w.opts.Request = 5*time.Second, time.Hour
		w.sender.wait = true
		w.start()
		id := w.say(row(bot.Final, "one"))[0]
		pass(time.Second)
		w.stop()
		if got := w.row(id); got.State != bot.Pending || got.Doubt.IsZero() {
			t.Errorf("row %+v", got)
		}
	})
}

func TestStoreFailures(t *testing.T) {
	t.Parallel()
	down := errors.New("the disk is away")
	hooks := map[string]func(w *world, broken *atomic.Bool){
		"nothing written": func(w *world, broken *atomic.Bool) {
			w.store.Hooks.BeforeApply = func(*bot.Change) error {
				if broken.Load() {
					return down
				}
				return nil
			}
		},
		"written, but told otherwise": func(w *world, broken *atomic.Bool) {
			w.store.Hooks.AfterApply = func(*bot.Change) error {
				if broken.Load() {
					return down
				}
				return nil
			}
		},
	}
	for name, hook := range hooks {
		t.Run(name+", claim", func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := setup(t)
				ids := w.add(row(bot.Final, "one"), row(bot.Final, "two"))
				var broken atomic.Bool
				broken.Store(true)
				hook(w, &broken)
				w.start()
				pass(10 * time.Second)
				if n := len(w.sender.sent()); n != 0 {
					t.Errorf("%d requests without a durable claim", n)
				}
				broken.Store(false)
				pass(2 * time.Minute)
				w.stop()
				if diff := cmp.Diff([]string{"one", "two"}, w.sender.texts("7")); diff != "" {
					t.Error(diff)
				}
				if got := w.row(ids[1]); got.State != bot.Sent {
					t.Errorf("state %s", got.State)
				}
			})
		})
		t.Run(name+", outcome", func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := setup(t)
				ids := w.add(row(bot.Final, "one"), row(bot.Final, "two"))
				var broken atomic.Bool
				hook(w, &broken)
				var once sync.Once
				w.sender.answer = func(*bot.Row) error {
					once.Do(func() { broken.Store(true) })
					return nil
				}
				w.start()
				pass(10 * time.Second)
				broken.Store(false)
				pass(2 * time.Minute)
				w.stop()
				if diff := cmp.Diff([]string{"one", "two"}, w.sender.texts("7")); diff != "" {
					t.Error(diff)
				}
				if got := w.row(ids[0]); got.State != bot.Sent || got.Message != "m1" {
					t.Errorf("row %+v", got)
				}
			})
		})
	}
}

func TestPanicKillsOneRowOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.sender.answer = func(r *bot.Row) error {
			if r.Content.Text == "bad" {
				return fail(bot.SendOutcome(r.Content.Buttons[7][0].Data))
			}
			return nil
		}
		ids := w.add(row(bot.Final, "bad"), row(bot.Final, "good"))
		w.start()
		pass(time.Minute)
		w.stop()
		if got := w.row(ids[0]); got.State != bot.Dead || !strings.Contains(got.Problem, "index out of range") {
			t.Errorf("row %+v", got)
		}
		if diff := cmp.Diff([]string{"good\n\n(1 lost)"}, w.sender.texts("7")); diff != "" {
			t.Error(diff)
		}
		if !strings.Contains(w.log.String(), "sending panicked") {
			t.Error("not logged")
		}
	})
}

func TestDrain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.sender.answer = func(r *bot.Row) error {
			if r.Place.Chat == "8" {
				return &bot.SendError{Outcome: bot.Throttled, RetryAfter: time.Hour, Err: errors.New("429")}
			}
			<-time.After(2 * time.Second)
			return nil
		}
		ids := w.add(row(bot.Final, "one"), row(bot.Final, "two"), in("8", row(bot.Final, "frozen")))
		w.start()
		if err := w.outbox.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if one, two := w.row(ids[0]).State, w.row(ids[1]).State; one != bot.Sent || two != bot.Sent {
			t.Errorf("drained with rows %s and %s", one, two)
		}
		w.add(row(bot.Final, "three"))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := w.outbox.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain of a row that takes longer: %v", err)
		}
		pass(10 * time.Second)
		w.stop()
	})
}

// The mark takes nothing of a message that is full.
func TestMarkCutsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		vague := true
		w.sender.answer = func(*bot.Row) error {
			if vague {
				vague = false
				return fail(bot.Vague)
			}
			return nil
		}
		text := strings.Repeat("😀", 2048)
		entities := []render.Entity{{Type: "bold", Offset: 0, Length: 4}, {Type: "italic", Offset: 4000, Length: 96}}
		w.start()
		w.say(bot.Row{Purpose: bot.Final, Content: bot.Content{Text: text, Entities: entities}})
		pass(10 * time.Second)
		w.stop()
		want := bot.Content{Text: text, Entities: entities, Buttons: [][]bot.Button{{{Label: mark, Gray: true}}}}
		if diff := cmp.Diff(want, w.sender.chats["7"][0].Content); diff != "" {
			t.Error(diff)
		}
	})
}
