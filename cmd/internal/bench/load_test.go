//go:build unix

package bench_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// loadVariable requests the whole table instead of a few chats, or some of its lines: "3x1500" is PostgreSQL with three
// processes and 1500 chats, "3x1500x1s" the same with another pause of the people.
const loadVariable = "ZEPH_LOAD"

// How people talk, and for how long it is measured. A chat is active if its person writes again some seconds after each
// answer.
const (
	loadThink = time.Second     // of the model
	loadPause = 4 * time.Second // on average, until the next message
	loadFor   = 15 * time.Second
	loadReach = 5 * time.Minute // for one line of the table
)

// line is one line of the table: a deployment under one load.
type line struct {
	setup  setup
	habit  habit
	took   time.Duration
	heard  heard
	before toll
	after  toll
}

// loadLine measures a deployment with this number of active chats.
func loadLine(ctx context.Context, r *rig, t *talks, d time.Duration) (l line, err error) {
	ctx, cancel := context.WithTimeout(ctx, loadReach)
	defer cancel()
	l = line{setup: r.setup, habit: t.habit}
	t.begin()
	wait(ctx, t.habit.think+t.habit.pause) // everybody has written
	if l.before, err = r.toll(ctx); err != nil {
		return l, err
	}
	l.heard, err = t.measure(ctx, d, func() (err error) {
		l.after, err = r.toll(ctx)
		return err
	})
	if err != nil {
		return l, err
	}
	l.took = l.after.at.Sub(l.before.at)
	return l, t.end(ctx)
}

// loadTable measures a deployment under increasing loads, and writes a line of the table for each.
func loadTable(ctx context.Context, tb testing.TB, path string, s setup, habits []habit, d time.Duration, cluster *pgtest.Cluster) []line {
	tb.Helper()
	most := 0
	for _, h := range habits {
		most = max(most, h.chats)
	}
	w := newWorld(tb, most)
	var now listeners
	w.watch = now.call
	r, err := newRig(ctx, tb, path, s, w, mirrorOf(tb, habits[0].think, now.asked), cluster)
	if err != nil {
		tb.Fatal(err)
	}
	var lines []line
	for _, h := range habits {
		t := newTalks(w, h)
		now.hear(t)
		l, err := loadLine(ctx, r, t, d)
		if err != nil {
			tb.Fatalf("%s, %d processes, %d chats: %v", s.engine, s.processes, h.chats, err)
		}
		lines = append(lines, l)
	}
	if err := r.end(ctx); err != nil {
		tb.Error(err)
	}
	return lines
}

// loadHead is the header of the table.
const loadHead = `| engine, intake | processes | active chats | turns/s | update → model asked, p50 / p99 | update → first sign, p50 / p99 | update → answer, p50 / p99 | CPU-ms a turn: service + PostgreSQL | cores: service + PostgreSQL | RSS of a process | connections | written a turn | stored a turn | commits a turn | rows read a turn |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|`

// String returns the line in Markdown.
func (l line) String() string {
	turns := float64(l.heard.answers)
	both := func(list []time.Duration) string {
		if len(list) == 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f / %.1f ms", millis(quantile(list, 0.5)), millis(quantile(list, 0.99)))
	}
	perTurn := func(d time.Duration) float64 { return millis(d) / turns }
	cores := func(d time.Duration) float64 { return d.Seconds() / l.took.Seconds() }
	cpu, server := l.after.cpu-l.before.cpu, l.after.database-l.before.database
	cells := []string{
		l.setup.engine + ", " + l.setup.intake(), fmt.Sprint(l.setup.processes), fmt.Sprint(l.habit.chats), fmt.Sprintf("%.0f", turns/l.took.Seconds()),
		both(l.heard.asked), both(l.heard.shown), both(l.heard.answered),
		fmt.Sprintf("%.2f", perTurn(cpu)), fmt.Sprintf("%.2f", cores(cpu)), fmt.Sprintf("%.0f MB", l.after.memory), "–",
		fmt.Sprintf("%.1f KB", float64(l.after.written-l.before.written)/1024/turns), fmt.Sprintf("%.1f KB", float64(l.after.stored-l.before.stored)/1024/turns), "–", "–",
	}
	if l.setup.engine == postgres {
		cells[7] += fmt.Sprintf(" + %.2f", perTurn(server))
		cells[8] += fmt.Sprintf(" + %.2f", cores(server))
		cells[10] = fmt.Sprint(l.after.connections)
		cells[13] = fmt.Sprintf("%.2f", float64(l.after.commits-l.before.commits)/turns)
		cells[14] = fmt.Sprintf("%.1f", float64(l.after.rows-l.before.rows)/turns)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// whole reports whether the whole table was requested, or lines of it.
func whole() bool { return os.Getenv(loadVariable) != "" }

// load is what one deployment is measured under.
type load struct {
	setup  setup
	habits []habit
}

// wanted returns the lines of the table that were requested.
func wanted(tb testing.TB) (loads []load) {
	tb.Helper()
	if os.Getenv(loadVariable) == "full" {
		var habits []habit
		for _, chats := range []int{100, 1000, 5000} {
			habits = append(habits, habit{chats, loadThink, loadPause})
		}
		for _, s := range []setup{{sqlite, 1, false}, {sqlite, 1, true}, {postgres, 1, true}, {postgres, 2, true}, {postgres, 3, true}} {
			loads = append(loads, load{s, habits})
		}
		return loads
	}
	for one := range strings.SplitSeq(os.Getenv(loadVariable), ",") {
		h, processes := habit{think: loadThink, pause: loadPause}, 0
		scale, pause, paused := cutLast(one)
		if _, err := fmt.Sscanf(scale, "%dx%d", &processes, &h.chats); err != nil {
			tb.Fatalf("%s: %q: %v", loadVariable, one, err)
		}
		if paused {
			var err error
			if h.pause, err = time.ParseDuration(pause); err != nil {
				tb.Fatal(err)
			}
		}
		loads = append(loads, load{setup{postgres, processes, true}, []habit{h}})
	}
	return loads
}

// cutLast splits "3x1500x1s" into "3x1500" and "1s".
func cutLast(one string) (scale, pause string, paused bool) {
	if strings.Count(one, "x") < 2 {
		return one, "", false
	}
	at := strings.LastIndex(one, "x")
	return one[:at], one[at+1:], true
}

// TestLoad measures how the service performs under load: with few chats for each deployment, so that the measurement
// keeps working, and the whole table with ZEPH_LOAD=full (.ci/run load), which it prints.
func TestLoad(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("processor time is read from /proc, which this system does not have")
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	few, d := []habit{{5, 10 * time.Millisecond, 40 * time.Millisecond}}, 200*time.Millisecond
	loads := []load{{setup{sqlite, 1, false}, few}, {setup{postgres, 1, true}, few}}
	if whole() {
		path, loads, d = program(t), wanted(t), loadFor
	}
	cluster := loadCluster(t)
	var lines []string
	for _, asked := range loads {
		s := asked.setup
		t.Run(fmt.Sprintf("%s-%s-%d", s.engine, s.intake(), s.processes), func(t *testing.T) {
			for _, l := range loadTable(t.Context(), t, path, s, asked.habits, d, cluster) {
				lines = append(lines, l.String())
				l.check(t)
			}
		})
	}
	if whole() {
		_, _ = fmt.Fprintf(os.Stdout, "%s\n%s\n", loadHead, strings.Join(lines, "\n"))
	}
}

// check looks for values that were not measured.
func (l line) check(t *testing.T) {
	t.Helper()
	t.Log(l)
	if n := len(l.heard.answered); l.heard.answers == 0 || len(l.heard.asked) != n || len(l.heard.shown) != n {
		t.Errorf("%d answers; of %d messages that were measured, the model was asked about %d and something was shown for %d",
			l.heard.answers, n, len(l.heard.asked), len(l.heard.shown))
	}
	counted := l.setup.engine == postgres || countsWrites(t)
	if l.after.cpu <= l.before.cpu || l.after.memory <= 0 || counted && l.after.written <= l.before.written {
		t.Errorf("something is not counted: %+v, %+v", l.before, l.after)
	}
}

// countsWrites reports whether the system counts what is written to the test's directory; it does not if that is in
// memory.
func countsWrites(t *testing.T) bool {
	t.Helper()
	before, err := used()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "written"))
	if err == nil {
		_, err = file.Write(make([]byte, 1<<20))
		err = errors.Join(err, file.Sync(), file.Close())
	}
	after, counted := used()
	if err := errors.Join(err, counted); err != nil {
		t.Fatal(err)
	}
	return after.written > before.written
}

// loadCluster is a PostgreSQL for the test: a durable one for the whole table.
func loadCluster(t *testing.T) *pgtest.Cluster {
	t.Helper()
	if !whole() {
		return pgtest.Shared(t)
	}
	return durableCluster(t)
}

// durableCluster is a PostgreSQL of the test's own that survives a power failure.
func durableCluster(t *testing.T) *pgtest.Cluster {
	t.Helper()
	cluster, err := pgtest.Start(durable...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}
