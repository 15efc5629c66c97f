package persistence_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/redis"
)

// BenchmarkFirstTurnAfterRestart admits the first turn of a process, with 25 000 people who wrote today.
func BenchmarkFirstTurnAfterRestart(b *testing.B) {
	stores, err := persistence.Open(b.Context(), persistence.Options{DataDir: b.TempDir(), Owner: "one", Log: zerolog.Nop()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = stores.Close() }()
	now := time.Now()
	today := now.UTC().Format(time.DateOnly)
	for first := 0; first < 25_000; first += 1000 {
		var change bot.Change
		for n := first; n < first+1000; n++ {
			for _, scope := range []string{fmt.Sprint("user/telegram:", n), "bot/telegram/1"} {
				change.Charges = append(change.Charges, bot.Charge{Key: fmt.Sprint(n, "/", scope), Scope: scope, Unit: quota.Turns, Day: today, N: 1})
			}
		}
		if _, err := stores.Bot.Apply(b.Context(), &change); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		b.StopTimer()
		counter, err := redis.Open(redis.Options{Log: zerolog.Nop()})
		if err != nil {
			b.Fatal(err)
		}
		meter := quota.New(quota.Options{Limits: quota.Scopes{User: quota.TurnsADay(9)}}, counter, stores.Bot, texts.Words{}, func() time.Time { return now }, nil)
		b.StartTimer()
		first(b.Context(), b, meter)
		b.StopTimer()
		if err := counter.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func first(ctx context.Context, b *testing.B, meter *quota.Meter) {
	b.Helper()
	a, err := meter.Admit(ctx, &bot.Message{
		ID: "1", Kind: bot.Text, Person: "42", Caller: "telegram:42", Place: bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: "42"},
	}, "turn")
	if err != nil || a.Refusal != "" {
		b.Fatalf("%+v, %v", a, err)
	}
}
