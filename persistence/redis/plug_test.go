package redis_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/quota/quotatest"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/persistence/redis"
	"github.com/zephbot/zephbot/persistence/redis/redistest"
)

// TestFaults pulls the plug: what a person waits for is bounded, the state says what is wrong, and everything works
// again by itself.
func TestFaults(t *testing.T) {
	t.Parallel()
	for fault, want := range map[redistest.Fault]redis.State{redistest.Cut: redis.Away, redistest.Stall: redis.Slow, redistest.ReadOnly: redis.ReadOnly} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			server := redistest.Run(t)
			plug := redistest.Between(t, server.Addr())
			s := open(t, "redis://"+plug.Addr())
			works(t, s)
			plug.Break(fault)
			began := time.Now()
			take := []quota.Take{{Key: "a", N: 1}}
			if _, denied, err := s.Take(t.Context(), "1", take, began.Add(time.Hour)); err == nil || denied != -1 {
				t.Errorf("take: denied %d, %v", denied, err)
			}
			if waited := time.Since(began); waited > 10*time.Second { // two, on a machine that is not busy
				t.Errorf("waited %s", waited)
			}
			h := s.Health()
			if h.State != want || h.Since.Before(began) {
				t.Errorf("health %+v, want %s", h, want)
			}
			if _, err := s.Cache().Get(t.Context(), "scope", "k"); err == nil {
				t.Error("the cache answers")
			}
			if again := s.Probe(t.Context()); again != h {
				t.Errorf("health %+v, want %+v still", again, h)
			}
			plug.Break(redistest.None)
			if h := s.Probe(t.Context()); h.State != redis.Fine {
				t.Errorf("healed: %+v", h)
			}
			if counts, _, err := s.Take(t.Context(), "1", take, began.Add(time.Hour)); err != nil || counts[0] != 1 {
				t.Errorf("take after that: %v, %v", counts, err)
			}
		})
	}
}

// TestResting: while a server does not answer, one operation waits for it and those behind it do not.
func TestResting(t *testing.T) {
	t.Parallel()
	plug := redistest.Start(t)
	s := open(t, plug.URL)
	works(t, s)
	plug.Break(redistest.Stall)
	if _, err := s.Read(t.Context(), []string{"a"}); err == nil {
		t.Fatal("it answers")
	}
	trips := plug.Trips()
	for range 100 {
		if _, err := s.Read(t.Context(), []string{"a"}); err == nil {
			t.Fatal("it answers")
		}
	}
	if asked := plug.Trips() - trips; asked > 2 { // a busy machine may take longer than the rest for this
		t.Errorf("asked %d times by 100 operations", asked)
	}
}

// TestImpatientCaller: a caller that gives up says nothing about the server, and holds nobody else up.
func TestImpatientCaller(t *testing.T) {
	t.Parallel()
	plug := redistest.Start(t)
	s := open(t, plug.URL)
	works(t, s)
	plug.Break(redistest.Stall)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Read(ctx, []string{"a"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v", err)
	}
	if h := s.Health(); h.State != redis.Fine {
		t.Errorf("health %+v", h)
	}
}

// desk is a meter over a store that keeps charges.
type desk struct {
	store *bottest.Store
	meter *quota.Meter
	msg   *bot.Message
	turns int
}

func newDesk(s *redis.Store, limit int64) *desk {
	d := &desk{store: bottest.New()}
	day := time.Now() // one day, also at midnight
	d.meter = quota.New(quota.Options{Limits: quota.Scopes{User: quota.TurnsADay(limit)}}, s, d.store, texts.Words{}, func() time.Time { return day }, nil)
	d.msg = &bot.Message{Person: "42", Caller: "telegram:42", Place: bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: "42"}}
	return d
}

// admit begins a turn, as the dispatcher does.
func (d *desk) admit(t *testing.T) (refused bool) {
	t.Helper()
	d.turns++
	a, err := quotatest.Begin(t.Context(), d.meter, d.store, d.msg, fmt.Sprint("turn", d.turns))
	if err != nil {
		t.Fatal(err)
	}
	return a.Refusal != ""
}

func (d *desk) used(t *testing.T) int64 {
	t.Helper()
	usage, err := d.meter.Usage(t.Context(), d.msg)
	if err != nil {
		t.Fatal(err)
	}
	return usage[0].Used
}

// TestFlushed: counters that are gone are filled from the charges, within the same turn.
func TestFlushed(t *testing.T) {
	t.Parallel()
	server := redistest.Run(t)
	d := newDesk(open(t, server.URL()), 3)
	for n := range 4 {
		if n > 0 {
			server.Do("FLUSHALL")
			server.Do("SCRIPT", "FLUSH")
		}
		if refused := d.admit(t); refused != (n == 3) {
			t.Errorf("turn %d: refused = %t", n+1, refused)
		}
	}
	if got := d.used(t); got != 3 {
		t.Errorf("used %d, want 3", got)
	}
}

// TestSnapshot: a server that was killed comes back with what it last saved, which is less than was charged.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	server := redistest.Run(t)
	d := newDesk(open(t, server.URL()), 3)
	d.admit(t)
	server.Do("SAVE")
	d.admit(t)
	server.Kill()
	server.Again()
	if n, ok := server.Do("DBSIZE").(int64); !ok || n == 0 {
		t.Fatal("the snapshot is empty")
	}
	if got := d.used(t); got != 2 {
		t.Errorf("used %d, want 2", got)
	}
	if d.admit(t) || !d.admit(t) {
		t.Error("not three turns of three")
	}
}

// TestSentinels: the password of both, and a failover to a replica that has not heard of the last turns.
func TestSentinels(t *testing.T) {
	t.Parallel()
	set := redistest.RunSentinels(t, "hunter2")
	s := open(t, set.URL())
	works(t, s)
	d := newDesk(s, 4)
	d.admit(t)
	for range 2 {
		if d.admit(t) {
			t.Error("refused")
		}
	}
	set.Failover(t, "{quota}quota/turns/*", 1)
	set.Replica.Await("reached by the sentinels' word", func(ctx context.Context) bool { return s.Probe(ctx).State == redis.Fine })
	if got := d.used(t); got != 3 {
		t.Errorf("used %d after the failover, want 3", got)
	}
	if d.admit(t) || !d.admit(t) {
		t.Error("not four turns of four")
	}
	works(t, s)
}
