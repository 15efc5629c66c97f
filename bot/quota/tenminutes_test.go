package quota_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/quota/quotatest"
	"github.com/zephbot/zephbot/bot/texts"
)

// distantCounter is a counter whose server is away from began for ten minutes: it refuses connections, then it does not
// answer, then it cuts the connection after it has done what it was asked, for a third of the time each.
type distantCounter struct {
	*quotatest.Counter
	began time.Time
}

const (
	outageOfCounters = 10 * time.Minute
	counterPatience  = 2 * time.Second // of the client
)

func (d *distantCounter) reach(ctx context.Context) (done bool, err error) {
	at := time.Since(d.began)
	switch {
	case at < 0 || at >= outageOfCounters:
		return true, nil
	case at < outageOfCounters/3:
		return false, errors.New("connection refused")
	case at < 2*outageOfCounters/3:
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(counterPatience):
			return false, errors.New("no answer")
		}
	}
	return true, errors.New("connection reset")
}

func reached[T any](ctx context.Context, d *distantCounter, ask func() (T, error)) (answer T, err error) {
	done, away := d.reach(ctx)
	if done {
		answer, err = ask()
	}
	return answer, errors.Join(err, away)
}

func (d *distantCounter) Take(ctx context.Context, id string, takes []quota.Take, expire time.Time) ([]int64, int, error) {
	denied := -1
	counts, err := reached(ctx, d, func() (counts []int64, err error) {
		counts, denied, err = d.Counter.Take(ctx, id, takes, expire)
		return counts, err
	})
	if err != nil {
		denied = -1
	}
	return counts, denied, err
}

func (d *distantCounter) Return(ctx context.Context, id string, takes []quota.Take) error {
	_, err := reached(ctx, d, func() (struct{}, error) { return struct{}{}, d.Counter.Return(ctx, id, takes) })
	return err
}

func (d *distantCounter) Reserve(ctx context.Context, id string, takes []quota.Take, hold quota.Hold, expire time.Time) (quota.Room, error) {
	return reached(ctx, d, func() (quota.Room, error) { return d.Counter.Reserve(ctx, id, takes, hold, expire) })
}

func (d *distantCounter) Settle(ctx context.Context, id, name string, takes []quota.Take, expire time.Time) ([]int64, error) {
	return reached(ctx, d, func() ([]int64, error) { return d.Counter.Settle(ctx, id, name, takes, expire) })
}

func (d *distantCounter) Read(ctx context.Context, keys []string) ([]int64, error) {
	return reached(ctx, d, func() ([]int64, error) { return d.Counter.Read(ctx, keys) })
}

func (d *distantCounter) Restore(ctx context.Context, key string, n int64, expire time.Time) error {
	_, err := reached(ctx, d, func() (struct{}, error) { return struct{}{}, d.Counter.Restore(ctx, key, n, expire) })
	return err
}

// TestTenMinutesWithoutRedis: the counters are away for ten minutes while turns begin and models are called. Nobody is
// refused while there is room, nobody gets more than the limit, and nobody waits for the counters for longer than the
// client does.
func TestTenMinutesWithoutRedis(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit, each = 60, 120 // turns a day; tokens of a call
		store := bottest.New()
		counter := &distantCounter{Counter: &quotatest.Counter{}, began: time.Now().Add(time.Minute)}
		limits := quota.Limits{{Unit: quota.Turns, Window: quota.Day}: limit, {Unit: quota.Tokens, Window: quota.Day}: each * 1000}
		meter := quota.New(quota.Options{Limits: quota.Scopes{User: limits}, Owner: "process"}, counter, store, texts.Words{}, time.Now, nil)
		through, calls, slowest := 0, 0, time.Duration(0)
		for n := 0; time.Since(counter.began) < outageOfCounters+2*time.Minute; n++ {
			id := fmt.Sprint("turn", n)
			began := time.Now()
			a, err := quotatest.Begin(t.Context(), meter, store, private("42"), id)
			slowest = max(slowest, time.Since(began))
			if err != nil {
				t.Fatal(err)
			}
			if (a.Refusal == "") != (through < limit) {
				t.Fatalf("after %s: turn %d of %d, refused: %q", time.Since(counter.began), through+1, limit, a.Refusal)
			}
			if a.Refusal == "" {
				through++
				of, call := &agent.Turn{ID: id}, id+"/1"
				purse := meter.Open(private("42"), id)
				if err := meter.Reserve(t.Context(), of, call, tokens(100, 100)); err != nil {
					t.Fatalf("after %s: %v", time.Since(counter.began), err)
				}
				if err := meter.Settle(t.Context(), of, call, tokens(100, each-100), -1); err != nil {
					t.Fatal(err)
				}
				calls++
				purse.Close()
				if err := purse.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			<-time.After(10 * time.Second)
		}
		day := time.Now().UTC().Format(time.DateOnly)
		for unit, want := range map[string]int64{quota.Turns: limit, quota.Tokens: int64(calls) * each} {
			if used, err := store.Used(t.Context(), quota.UserLevel(private("42").Caller), unit, day); err != nil || used != want {
				t.Errorf("%s: used %d, want %d, %v", unit, used, want, err)
			}
		}
		usage, err := meter.Usage(t.Context(), private("42"))
		if err != nil || len(usage) == 0 || usage[0].Used != limit {
			t.Errorf("usage after the outage: %+v, %v", usage, err)
		}
		t.Logf("%d turns; the slowest beginning waited %s", through, slowest)
		if slowest > 4*counterPatience {
			t.Errorf("a beginning waited %s for the counters", slowest)
		}
	})
}
