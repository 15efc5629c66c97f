package dispatch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// deliver accepts messages as one batch without waiting.
func (w *world) deliver(p *process, messages ...bot.Message) {
	var list []turn.Raw
	for _, m := range messages {
		list = append(list, raw(w.t, m))
	}
	go func() {
		if err := p.Accept(w.t.Context(), list); err != nil {
			w.t.Errorf("accept: %v", err)
		}
	}()
}

// TestStopWhileItBegins: a /stop that arrives while the turn is being stored stops the turn as it does afterwards. It
// does not find the message still waiting, which would be told in other words, and it does not
// find nothing.
func TestStopWhileItBegins(t *testing.T) {
	for name, first := range map[string]bool{"stored with its turn": true, "stored before": false} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				stored := make(chan struct{})
				w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
					text, err := asked(ctx, turn, log)
					if text != "slow" || err != nil {
						return answered(turn, "re: "+text), err
					}
					out, err, _ := until(ctx, make(chan struct{}), turn)
					return out, err
				}
				p := w.start()
				w.accept(p, w.private("bob", "the first message"))
				w.store.Hooks.BeforeApply = func(change *bot.Change) error {
					if change.Claim != nil && change.Claim.Session == session("ann") {
						<-stored
					}
					return nil
				}
				slow, stop := w.private("ann", "slow"), w.private("ann", "/stop")
				batch := []bot.Message{slow}
				if !first { // two of a chat in one batch are stored before they begin
					batch = append(batch, w.private("ann", "dropped"))
				}
				w.deliver(p, batch...)
				synctest.Wait()
				w.deliver(p, stop)
				synctest.Wait()
				if len(w.texts(bot.Reply)) > 0 {
					t.Errorf("answered before the turn is stored: %q", w.texts(bot.Reply))
				}
				close(stored)
				synctest.Wait()
				w.want(bot.Reply, "stopping")
				w.want(bot.Final, "re: the first message", "Stopped before anything was said.")
				if lane := w.lane(session("ann")); lane.Turn != "" || w.meter.turns["test-7-"+slow.ID] != 1 || w.meter.undone != 0 {
					t.Errorf("lane %+v, charged %v", lane, w.meter.turns)
				}
				w.accept(p, w.private("ann", "next"))
				w.want(bot.Final, "re: the first message", "Stopped before anything was said.", "re: next")
			})
		})
	}
}

// TestStopWhileTheStoreHangs: commands wait for a turn that begins only for a while, because those of others wait
// behind them.
func TestStopWhileTheStoreHangs(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := w.start()
		w.accept(p, w.private("bob", "the first message"))
		hangs := make(chan struct{})
		w.store.Hooks.BeforeApply = func(change *bot.Change) error {
			if change.Claim != nil && change.Claim.Session == session("ann") {
				<-hangs
			}
			return nil
		}
		w.deliver(p, w.private("ann", "slow"), w.private("ann", "dropped"))
		synctest.Wait()
		w.deliver(p, w.private("ann", "/stop"))
		synctest.Wait()
		w.want(bot.Reply)
		pass(11 * time.Second) // while it is accepted, and before it is handled
		w.want(bot.Reply, "stopping")
		close(hangs)
		synctest.Wait()
		w.want(bot.Final, "re: the first message")
	})
}

// TestGoneAndBack: a request that shows that a chat is gone ends what came before it, and nothing that its person wrote
// after it had begun: they have let the bot in again.
func TestGoneAndBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
			text, err := asked(ctx, turn, log)
			if text == "back" && err == nil {
				done := make(chan struct{})
				time.AfterFunc(time.Minute, func() { close(done) })
				if out, err, more := until(ctx, done, turn); !more {
					return out, err
				}
			}
			return answered(turn, "re: "+text), err
		}
		p := w.start()
		pass(time.Second)
		sent := time.Now()
		pass(time.Second)
		w.accept(p, w.private("bob", "back"))
		w.accept(p, w.private("bob", "and more"))
		p.Gone(w.private("bob", "").Place, sent)
		pass(2 * time.Minute)
		w.want(bot.Final, "re: back", "re: and more")
		p.Gone(w.private("bob", "").Place, time.Now())
		pass(time.Second)
		w.want(bot.Final, "re: back", "re: and more")
	})
}
