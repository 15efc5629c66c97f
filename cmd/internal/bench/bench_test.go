//go:build unix

package bench_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/tools/document"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"

	"github.com/zephbot/zephbot/cmd/internal/cli"
)

// childVariable makes this binary the program: the small run needs no build.
const childVariable = "BENCH_CHILD"

// TestMain lets the test binary act as the helper of sandboxed commands, like the program, and as the program itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == document.Word {
		os.Exit(document.Main(os.Args[2:], os.Stdin, os.Stdout))
	}
	if code, ok := mcptest.Main(); ok {
		os.Exit(code)
	}
	if os.Getenv(soakVariable) != "" && len(os.Args) > 1 && os.Args[1] == "serve" {
		os.Exit(soakService())
	}
	if os.Getenv(childVariable) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		code := cli.Main(ctx, os.Args[1:], cli.Standard())
		stop()
		os.Exit(code)
	}
	os.Exit(pgtest.Main(m))
}

// Sizes of the scenarios.
const (
	talkers = 50 // who take the single turns, so that no history becomes long
	people  = 500
	rounds  = 4
	think   = 200 * time.Millisecond
)

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// quantile returns a quantile of sorted values.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// block is how many turns one subject makes before it is the other's turn, so that their resource usage can be told
// apart.
const block = 10

// track is what was measured for one subject.
type track struct {
	subject subject
	world   *world
	took    []time.Duration
	use     use
	cpu     time.Duration
}

// play makes a block of turns, one after another.
func (t *track) play(ctx context.Context) error {
	before, err := used()
	if err != nil {
		return err
	}
	cpu, err := processorTime()
	if err != nil {
		return err
	}
	for range block {
		n := len(t.took)
		d, err := turn(ctx, t.world, person(n%talkers), fmt.Sprint("hello ", n))
		if err != nil {
			return fmt.Errorf("%s: %w", t.subject.name, err)
		}
		t.took = append(t.took, d)
	}
	after, err := used()
	if err != nil {
		return err
	}
	t.use.add(before, after)
	now, err := processorTime()
	t.cpu += now - cpu
	return err
}

// quantile returns a quantile of the turns in ms.
func (t *track) quantile(q float64) float64 {
	return millis(quantile(slices.Sorted(slices.Values(t.took)), q))
}

// BenchmarkTurn measures the overhead of a turn: from the update to the accepted answer, with a model that takes no
// time. Service and echo bot alternate. Allocations and processor time include the fake, the model and the person,
// which are the same for both.
func BenchmarkTurn(b *testing.B) {
	ctx := b.Context()
	tracks := []*track{{subject: service()}, {subject: echo()}}
	url := mirror(b, 0)
	for _, t := range tracks {
		t.world = newWorld(b, talkers)
		defer t.subject.begin(ctx, b, t.world, url)()
	}
	for b.Loop() {
		for _, t := range tracks {
			if err := t.play(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
	ours, theirs := tracks[0], tracks[1]
	n := float64(len(ours.took))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ours.quantile(0.5), "p50-ms")
	b.ReportMetric(ours.quantile(0.99), "p99-ms")
	b.ReportMetric(theirs.quantile(0.5), "echo-p50-ms")
	b.ReportMetric(theirs.quantile(0.99), "echo-p99-ms")
	b.ReportMetric(ours.quantile(0.5)/theirs.quantile(0.5), "x-echo-p50")
	b.ReportMetric(ours.quantile(0.99)/theirs.quantile(0.99), "x-echo-p99")
	b.ReportMetric(millis(ours.cpu)/n, "cpu-ms/turn")
	b.ReportMetric(float64(ours.cpu)/float64(theirs.cpu), "x-echo-cpu")
	b.ReportMetric(float64(ours.use.allocations)/n, "allocs/turn")
	b.ReportMetric(float64(theirs.use.allocations)/n, "echo-allocs/turn")
	b.ReportMetric(float64(ours.use.written)/1024/n, "written-KB/turn")
	b.ReportMetric(float64(ours.world.tally.commits.Load())/n, "commits/turn")
	b.ReportMetric(millis(time.Duration(ours.world.tally.took.Load()))/n, "commit-ms/turn")
	b.ReportMetric(float64(ours.world.tally.perTurn(int(n))), "sql/turn")
}

// BenchmarkCost counts what does not depend on the machine.
func BenchmarkCost(b *testing.B) {
	var got turnCost
	for b.Loop() {
		got, _ = measureCost(b.Context(), b, 50)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(got.statements), "sql/turn")
	b.ReportMetric(float64(got.commits), "commits/turn")
	b.ReportMetric(float64(got.trips), "redis/turn")
}

// BenchmarkCrowd is 500 chats with 4 messages each and a model that takes 200 ms.
func BenchmarkCrowd(b *testing.B) {
	ctx := b.Context()
	rates, used := map[string]float64{}, map[string]float64{}
	n := 0.0
	for b.Loop() {
		n++
		for _, s := range []subject{service(), echo()} {
			rate, cpu, err := crowdRate(ctx, b, s, people, rounds, think)
			if err != nil {
				b.Fatal(err)
			}
			rates[s.name] += rate
			used[s.name] += cpu
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(rates["service"]/n, "answers/s")
	b.ReportMetric(rates["echo"]/n, "echo-answers/s")
	b.ReportMetric(rates["service"]/rates["echo"], "x-echo")
	b.ReportMetric(used["service"]/n, "cpu-ms/answer")
	b.ReportMetric(used["echo"]/n, "echo-cpu-ms/answer")
	b.ReportMetric(used["service"]/used["echo"], "x-echo-cpu")
}

// crowdRate returns how many answers a second a crowd gets, and the processor time per answer in ms, of the bot, the
// fake and the crowd together.
func crowdRate(ctx context.Context, tb testing.TB, s subject, people, rounds int, think time.Duration) (rate, cpu float64, err error) {
	w := newWorld(tb, people)
	defer s.begin(ctx, tb, w, mirror(tb, think))()
	before, err := processorTime()
	if err != nil {
		return 0, 0, err
	}
	took, err := crowd(ctx, w, people, rounds)
	if err != nil {
		return 0, 0, err
	}
	now, err := processorTime()
	n := float64(people * rounds)
	return n / took.Seconds(), millis(now-before) / n, err
}

// processorTime is what this process has used so far.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// TestBenchSmoke plays a small version of each scenario, so that the benchmarks keep working.
func TestBenchSmoke(t *testing.T) {
	t.Parallel()
	for _, s := range []subject{service(), echo()} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			w := newWorld(t, 3)
			stop := s.begin(ctx, t, w, mirror(t, 0))
			defer stop()
			for i := range 4 {
				if d, err := turn(ctx, w, person(i%2), fmt.Sprint("hello ", i)); err != nil || d <= 0 {
					t.Fatalf("turn %d: %v, %v", i, d, err)
				}
			}
			if rate, _, err := crowdRate(ctx, t, s, 5, 2, time.Millisecond); err != nil || rate <= 0 {
				t.Fatalf("crowd: %v answers/s, %v", rate, err)
			}
		})
	}
}

// TestBenchSmokeProcess does the same for what is measured in a process of its own.
func TestBenchSmokeProcess(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("memory is read from /proc, which this system does not have")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	idle, talked, err := memory(ctx, t, self, 2)
	if err != nil || idle <= 0 || talked <= 0 {
		t.Errorf("memory idle %v MB, after talks %v MB, %v", idle, talked, err)
	}
	peak, err := peak(ctx, t, self, 2, 2, time.Millisecond)
	if err != nil || peak <= 0 {
		t.Errorf("memory at its peak %v MB, %v", peak, err)
	}
}

// TestBenchSmokeAge plays a small version of BenchmarkAge.
func TestBenchSmokeAge(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	entries, err := age(ctx, t, self, dir, 5, 3)
	if err != nil || entries != 5*3*2 {
		t.Fatalf("%d entries, %v", entries, err)
	}
	got, err := compare(ctx, t, self, dir, 2, time.Millisecond)
	if err != nil || len(got.young) != 2 || len(got.old) != 2 || got.first <= 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestBenchSmokeAgePostgres does the same with PostgreSQL.
func TestBenchSmokeAgePostgres(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cluster := pgtest.Shared(t)
	dir, young, old := t.TempDir(), cluster.Database(t, ""), cluster.Database(t, "")
	entries, err := agePostgres(ctx, t, self, dir, cluster, old, 5, 3)
	if err != nil || entries != 5*3*2 {
		t.Fatalf("%d entries, %v", entries, err)
	}
	got, err := compare(ctx, t, self, dir, 2, time.Millisecond, cluster.URL(young), cluster.URL(old))
	if err != nil || len(got.young) != 2 || len(got.old) != 2 || got.first <= 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
