package sql_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/sql"
)

const day = 24 * time.Hour

func TestSweepForgetsInItsTime(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	store := open(t, sql.Options{Now: func() time.Time { return start }})
	var change bot.Change
	const many = 600 // more than one batch
	for i := range many {
		change.Arrive = append(change.Arrive, bot.Arrival{Channel: "telegram", Bot: "1", ID: fmt.Sprint(i), Session: "s", Raw: []byte("raw")})
	}
	change.Arrive = append(change.Arrive, bot.Arrival{Channel: "telegram", Bot: "1", ID: "waits", Session: "s", Raw: []byte("raw")})
	for i := range 3 {
		change.Send = append(change.Send, bot.Row{Session: "s", Key: fmt.Sprint(i), Content: bot.Content{Text: "hello"}})
	}
	change.Facts = []bot.Fact{{Bucket: "b", Key: "old", Value: "v", Expires: start.Add(day)}, {Bucket: "b", Key: "kept", Value: "v"}}
	applied, err := store.Apply(t.Context(), &change)
	check(t, err)
	_, err = store.Apply(t.Context(), &bot.Change{
		Done: applied.Seqs[:many-1], Dead: []bot.DeadLetter{{Seq: applied.Seqs[many-1]}},
		Rows: []bot.RowUpdate{
			{ID: applied.Rows[0], From: []bot.RowState{bot.Pending}, To: bot.Sent}, {ID: applied.Rows[1], From: []bot.RowState{bot.Pending}, To: bot.Dead},
		},
	})
	check(t, err)
	for _, step := range []struct {
		after time.Duration
		want  sql.Swept
	}{
		{8*day - 1, sql.Swept{Facts: 1}},
		{8 * day, sql.Swept{Bodies: many}},
		{16*day - 1, sql.Swept{}},
		{16 * day, sql.Swept{Arrivals: many}},
		{30 * day, sql.Swept{Contents: 2}},
		{300 * day, sql.Swept{}},
	} {
		swept, err := store.Sweep(t.Context(), start.Add(step.after), sql.Retention{})
		if err != nil || swept != step.want {
			t.Errorf("after %v: %+v (%v), want %+v", step.after, swept, err, step.want)
		}
		doubled, err := store.Apply(t.Context(), &bot.Change{Send: []bot.Row{{Key: "0"}}})
		if err != nil || !doubled.Skipped[0] {
			t.Errorf("after %v: the key of a sent row is forgotten (%v)", step.after, err)
		}
		if step.after < 16*day {
			again, err := store.Apply(t.Context(), &bot.Change{Arrive: change.Arrive[:1]})
			if err != nil || again.Seqs[0] != 0 {
				t.Errorf("after %v: a doubled arrival was taken (%v)", step.after, err)
			}
		}
	}
	rows, err := store.Rows(t.Context(), "s", 0)
	check(t, err)
	if rows[0].Content.Text != "" || rows[1].Content.Text != "" || rows[2].Content.Text != "hello" {
		t.Errorf("contents after the sweep: %+v", rows)
	}
	queue, err := store.Next(t.Context(), "s", 0)
	check(t, err)
	if len(queue) != 1 || string(queue[0].Raw) != "raw" || !has(t, store, "kept") {
		t.Errorf("what was needed is gone: %+v", queue)
	}
}

func BenchmarkApplySerial(b *testing.B) {
	store := open(b, sql.Options{})
	for n := 0; b.Loop(); n++ {
		if _, err := store.Apply(b.Context(), fact(fmt.Sprint(n))); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApplyGrouped(b *testing.B) {
	store := open(b, sql.Options{})
	var n atomic.Int64
	b.SetParallelism(32) // 64 writers on 2 processors
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := store.Apply(b.Context(), fact(fmt.Sprint(n.Add(1)))); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func TestChargesBecomeOneSumADay(t *testing.T) {
	t.Parallel()
	store := open(t, sql.Options{})
	chat := "chat/telegram/1/bot/-100"
	charge := func(key, scope, day string, n int64) bot.Charge {
		return bot.Charge{Key: key, Scope: scope, Unit: "turns", Day: day, N: n}
	}
	var change bot.Change
	const many = 600 // more than one batch
	for i := range many {
		change.Charges = append(change.Charges, charge(fmt.Sprint("a", i), "user/telegram:42", "2026-03-01", 1))
	}
	change.Charges = append(change.Charges, charge("c", chat, "2026-03-01", 2), charge("d", chat, "2026-03-02", 3), charge("e", "chat/telegram/1/bot/-200", "2026-03-01", 4))
	apply := func(change *bot.Change) {
		t.Helper()
		_, err := store.Apply(t.Context(), change)
		check(t, err)
	}
	used := func(scope, day string, want int64) {
		t.Helper()
		if got, err := store.Used(t.Context(), scope, "turns", day); err != nil || got != want {
			t.Errorf("%s used %d on %s (%v), want %d", scope, got, day, err, want)
		}
	}
	sweep := func(day int, want int64) {
		t.Helper()
		swept, err := store.Sweep(t.Context(), time.Date(2026, 3, day, 23, 59, 0, 0, time.UTC), sql.Retention{})
		if err != nil || swept.Charges != want {
			t.Errorf("on March %d: %d charges were added up (%v), want %d", day, swept.Charges, err, want)
		}
	}
	apply(&change)
	sweep(4, 0)
	apply(&change) // the keys are known for three days
	used("user/telegram:42", "2026-03-01", many)
	sweep(5, many+2)
	apply(&bot.Change{Charges: change.Charges[many+1 : many+2]})
	used("user/telegram:42", "2026-03-01", many)
	used(chat, "2026-03-01", 2)
	used(chat, "2026-03-02", 3)
	charges, err := store.Charges(t.Context(), "2026-03-01")
	check(t, err)
	want := []bot.Charge{
		charge("", chat, "2026-03-01", 2), charge("", "chat/telegram/1/bot/-200", "2026-03-01", 4), charge("", "user/telegram:42", "2026-03-01", many),
		charge("d", chat, "2026-03-02", 3),
	}
	if diff := cmp.Diff(want, charges); diff != "" {
		t.Errorf("charges (-want +got):\n%s", diff)
	}
	apply(&bot.Change{Move: &bot.Move{Channel: "telegram", Bot: "1", From: "-100", To: "-200"}})
	used(chat, "2026-03-01", 0)
	used("chat/telegram/1/bot/-200", "2026-03-01", 6)
	used("chat/telegram/1/bot/-200", "2026-03-02", 3)
	sweep(9, 1)
	used("chat/telegram/1/bot/-200", "2026-03-02", 3)
}

func TestRetentionDeletesWhatNobodyNeeds(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	store := open(t, sql.Options{Now: func() time.Time { return start }})
	apply := func(change *bot.Change) *bot.Applied {
		t.Helper()
		applied, err := store.Apply(t.Context(), change)
		check(t, err)
		return applied
	}
	said := func(text string) journal.Entry {
		return journal.Entry{Turn: "t", Kind: journal.UserEntry, At: start, Text: text}
	}
	reset := func(at time.Time) journal.Entry { return journal.Entry{Kind: journal.ResetEntry, At: at} }
	summary := func(at time.Time) journal.Entry {
		return journal.Entry{Kind: journal.SummaryEntry, At: at, Text: "was"}
	}
	var long []journal.Entry
	for range 700 { // more than one batch
		long = append(long, said("old"))
	}
	later := start.Add(100 * day)
	for session, entries := range map[bot.SessionKey][]journal.Entry{
		"a": append(slices.Clone(long), reset(start), said("kept"), said("kept")),
		"b": {said("old"), summary(start), said("put aside later"), reset(later), said("kept")},
		"c": {said("a conversation that goes on"), said("and on")},
		"d": {reset(start), said("kept")},
		"e": {said("old"), reset(start)},
	} {
		apply(&bot.Change{Append: &bot.Append{Session: session, Entries: entries}})
	}
	pending := []bot.RowState{bot.Pending}
	rows := apply(&bot.Change{
		Send: []bot.Row{
			{Session: "s", Key: "sent"}, {Session: "s", Key: "dead"}, {Session: "s", Key: "waits"}, {Session: "s", Key: "card"}, {Session: "s", Key: "edited"},
		},
		Ask: []bot.Approval{{ID: "q", Session: "s"}}, Cards: []bot.Card{{Approval: "q", Send: 3}},
	}).Rows
	apply(&bot.Change{
		Rows: []bot.RowUpdate{
			{ID: rows[0], From: pending, To: bot.Sent},
			{ID: rows[1], From: pending, To: bot.Dead},
			{ID: rows[3], From: pending, To: bot.Sent, Message: "7"},
			{ID: rows[4], From: pending, To: bot.Sent, Message: "8"},
		},
		Send: []bot.Row{{Session: "s", Key: "edit", EditRow: rows[4]}},
	})
	sweep := func(after time.Duration, rows, entries int64) {
		t.Helper()
		swept, err := store.Sweep(t.Context(), start.Add(after), sql.Retention{Journal: 60 * day, Outbox: 90 * day})
		if err != nil || swept.Rows != rows || swept.Entries != entries {
			t.Errorf("after %v: %+v (%v), want %d rows and %d entries", after, swept, err, rows, entries)
		}
	}
	sweep(60*day-1, 0, 0)
	sweep(60*day, 0, 702)
	sweep(90*day-1, 0, 0)
	sweep(90*day, 2, 0)
	apply(&bot.Change{Decide: []bot.Decision{{ID: "q", State: bot.Denied}}})
	sweep(91*day, 1, 0)
	sweep(161*day, 0, 2)
	sweep(900*day, 0, 0)
	for session, want := range map[bot.SessionKey]int{"a": 3, "b": 2, "c": 2, "d": 2, "e": 0} {
		entries, err := store.Journal(t.Context(), session, 0)
		if err != nil || len(entries) != want {
			t.Errorf("%s: %d entries (%v), want %d", session, len(entries), err, want)
		}
	}
	lane, err := store.Lane(t.Context(), "e")
	check(t, err)
	apply(&bot.Change{Append: &bot.Append{Session: "e", After: lane.Last, Entries: []journal.Entry{said("goes on")}}})
	left, err := store.Rows(t.Context(), "s", 0)
	if err != nil || len(left) != 3 || left[0].Key != "waits" || left[1].Key != "edited" || left[2].Key != "edit" {
		t.Errorf("rows %+v, %v", left, err)
	}
}
