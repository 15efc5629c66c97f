package redis_test

import (
	"testing"

	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/quota/quotatest"
	"github.com/zephbot/zephbot/persistence/redis/redistest"
)

// TestBudgetOfFifty: what is enough for fifty is enough for exactly fifty: on counters in the process, on a server, on one
// that is flushed all the time, and on one that is away.
func TestBudgetOfFifty(t *testing.T) {
	t.Parallel()
	d := &database{url: server(t)}
	for _, unit := range []string{quota.Turns, quota.Tokens, quota.USD} {
		t.Run("server/"+unit, func(t *testing.T) {
			t.Parallel()
			quotatest.Fifty(t, d.open(t), unit, nil)
		})
		t.Run("flushed/"+unit, func(t *testing.T) {
			t.Parallel()
			own := redistest.Run(t)
			quotatest.Fifty(t, open(t, own.URL()), unit, func() { own.Do("FLUSHALL") })
		})
		t.Run("away/"+unit, func(t *testing.T) {
			t.Parallel()
			plug := redistest.Start(t)
			quotatest.Fifty(t, open(t, plug.URL), unit, func() { plug.Break(redistest.Cut) })
		})
		t.Run("embedded/"+unit, func(t *testing.T) {
			t.Parallel()
			quotatest.Fifty(t, open(t, ""), unit, nil)
		})
	}
}
