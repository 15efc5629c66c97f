package job_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/job"
)

const session = bot.SessionKey("telegram/1/bot/42/0/0")

// shaky is a store that fails once at a Change, before or after it is stored.
type shaky struct {
	*bottest.Store
	at     int // Changes before that; below 0 = it does not fail
	stores bool
}

func (s *shaky) Apply(ctx context.Context, c *bot.Change) (*bot.Applied, error) {
	s.at--
	if s.at != -1 {
		return s.Store.Apply(ctx, c)
	}
	if s.stores {
		if _, err := s.Store.Apply(ctx, c); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("connection lost")
}

// worker is a process.
type worker struct {
	*job.Runner
	done    []job.Job
	release chan struct{} // nil = it works at once
	dead    map[string]bool
}

func setup(t *testing.T, store facts.Store, owner string, run bool) *worker {
	t.Helper()
	w := &worker{dead: map[string]bool{}}
	w.Runner = job.NewRunner(job.Deps{
		Store: store, Keeper: facts.Keeper{Store: store, Log: zerolog.Nop()}, Wake: func(bot.Place) {},
		Current: func(s bot.SessionKey) bot.SessionKey { return s }, Owner: owner,
		Lives: func(owner string) bool { return !w.dead[owner] }, Now: time.Now, Log: zerolog.Nop(),
	}, "test_job", func(ctx context.Context, j *job.Job) []bot.Row {
		w.done = append(w.done, *j)
		if w.release != nil {
			select {
			case <-w.release:
			case <-ctx.Done():
			}
		}
		return []bot.Row{{
			Session: session, Place: j.Message.Place, Purpose: bot.Notice, Content: bot.Content{Text: j.Text}, Key: "test/" + j.Key,
		}}
	})
	if run {
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = w.Run(ctx) }) // it has no error
		t.Cleanup(func() { cancel(); running.Wait() })
		synctest.Wait()
	}
	return w
}

// ask stores a job, and begins it.
func (w *worker) ask(t *testing.T, store bot.Writer) {
	t.Helper()
	place := bot.Place{Channel: "telegram", Bot: "1", Surface: bot.SurfaceBot, Chat: "42"}
	e, err := w.Effect(job.Job{Key: "k", Session: session, Message: bot.Message{ID: "7", Place: place}, Text: "Done."})
	if err == nil {
		_, err = store.Apply(t.Context(), &e.Change)
	}
	if err == nil {
		_, err = e.Then(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// check requires that the result is sent once, and that no job is left.
func check(t *testing.T, store *bottest.Store) {
	t.Helper()
	rows, err := store.Rows(t.Context(), session, 10)
	left, leftErr := store.FactsOf(t.Context(), "test_job", "", time.Now())
	if errors.Join(err, leftErr) != nil || len(rows) != 1 || len(left) != 0 {
		t.Errorf("%d rows, %d jobs, %v", len(rows), len(left), errors.Join(err, leftErr))
	}
}

// TestStoreFails: a job is done once, whichever Change the store fails at, and whether or not it has stored it.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]shaky{
		"claim refused": {at: 1}, "claim stored": {at: 1, stores: true},
		"end refused": {at: 2}, "end stored": {at: 2, stores: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				broken.Store = bottest.New()
				w := setup(t, &broken, "a", true)
				w.ask(t, &broken)
				<-time.After(time.Minute) // of the bubble
				synctest.Wait()
				if len(w.done) != 1 {
					t.Errorf("done %d times", len(w.done))
				}
				check(t, broken.Store)
			})
		})
	}
}

// TestClaimedOnce: of two processes that find the job of a dead one, one does it, and it knows whether it was begun. A
// dead process that turns out to live sends nothing.
func TestClaimedOnce(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]bool{"begun": true, "not begun": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := bottest.New()
				first := setup(t, store, "a", begun)
				first.release = make(chan struct{})
				first.ask(t, store)
				synctest.Wait()
				var done []job.Job
				for _, owner := range []string{"b", "c"} {
					next := setup(t, store, owner, true)
					next.dead["a"] = true
					for range 2 {
						if err := next.Follow(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					synctest.Wait()
					done = append(done, next.done...)
				}
				close(first.release)
				synctest.Wait()
				if len(done) != 1 || done[0].Resumed != begun || done[0].Text != "Done." {
					t.Errorf("done %+v", done)
				}
				check(t, store)
			})
		})
	}
}
