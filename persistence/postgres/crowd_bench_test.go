package postgres_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// BenchmarkCrowd has the turns of 256 chats at once: with one process, with three that have chats of their own, and with
// three among which a balancer deals the turns of each chat out. It says how many turns are made in a second, and how much
// processor time the server needs for one.
func BenchmarkCrowd(b *testing.B) {
	const chats = 256
	for _, way := range []struct {
		name             string
		processes, steps int
	}{{"one", 1, 0}, {"three", 3, 0}, {"dealt", 3, 1}} {
		b.Run(way.name, func(b *testing.B) {
			cluster := pgtest.Shared(b)
			name := cluster.Database(b, "")
			url := cluster.URL(name) + "&options=-c%20synchronous_commit%3Don"
			stores := make([]*postgres.Store, way.processes)
			for i := range stores {
				stores[i] = open(b, postgres.Options{URL: url, Owner: fmt.Sprint("process ", i), Shared: true})
			}
			people := make([]*steps, chats)
			for i := range people {
				chat := strconv.Itoa(i + 1)
				people[i] = &steps{tb: b, place: bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: chat}}
			}
			round := func() {
				var wg sync.WaitGroup
				for i, person := range people {
					wg.Go(func() {
						person.store = stores[(i+way.steps*person.turn)%len(stores)]
						person.play()
					})
				}
				wg.Wait()
			}
			round()
			round()
			before, began, rounds := serverTime(b, name), time.Now(), 0
			for b.Loop() {
				round()
				rounds++
			}
			turns := float64(rounds * chats)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(turns/time.Since(began).Seconds(), "turns/s")
			b.ReportMetric(float64((serverTime(b, name)-before).Microseconds())/1000/turns, "server-ms/turn")
		})
	}
}

// serverTime is how much processor time the server's processes for a database have had.
func serverTime(b *testing.B, database string) (sum time.Duration) {
	b.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	check(b, err)
	for _, name := range names {
		command, err := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		if err != nil || !strings.HasPrefix(string(command), "postgres:") || !strings.Contains(string(command), " "+database+" ") {
			continue
		}
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended meanwhile
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(after)
		for _, field := range fields[11:13] { // utime and stime, in hundredths of a second
			n, err := strconv.ParseInt(field, 10, 64)
			check(b, err)
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}
