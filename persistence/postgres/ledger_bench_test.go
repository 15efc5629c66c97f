package postgres_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// BenchmarkSharedAccount sets aside and settles for 48 people at once in three processes, with a limit of each person and
// with one of the bot, whose account all of them share. Both take turns. The server makes commits durable.
func BenchmarkSharedAccount(b *testing.B) {
	const people, limit = 48, 1 << 50
	cluster := pgtest.Shared(b)
	url := cluster.URL(cluster.Database(b, "")) + "&options=-c%20synchronous_commit%3Don"
	stores := make([]*postgres.Store, 3)
	for i := range stores {
		stores[i] = open(b, postgres.Options{URL: url, Owner: fmt.Sprint("process ", i), Shared: true})
	}
	var n atomic.Int64
	round := func(shared bool) time.Duration {
		began := time.Now()
		var wg sync.WaitGroup
		for person := range people {
			wg.Go(func() {
				store, owner := stores[person%len(stores)], fmt.Sprint("process ", person%len(stores))
				id := fmt.Sprint(n.Add(1))
				aside := bot.Aside{Scope: fmt.Sprint("user/", person), Unit: "microusd", Day: "2026-03-01", OfDay: limit}
				list := []bot.Aside{aside}
				if shared {
					list = append(list, bot.Aside{Scope: "bot/telegram", Unit: "microusd", Day: "2026-03-01", OfDay: limit})
				}
				for i := range list {
					list[i].Ahead = 100
				}
				_, err := store.Apply(b.Context(), &bot.Change{Ledger: &bot.Ledger{Holder: id, Owner: owner, Checked: true, Asides: list}})
				check(b, err)
				end := append([]bot.Aside(nil), list...)
				var charges []bot.Charge
				for i := range end {
					end[i].Ahead = 0
					charges = append(charges, bot.Charge{Key: id + end[i].Scope, Scope: end[i].Scope, Unit: "microusd", Day: "2026-03-01", N: 50})
				}
				_, err = store.Apply(b.Context(), &bot.Change{Charges: charges, Ledger: &bot.Ledger{Holder: id, Owner: owner, Asides: end}})
				check(b, err)
			})
		}
		wg.Wait()
		return time.Since(began)
	}
	round(false)
	round(true)
	var took [2]time.Duration
	for b.Loop() {
		took[0] += round(false)
		took[1] += round(true)
	}
	each := float64(2 * people * b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(each/took[0].Seconds(), "changes/s-own")
	b.ReportMetric(each/took[1].Seconds(), "changes/s-shared")
	b.ReportMetric(float64(took[1])/float64(took[0]), "x-shared")
}
