package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
)

// listed is a guard that knows one group, by whatever id the store tells.
type listed struct {
	*guard
	store bot.Facts
	group string
}

func (l *listed) Admit(ctx context.Context, msg *bot.Message) (turn.Verdict, error) {
	if msg.Place.Chat != l.group {
		old, err := l.store.Fact(ctx, bot.MovedBucket, "test/"+msg.Place.Chat, time.Now())
		if err != nil || old != l.group {
			return turn.Verdict{Reason: "group not listed"}, err
		}
	}
	return l.guard.Admit(ctx, msg)
}

// TestNobodyIsRefusedDuringAMove: what is written under the new id of a listed group before that id is learnt is
// answered, also when the process that was told of it died; a group that is not listed is refused at once.
func TestNobodyIsRefusedDuringAMove(t *testing.T) {
	t.Parallel()
	for _, told := range []string{"before", "by a process that died"} {
		synctest.Test(t, func(t *testing.T) {
			w := setup(t)
			w.opts.Shared = true
			w.parts = func(p *dispatch.Parts) { p.Guard = &listed{guard: w.guard, store: w.store, group: "-5"} }
			move := w.group("-5", "ann", "")
			move.Kind, move.Target = bot.Migrated, "-1005"
			p := w.start()
			if told == "before" {
				w.accept(p, move, w.group("-1005", "ann", "one"), w.group("-1005", "ann", "/status"))
			} else {
				dead := w.start()
				dead.stop()
				w.accept(dead, move)
				w.accept(p, w.group("-1005", "ann", "one"), w.group("-1005", "ann", "/status"))
			}
			w.accept(p, w.group("-9", "ann", "elsewhere"))
			pass(10 * time.Second)
			w.want(bot.Final, "re: one")
			// It overtakes the question, or comes while that is answered.
			if got := w.texts(bot.Reply); len(got) != 1 || !strings.HasPrefix(got[0], "/status running=") {
				t.Errorf("replies %q", got)
			}
			if c := w.counts(); c.Queued != 0 || c.DeadLetters != 0 {
				t.Errorf("left over: %+v", c)
			}
		})
	}
}
