package redis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/persistence/redis"
)

// BenchmarkTake reserves a turn over three counters: in the process, and over a socket on a server in the process that runs the scripts.
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
