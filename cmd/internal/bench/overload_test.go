//go:build unix

package bench_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// overloadVariable requests the measurement with as many people as the machine can serve, and twice as many.
const overloadVariable = "ZEPH_OVERLOAD"

// overloadScale is how people talk who overload a service, with how many of them it is found out how many turns the
// machine takes, and how long each load is measured.
type overloadScale struct {
	flood habit
	d     time.Duration
}

// overload is one deployment under the load that it can take, and under twice that.
type overload struct {
	setup             setup
	flood, full, over line
	requests, written int     // requests to the model and messages of all three
	stored            []int64 // rows of the inbox, and of the journal; nil with SQLite
}

// measureOverload finds out how many turns a second a deployment takes, and measures it with nine tenths of that and with twice as much.
func measureOverload(ctx context.Context, tb testing.TB, path string, s setup, scale overloadScale, cluster *pgtest.Cluster) (o overload, err error) {
	tb.Helper()
	w := newWorld(tb, scale.flood.chats)
	var now listeners
	w.watch = now.call
	r, err := newRig(ctx, tb, path, s, w, mirrorOf(tb, scale.flood.think, now.asked), cluster)
	if err != nil {
		return o, err
	}
	o.setup = s
	under := func(chats int) (line, error) {
		h := scale.flood
		h.chats = min(chats, h.chats)
		t := newTalks(w, h)
		now.hear(t)
		l, err := loadLine(ctx, r, t, scale.d)
		o.requests, o.written = o.requests+t.requests, o.written+t.written
		return l, err
	}
	if o.flood, err = under(scale.flood.chats); err != nil {
		return o, fmt.Errorf("flood: %w", err)
	}
	round := scale.flood.think + scale.flood.pause
	chats := max(1, int(0.9*o.flood.rate()*round.Seconds()))
	if o.full, err = under(chats); err != nil {
		return o, fmt.Errorf("full load: %w", err)
	}
	if o.over, err = under(2 * chats); err != nil {
		return o, fmt.Errorf("twice the load: %w", err)
	}
	if err := r.end(ctx); err != nil {
		return o, err
	}
	if r.cluster != nil {
		for _, table := range []string{"inbox", "journal"} {
			n, err := r.cluster.Numbers(ctx, r.database, "SELECT count(*) FROM "+table)
			if err != nil {
				return o, err
			}
			o.stored = append(o.stored, n...)
		}
	}
	return o, nil
}

// rate is how many turns a second were answered.
func (l line) rate() float64 { return float64(l.heard.answers) / l.took.Seconds() }

// slower is how many times as long a turn takes that runs, at its 99th percentile, as under full load.
func (o overload) slower() float64 {
	return quantile(o.over.heard.ran, 0.99).Seconds() / quantile(o.full.heard.ran, 0.99).Seconds()
}

const overloadHead = `| engine, intake | processes | load | active chats | turns/s | a turn that runs, p50 / p99 | … of the p99 at full load | update → first sign, p50 / p99 | update → answer, p50 / p99 | requests to the model a turn |
|---|---|---|---|---|---|---|---|---|---|`

// String returns the lines of the table in Markdown.
func (o overload) String() string {
	both := func(list []time.Duration) string {
		if len(list) == 0 {
			return "–"
		}
		return fmt.Sprintf("%.0f / %.0f ms", millis(quantile(list, 0.5)), millis(quantile(list, 0.99)))
	}
	var lines []string
	for _, l := range []struct {
		name string
		line
	}{{"full", o.full}, {"twice", o.over}, {"flood", o.flood}} {
		h := l.heard
		cells := []string{
			o.setup.engine + ", " + o.setup.intake(), fmt.Sprint(o.setup.processes), l.name, fmt.Sprint(l.habit.chats), fmt.Sprintf("%.0f", l.rate()), both(h.ran),
			fmt.Sprintf("× %.2f", quantile(h.ran, 0.99).Seconds()/quantile(o.full.heard.ran, 0.99).Seconds()), both(h.shown), both(h.answered), fmt.Sprintf("%.2f", float64(o.requests)/float64(o.written)),
		}
		lines = append(lines, "| "+strings.Join(cells, " | ")+" |")
	}
	return strings.Join(lines, "\n")
}

// TestOverload measures what becomes of a service that gets twice the load that it can take: with few people, so that
// the measurement keeps working, and in earnest with ZEPH_OVERLOAD=full (.ci/run overload), where it also judges: turns
// that run take at most twice as long at their 99th percentile, nothing is lost and nothing is stored twice.
func TestOverload(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("processor time is read from /proc, which this system does not have")
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	earnest := os.Getenv(overloadVariable) == "full"
	setups, scale := []setup{{sqlite, 1, false}, {postgres, 2, true}}, overloadScale{habit{8, 10 * time.Millisecond, 40 * time.Millisecond}, 200 * time.Millisecond}
	cluster := pgtest.Shared(t)
	if earnest {
		path = program(t)
		setups, scale = []setup{{sqlite, 1, false}, {postgres, 1, true}, {postgres, 2, true}}, overloadScale{habit{2500, 200 * time.Millisecond, 2 * time.Second}, 10 * time.Second}
		cluster = durableCluster(t)
	}
	var tables []string
	for _, s := range setups {
		t.Run(fmt.Sprintf("%s-%s-%d", s.engine, s.intake(), s.processes), func(t *testing.T) {
			o, err := measureOverload(t.Context(), t, path, s, scale, cluster)
			if err != nil {
				t.Fatal(err)
			}
			tables = append(tables, o.String())
			o.check(t, earnest)
		})
	}
	if earnest {
		_, _ = fmt.Fprintf(os.Stdout, "%s\n%s\n", overloadHead, strings.Join(tables, "\n"))
	}
}

// check judges a measurement. That every message was answered once, and with its own answer, was seen already.
func (o overload) check(t *testing.T, earnest bool) {
	t.Helper()
	t.Log("\n" + o.String())
	if o.requests != o.written {
		t.Errorf("%d messages, and %d requests to the model", o.written, o.requests)
	}
	if o.stored != nil && (o.stored[0] != int64(o.written) || o.stored[1] != 2*int64(o.written)) {
		t.Errorf("%d messages are %d rows of the inbox and %d of the journal", o.written, o.stored[0], o.stored[1])
	}
	if slower := o.slower(); earnest && slower > 2 {
		t.Errorf("under twice the load a turn that runs takes %.2f times as long at its 99th percentile, more than twice", slower)
	}
}
