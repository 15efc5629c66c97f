package redis_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/deliver"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/persistence/redis"
	"github.com/zephbot/zephbot/persistence/redis/redistest"
)

// BenchmarkTake reserves a turn over three counters: with the in-process engine, and over a socket on a test server
// that runs the scripts.
func BenchmarkTake(b *testing.B) {
	m := miniredis.RunT(b)
	for name, url := range map[string]string{"process": "", "scripts": "redis://" + m.Addr()} {
		b.Run(name, func(b *testing.B) {
			s, err := redis.Open(redis.Options{URL: url, Log: zerolog.Nop()})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = s.Close() })
			takes := []quota.Take{{Key: "quota/turns/2026-03-04/user/telegram:42", N: 1}, {Key: "quota/turns/2026-03-04/chat/telegram:-100", N: 1}, {Key: "quota/turns/2026-03-04/bot/1", N: 1}}
			expire := time.Now().Add(time.Hour)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n++
				if _, _, err := s.Take(b.Context(), fmt.Sprint(n), takes, expire); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSpend books a request in a send budget on a server and reports the end of the previous one.
func BenchmarkSpend(b *testing.B) {
	real := redistest.Run(b)
	s, err := redis.Open(redis.Options{URL: real.URL(), Log: zerolog.Nop()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	budget, err := s.Budget("1")
	if err != nil {
		b.Fatal(err)
	}
	var over []deliver.Over
	for i := 0; b.Loop(); i++ {
		ask := limits().Ask(strconv.Itoa(i), chatOf(strconv.Itoa(1+i%1000)), bot.High)
		v, err := budget.Spend(b.Context(), ask, over)
		if err != nil {
			b.Fatal(err)
		}
		if over = over[:0]; v.Granted {
			over = append(over, deliver.Over{Ask: ask})
		}
	}
}
