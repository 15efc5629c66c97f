package redis_test

import (
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/quota/quotatest"
)

// TestBudgetOfFifty: what is enough for fifty is enough for exactly fifty, on a server and in the process.
func TestBudgetOfFifty(t *testing.T) {
	t.Parallel()
	d := &database{url: server(t)}
	for _, unit := range []string{quota.Turns, quota.Tokens, quota.USD} {
		t.Run("server/"+unit, func(t *testing.T) {
			t.Parallel()
			quotatest.Fifty(t, d.open(t), unit, time.Second)
		})
		t.Run("embedded/"+unit, func(t *testing.T) {
			t.Parallel()
			quotatest.Fifty(t, open(t, ""), unit, time.Second)
		})
	}
}
