package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// TestReadingIsPaidFor: what the reading of a file costs is stored at once and once, also if its turn never begins
// because the process ends; the next process, which reads the file again, pays again.
func TestReadingIsPaidFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		w := reading(t, func(ctx context.Context, _ *turn.Sent) (turn.Received, error) {
			payer, ok := cost.PayerOf(ctx)
			if !ok {
				return turn.Received{}, errors.New("nobody pays")
			}
			reads++
			if err := payer.Settle(ctx, fmt.Sprintf("transcribe/%d", reads), cost.Amount{USD: 0.01}); err != nil {
				return turn.Received{}, err
			}
			if reads == 1 {
				<-ctx.Done()
				return turn.Received{}, ctx.Err()
			}
			return turn.Received{USD: 0.01}, nil
		})
		spent := func(want int64) {
			t.Helper()
			got, err := w.store.Used(t.Context(), "user/1", "usd", "2026-01-01")
			if err != nil || got != want {
				t.Errorf("charged %d, %v; want %d", got, err, want)
			}
		}
		p := w.start()
		w.accept(p, w.pictured("ann", "", "listen"))
		p.stop()
		spent(10_000)
		w.start()
		pass(time.Minute)
		w.want(bot.Final, "re: listen")
		spent(20_000)
	})
}
