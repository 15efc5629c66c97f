package quota_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/quota/quotatest"
	"github.com/zephbot/zephbot/bot/texts"
)

// TestOldCounters: counters that became older ones, of a snapshot or of a replica that lacked the last writes, are
// filled again from the charges. The number beside them is the same.
func TestOldCounters(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Options{Limits: turns(scopes{User: 4})})
	d.admit(private("42"), "1")
	saved := d.counter.Values()
	for _, turn := range []string{"2", "3"} {
		if refusal, _ := d.admit(private("42"), turn); refusal != "" {
			t.Fatalf("turn %s: %s", turn, refusal)
		}
	}
	d.counter.Renew(saved)
	if got := d.used(private("42")); got != "user 3/4" {
		t.Errorf("after a restart from a snapshot: %s, want user 3/4", got)
	}
	if refusal, _ := d.admit(private("42"), "4"); refusal != "" {
		t.Errorf("turn 4: %s", refusal)
	}
	d.counter.Renew(saved)
	if refusal, _ := d.admit(private("42"), "5"); refusal == "" {
		t.Error("a fifth turn of four")
	}
}

// late is a counter that becomes an older one just before it takes.
type late struct {
	quotatest.Counter
	times int
	saved map[string]int64
}

func (l *late) Take(ctx context.Context, id string, takes []quota.Take, expire time.Time) ([]int64, int, error) {
	if l.times > 0 {
		l.times--
		l.Renew(l.saved)
	}
	return l.Counter.Take(ctx, id, takes, expire)
}

// TestOldCountersWhileTaking: what was counted on older counters is given back and counted again.
func TestOldCountersWhileTaking(t *testing.T) {
	t.Parallel()
	for times := range 5 {
		t.Run(fmt.Sprint(times, " times"), func(t *testing.T) {
			t.Parallel()
			d := setup(t, quota.Options{Limits: turns(scopes{User: 2})})
			counter := &late{}
			meter := quota.New(quota.Options{Limits: turns(scopes{User: 2})}, counter, d.store, texts.Words{}, func() time.Time { return d.clock }, nil)
			admit := func(turn string) bool {
				t.Helper()
				refusal, _ := d.admitBy(meter, private("42"), turn)
				return refusal != ""
			}
			admit("1")
			counter.saved = counter.Values()
			if admit("2") {
				t.Error("the second turn of two is refused")
			}
			counter.times = times
			if !admit("3") {
				t.Error("a third turn of two")
			}
		})
	}
}
