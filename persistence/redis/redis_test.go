package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/quota/quotatest"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/persistence/redis"
	"github.com/zephbot/zephbot/persistence/redis/redistest"
)

// open opens a store that is closed with the test.
func open(t *testing.T, url string) *redis.Store {
	t.Helper()
	s, err := redis.Open(redis.Options{URL: url, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// server starts a real Redis with a password and gives its URL.
func server(t *testing.T) string {
	t.Helper()
	return "redis://:s3cret@" + redistest.Run(t, "--requirepass", "s3cret").Addr()
}

// database is one of the sixteen databases of a server, so that each test has an empty one.
type database struct {
	url  string
	next atomic.Int32
}

func (d *database) open(t *testing.T) *redis.Store {
	t.Helper()
	return open(t, fmt.Sprintf("%s/%d", d.url, d.next.Add(1)-1))
}

func TestCounterEmbedded(t *testing.T) {
	t.Parallel()
	quotatest.Suite(t, func(t *testing.T) quota.Counter { return open(t, "") })
}

func TestCounterServer(t *testing.T) {
	t.Parallel()
	d := &database{url: server(t)}
	quotatest.Suite(t, func(t *testing.T) quota.Counter { return d.open(t) })
	t.Run("meters of many processes", func(t *testing.T) {
		t.Parallel()
		meters(t, func(t *testing.T) quota.Counter { return open(t, d.url+"/15") })
	})
}

func TestMetersEmbedded(t *testing.T) {
	t.Parallel()
	s := open(t, "")
	meters(t, func(*testing.T) quota.Counter { return s })
}

// meters lets several processes admit turns of the same people at once: the limits hold exactly over all of them.
func meters(t *testing.T, counter func(t *testing.T) quota.Counter) {
	store, day := bottest.New(), time.Now() // one day, also at midnight
	now := func() time.Time { return day }
	o := quota.Options{Limits: quota.Scopes{User: quota.TurnsADay(5), Chat: quota.TurnsADay(12), Bot: quota.TurnsADay(100)}, Payer: "both"}
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range 3 {
		m := quota.New(o, counter(t), store, texts.Words{}, now, nil)
		for n := range 30 {
			wg.Go(func() {
				person := fmt.Sprint(n % 3)
				msg := &bot.Message{Person: person, Caller: "telegram:" + person, Place: bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: "-100", Group: true}}
				a, err := quotatest.Begin(t.Context(), m, store, msg, fmt.Sprint("turn", n)) // each turn on every process
				if err != nil {
					t.Error(err)
				}
				if a.Refusal == "" {
					admitted.Add(1)
				}
			})
		}
	}
	wg.Wait()
	m := quota.New(o, counter(t), store, texts.Words{}, now, nil)
	usage, err := m.Usage(t.Context(), &bot.Message{Person: "0", Caller: "telegram:0", Place: bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: "-100", Group: true}})
	if err != nil {
		t.Fatal(err)
	}
	if len(usage) != 3 || usage[0].Used > 5 || usage[1].Used != 12 || usage[2].Used != 12 {
		t.Errorf("usage %+v, %d admissions", usage, admitted.Load())
	}
}

// TestRestart: the embedded server forgets everything with its process, the mirror does not.
func TestRestart(t *testing.T) {
	t.Parallel()
	store := bottest.New()
	msg := &bot.Message{Person: "42", Caller: "telegram:42", Place: bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: "42"}}
	o := quota.Options{Limits: quota.Scopes{User: quota.TurnsADay(2)}}
	day := time.Now()
	for n, refused := range []bool{false, false, true} {
		m := quota.New(o, open(t, ""), store, texts.Words{}, func() time.Time { return day }, nil)
		a, err := m.Admit(t.Context(), msg, fmt.Sprint(n))
		if err != nil || (a.Refusal != "") != refused {
			t.Fatalf("process %d: %+v, %v", n, a, err)
		}
		if _, err := store.Apply(t.Context(), &bot.Change{Charges: a.Charges}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	s := open(t, "")
	if err := s.Ping(t.Context()); err != nil || !s.Embedded() {
		t.Errorf("ping: %v, embedded %t", err, s.Embedded())
	}
	for range 2 { // closing is idempotent; the cleanup does it a third time
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if err := s.Ping(t.Context()); err == nil {
		t.Error("a closed store answers")
	}
}

func TestServerAway(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a port that nobody listens on afterwards
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, "redis://:hunter2@"+addr)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that nothing waits for another try
	if s.Embedded() {
		t.Error("a server of its own is called embedded")
	}
	take := []quota.Take{{Key: "a", N: 1}}
	_, denied, takeErr := s.Take(ctx, "1", take, time.Now())
	_, readErr := s.Read(ctx, []string{"a"})
	for _, err := range []error{s.Ping(ctx), takeErr, readErr, s.Return(ctx, "1", take), s.Restore(ctx, "a", 1, time.Now())} {
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("err = %v", err)
		}
	}
	if denied != -1 {
		t.Errorf("denied = %d, want -1", denied)
	}
}

// TestForeignValues: what somebody else wrote under our keys is an error, not a number.
func TestForeignValues(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	m.RequireAuth("s3cret")
	s := open(t, "redis://:s3cret@"+m.Addr())
	if err := m.Set("{quota}a", "many"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(t.Context(), []string{"a"}); err == nil || !strings.Contains(err.Error(), "counter a") {
		t.Errorf("read: %v", err)
	}
	if _, _, err := s.Take(t.Context(), "1", []quota.Take{{Key: "a", N: 1, Limit: 3}}, time.Now().Add(time.Hour)); err == nil {
		t.Error("take: no error")
	}
	wrong := open(t, "redis://:wrong@"+m.Addr())
	if err := wrong.Ping(t.Context()); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("a wrong password: %v", err)
	}
}

// TestExpiry: counters go when their day is long over.
func TestExpiry(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	s := open(t, "redis://"+m.Addr())
	expire := time.Now().Add(time.Hour)
	if _, _, err := s.Take(t.Context(), "1", []quota.Take{{Key: "a", N: 1}}, expire); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(t.Context(), "b", 5, expire); err != nil {
		t.Fatal(err)
	}
	if err := s.Return(t.Context(), "1", []quota.Take{{Key: "a", N: 9}}); err != nil { // to nothing, and still to go
		t.Fatal(err)
	}
	for _, key := range []string{"{quota}a", "{quota}b"} {
		if m.TTL(key) <= 0 {
			t.Errorf("%s stays for ever", key)
		}
	}
	m.FastForward(2 * time.Hour)
	if keys := m.Keys(); len(keys) != 0 {
		t.Errorf("still there: %v", keys)
	}
}
