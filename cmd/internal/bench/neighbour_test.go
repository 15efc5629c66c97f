//go:build unix

package bench_test

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// neighbour measures how long a person waits for an answer who writes right after others have written a number of
// messages in each of a number of chats, and how long when nobody else writes.
func neighbour(ctx context.Context, tb testing.TB, chats, each int, latency time.Duration) (waited, quiet time.Duration, err error) {
	w := newWorld(tb, chats+1)
	defer service().begin(ctx, tb, w, mirror(tb, latency))()
	me := person(chats)
	if quiet, err = turn(ctx, w, me, "before"); err != nil {
		return 0, 0, err
	}
	for i := range chats {
		for j := range each {
			if err := w.say(person(i), fmt.Sprint("message ", j)); err != nil {
				return 0, 0, err
			}
		}
	}
	began := time.Now()
	if err := w.say(me, "and me?"); err != nil {
		return 0, 0, err
	}
	for {
		a, err := w.next(ctx)
		if err != nil {
			return 0, 0, err
		}
		if a.chat == me {
			return a.at.Sub(began), quiet, nil
		}
	}
}

// BenchmarkNeighbour measures the wait of one person behind 10 000 messages of another, and behind 2 000 chats that
// write at once; the model takes 200 ms.
func BenchmarkNeighbour(b *testing.B) {
	for name, flood := range map[string][2]int{"messages10000": {1, 10_000}, "chats2000": {2_000, 1}} {
		b.Run(name, func(b *testing.B) {
			var waited, quiet time.Duration
			for b.Loop() {
				w, q, err := neighbour(b.Context(), b, flood[0], flood[1], think)
				if err != nil {
					b.Fatal(err)
				}
				waited, quiet = waited+w, quiet+q
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(millis(waited)/float64(b.N), "ms-wait")
			b.ReportMetric(millis(quiet)/float64(b.N), "ms-quiet")
		})
	}
}

// TestBenchSmokeNeighbour plays a small version of it.
func TestBenchSmokeNeighbour(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, flood := range [][2]int{{1, 30}, {10, 1}} {
		if waited, quiet, err := neighbour(ctx, t, flood[0], flood[1], time.Millisecond); err != nil || waited <= 0 || quiet <= 0 {
			t.Errorf("%v: %v, %v, %v", flood, waited, quiet, err)
		}
	}
}
