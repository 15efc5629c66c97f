package sql_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/sql"
)

// years is what a busy service has after some years.
var years = volume{sessions: 25_000, entries: 1_000_000, arrivals: 500_000, rows: 500_000, charges: 75_000, approvals: 20_000}

// aged opens stores of two ages.
func aged(b *testing.B) map[string]*sql.Store {
	b.Helper()
	stores := map[string]*sql.Store{}
	for name, v := range map[string]volume{"empty": {}, "years": years} {
		path := filepath.Join(b.TempDir(), name+".db")
		if err := open(b, sql.Options{Path: path}).Close(); err != nil {
			b.Fatal(err)
		}
		if v.sessions > 0 {
			age(b, connect(b, path), v)
		}
		stores[name] = open(b, sql.Options{Path: path})
	}
	return stores
}

// processor is the time that this process has used the processors.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkAge runs the steps of a turn, and what an idle service asks each second, on a new database and on one of
// many years, in turn.
func BenchmarkAge(b *testing.B) {
	stores := aged(b)
	took := map[string][]time.Duration{}
	idle := map[string]time.Duration{}
	for n := 0; b.Loop(); n++ {
		for _, name := range []string{"empty", "years"} {
			began := time.Now()
			oneTurn(b, stores[name], n)
			took[name] = append(took[name], time.Since(began))
			used := processor(b)
			look(b, stores[name])
			idle[name] += processor(b) - used
		}
	}
	p50 := func(name string) float64 {
		slices.Sort(took[name])
		return float64(took[name][len(took[name])/2])
	}
	b.ReportMetric(p50("empty")/1e3, "p50-empty-µs")
	b.ReportMetric(p50("years")/p50("empty"), "p50-years/empty")
	b.ReportMetric(float64(idle["empty"])/float64(b.N)/1e3, "idle-empty-µs")
	b.ReportMetric(float64(idle["years"])/float64(b.N)/1e3, "idle-years-µs")
}

// oneTurn is what a message does to the store.
func oneTurn(b *testing.B, store *sql.Store, n int) {
	b.Helper()
	session := bot.SessionKey(fmt.Sprintf("telegram/1/bot/%d/0/%d", 1000+n%20_000, 1000+n%20_000))
	apply := func(change *bot.Change) *bot.Applied {
		applied, err := store.Apply(b.Context(), change)
		if err != nil {
			b.Fatal(err)
		}
		return applied
	}
	seqs := apply(&bot.Change{Arrive: []bot.Arrival{
		{Channel: "telegram", Bot: "1", ID: fmt.Sprint("new", n), Session: session, Raw: make([]byte, 300), At: time.Now()},
	}}).Seqs
	if ready, err := store.Ready(b.Context(), "telegram", "1", time.Now(), 1); err != nil || len(ready) != 1 {
		b.Fatalf("ready %v, %v", ready, err)
	}
	lane, err := store.Lane(b.Context(), session)
	if err != nil {
		b.Fatal(err)
	}
	running, idle := bot.Running, bot.Idle
	place := bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: fmt.Sprint(1000 + n%20_000)}
	apply(&bot.Change{
		Claim:   &bot.Claim{Session: session, Place: place, Fence: lane.Fence, Owner: "o", Now: time.Now(), Until: time.Now().Add(time.Minute)},
		Append:  &bot.Append{Session: session, After: lane.Last, Entries: []journal.Entry{{Turn: "t", Kind: journal.UserEntry, Text: "question"}}},
		Lanes:   []bot.LaneUpdate{{Session: session, State: &running}},
		Charges: []bot.Charge{{Key: fmt.Sprint("user", n), Scope: "user/" + string(session), Unit: "turns", Day: "2026-03-05", N: 1}},
	})
	rows := apply(&bot.Change{
		Lease: &bot.Lease{Session: session, Fence: lane.Fence + 1}, Done: seqs,
		Append: &bot.Append{Session: session, After: lane.Last + 1, Entries: []journal.Entry{{Turn: "t", Kind: journal.AssistantEntry, Text: "answer"}}},
		Lanes:  []bot.LaneUpdate{{Session: session, State: &idle, Release: true}},
		Send:   []bot.Row{{Session: session, Place: place, Purpose: bot.Final, Key: fmt.Sprint("answer", n), Content: bot.Content{Text: "answer"}}},
	}).Rows
	apply(&bot.Change{Rows: []bot.RowUpdate{{ID: rows[0], From: []bot.RowState{bot.Pending}, To: bot.Sending}}})
	apply(&bot.Change{Rows: []bot.RowUpdate{{ID: rows[0], From: []bot.RowState{bot.Sending}, To: bot.Sent, Message: "7"}}})
}

// look asks what the loops of an idle service ask.
func look(b *testing.B, store *sql.Store) {
	b.Helper()
	if _, err := store.Ready(b.Context(), "telegram", "1", time.Now(), 64); err != nil {
		b.Fatal(err)
	}
	if _, err := store.Express(b.Context(), "telegram", "1", 64); err != nil {
		b.Fatal(err)
	}
	if _, err := store.Due(b.Context(), "telegram", "1", time.Now(), 64); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkTurnsGrouped has 64 sessions at once take their turns.
func BenchmarkTurnsGrouped(b *testing.B) {
	var statements atomic.Int64
	store := open(b, sql.Options{Hooks: sql.Hooks{Statement: func(string) { statements.Add(1) }}})
	var n atomic.Int64
	used := processor(b)
	statements.Store(0)
	b.SetParallelism(32) // 64 on 2 processors
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			grouped(b, store, int(n.Add(1)))
		}
	})
	b.ReportMetric(float64(processor(b)-used)/float64(b.N)/1e3, "cpu-µs/op")
	b.ReportMetric(float64(statements.Load())/float64(b.N), "statements/op")
}

// grouped are the Changes of a turn without what is read between them.
func grouped(b *testing.B, store *sql.Store, n int) {
	session := bot.SessionKey(fmt.Sprint("s", n))
	apply := func(change *bot.Change) *bot.Applied {
		applied, err := store.Apply(b.Context(), change)
		if err != nil {
			b.Error(err)
			return &bot.Applied{Rows: []int64{0}}
		}
		return applied
	}
	running, idle := bot.Running, bot.Idle
	place := bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: string(session)}
	seqs := apply(&bot.Change{Arrive: []bot.Arrival{{Channel: "telegram", Bot: "1", ID: string(session), Session: session, Raw: make([]byte, 300)}}}).Seqs
	apply(&bot.Change{
		Claim:   &bot.Claim{Session: session, Place: place, Owner: "o", Now: time.Now(), Until: time.Now().Add(time.Minute)},
		Append:  &bot.Append{Session: session, Entries: []journal.Entry{{Turn: "t", Kind: journal.UserEntry, Text: "question"}}},
		Lanes:   []bot.LaneUpdate{{Session: session, State: &running}},
		Charges: []bot.Charge{{Key: string(session), Scope: "user/" + string(session), Unit: "turns", Day: "2026-03-05", N: 1}},
	})
	rows := apply(&bot.Change{
		Lease: &bot.Lease{Session: session, Fence: 1}, Done: seqs,
		Append: &bot.Append{Session: session, After: 1, Entries: []journal.Entry{{Turn: "t", Kind: journal.AssistantEntry, Text: "answer"}}},
		Lanes:  []bot.LaneUpdate{{Session: session, State: &idle, Release: true}},
		Send:   []bot.Row{{Session: session, Place: place, Purpose: bot.Final, Key: string(session), Content: bot.Content{Text: "answer"}}},
	}).Rows
	apply(&bot.Change{Rows: []bot.RowUpdate{{ID: rows[0], From: []bot.RowState{bot.Pending}, To: bot.Sending}}})
	apply(&bot.Change{Rows: []bot.RowUpdate{{ID: rows[0], From: []bot.RowState{bot.Sending}, To: bot.Sent, Message: "7"}}})
}
