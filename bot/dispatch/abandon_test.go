package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
)

// TestAbandon: a process whose work others have taken over ends at once, and stores nothing on the way.
func TestAbandon(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		cause := make(chan error, 1)
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
			out, err, _ := until(ctx, make(chan struct{}), turn)
			cause <- context.Cause(ctx)
			return out, err
		}
		p := w.start()
		w.accept(p, w.private("ann", "work"))
		buried := errors.New("buried")
		w.store.Hooks.BeforeApply = func(c *bot.Change) error {
			t.Errorf("a process that was abandoned stores %+v", c)
			return buried
		}
		at := time.Now()
		p.Abandon()
		p.Abandon() // again is no fault
		<-p.done
		if took := time.Since(at); took > 0 {
			t.Errorf("the end took %v", took)
		}
		if err := <-cause; !errors.Is(err, bot.ErrLost) {
			t.Errorf("the turn ended with %v", err)
		}
		w.store.Hooks.BeforeApply = nil
	})
}

// TestAbandonWithinTheGrace: the end was asked for already, and turns were given time.
func TestAbandonWithinTheGrace(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.opts.Grace = time.Minute
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
			out, err, _ := until(ctx, make(chan struct{}), turn)
			return out, err
		}
		p := w.start()
		w.accept(p, w.private("ann", "work"))
		at := time.Now()
		p.cancel()
		synctest.Wait()
		p.Abandon()
		<-p.done
		if took := time.Since(at); took > 0 {
			t.Errorf("the end took %v", took)
		}
	})
}
