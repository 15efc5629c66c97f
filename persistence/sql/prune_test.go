package sql_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/sql"
)

// old is a store in which time has stood still since the first of March.
type old struct {
	*testing.T
	store *sql.Store
	start time.Time
}

func newOld(t *testing.T) *old {
	t.Helper()
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	return &old{T: t, store: open(t, sql.Options{Now: func() time.Time { return start }}), start: start}
}

func (o *old) apply(change *bot.Change) {
	o.Helper()
	_, err := o.store.Apply(o.Context(), change)
	check(o.T, err)
}

func (o *old) sweep(after time.Duration, keep sql.Retention) sql.Swept {
	o.Helper()
	swept, err := o.store.Sweep(o.Context(), o.start.Add(after), keep)
	check(o.T, err)
	return swept
}

// asked says which of some questions are there.
func (o *old) asked(ids ...string) (there []string) {
	o.Helper()
	for _, id := range ids {
		_, err := o.store.Approval(o.Context(), id)
		if err == nil {
			there = append(there, id)
		} else if !errors.Is(err, bot.ErrNotFound) {
			o.Fatal(err)
		}
	}
	return there
}

func TestRetentionDeletesDecidedQuestions(t *testing.T) {
	t.Parallel()
	o := newOld(t)
	ids := []string{"open", "denied", "going on", "granted", "granted before", "once", "late"}
	for _, id := range ids {
		o.apply(&bot.Change{Ask: []bot.Approval{{ID: id, Session: "s", Turn: "turn of " + id, Created: o.start}}})
	}
	decide := func(id string, state bot.ApprovalState, scope string, after time.Duration) {
		o.apply(&bot.Change{Decide: []bot.Decision{{ID: id, State: state, Scope: scope, By: "u", At: o.start.Add(after)}}})
	}
	decide("denied", bot.Denied, "", 0)
	decide("going on", bot.Approved, bot.Once, 0)
	decide("once", bot.Approved, bot.Once, 0)
	decide("granted before", bot.Approved, bot.Session, time.Minute)
	decide("granted", bot.Approved, bot.Session, time.Hour)
	decide("late", bot.Denied, "", 10*day)
	turn, running := "turn of going on", bot.Running
	o.apply(&bot.Change{
		Lanes: []bot.LaneUpdate{{Session: "s", Turn: &turn, State: &running}},
		Facts: []bot.Fact{{Bucket: bot.ResetBucket, Key: "s", Value: o.start.Add(30 * time.Minute).Format(time.RFC3339Nano)}},
	})
	keep := sql.Retention{Journal: 60 * day}
	wants := func(after time.Duration, deleted int64, want ...string) {
		t.Helper()
		if swept := o.sweep(after, keep); swept.Asked != deleted {
			t.Errorf("after %v: %d questions were deleted, want %d", after, swept.Asked, deleted)
		}
		if got := o.asked(ids...); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after %v there are %q, want %q", after, got, want)
		}
	}
	wants(60*day-1, 0, ids...)
	wants(61*day, 3, "open", "going on", "granted", "late")
	wants(70*day, 1, "open", "going on", "granted")
	none, idle := "", bot.Idle
	o.apply(&bot.Change{Lanes: []bot.LaneUpdate{{Session: "s", Turn: &none, State: &idle}}})
	wants(70*day, 1, "open", "granted")
	o.apply(&bot.Change{Facts: []bot.Fact{{Bucket: bot.ResetBucket, Key: "s", Value: o.start.Add(2 * time.Hour).Format(time.RFC3339Nano)}}})
	wants(70*day, 1, "open")
	keep = sql.Retention{}
	decide("open", bot.Denied, "", 0)
	wants(900*day, 0, "open")
}

func TestRetentionGoesThroughManyQuestions(t *testing.T) {
	t.Parallel()
	o := newOld(t)
	var change bot.Change
	const many = 1200 // more than two batches; every second one counts for ever
	for i := range many {
		id := fmt.Sprint(i)
		change.Ask = append(change.Ask, bot.Approval{ID: id, Session: "s", Created: o.start})
		scope := []string{bot.Once, bot.Session}[i%2]
		change.Decide = append(change.Decide, bot.Decision{ID: id, State: bot.Approved, Scope: scope, At: o.start})
	}
	o.apply(&change)
	if swept := o.sweep(61*day, sql.Retention{Journal: 60 * day}); swept.Asked != many/2 {
		t.Errorf("%d questions were deleted, want %d", swept.Asked, many/2)
	}
}

func TestRetentionDeletesEmptyLanes(t *testing.T) {
	t.Parallel()
	o := newOld(t)
	reset := []journal.Entry{{Kind: journal.ResetEntry, At: o.start}}
	said := journal.Entry{Turn: "t", Kind: journal.UserEntry, At: o.start, Text: "hello"}
	place := bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: "7"}
	sessions := []bot.SessionKey{"empty", "goes on", "held", "busy", "waited for", "asked", "sent"}
	for _, session := range sessions {
		o.apply(&bot.Change{
			Claim:  &bot.Claim{Session: session, Place: place, Owner: "o", Now: o.start, Until: o.start.Add(time.Minute)},
			Append: &bot.Append{Session: session, Entries: reset},
			Lanes:  []bot.LaneUpdate{{Session: session, Release: session != "held"}},
		})
	}
	o.apply(&bot.Change{
		Claim:  &bot.Claim{Session: "summed up", Place: place, Owner: "o", Now: o.start, Until: o.start.Add(time.Minute)},
		Append: &bot.Append{Session: "summed up", Entries: []journal.Entry{{Kind: journal.SummaryEntry, At: o.start, Text: "what was said"}}},
		Lanes:  []bot.LaneUpdate{{Session: "summed up", Release: true}},
	})
	turn, running := "t", bot.Running
	o.apply(&bot.Change{
		Append: &bot.Append{Session: "goes on", After: 1, Entries: []journal.Entry{said}},
		Lanes:  []bot.LaneUpdate{{Session: "busy", Turn: &turn, State: &running}},
		Arrive: []bot.Arrival{{Channel: "telegram", Bot: "1", ID: "1", Session: "waited for"}},
		Ask:    []bot.Approval{{ID: "q", Session: "asked", Created: o.start}},
		Send:   []bot.Row{{Session: "sent", State: bot.Sent}},
	})
	keep := sql.Retention{Journal: 60 * day, Outbox: 90 * day}
	wants := func(after time.Duration, want ...bot.SessionKey) {
		t.Helper()
		o.sweep(after, keep)
		lanes, err := o.store.Lanes(t.Context(), "telegram", "1", 0)
		check(t, err)
		var got []bot.SessionKey
		for _, lane := range lanes {
			got = append(got, lane.Session)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after %v there are %q, want %q", after, got, want)
		}
	}
	wants(60*day-1, "asked", "busy", "empty", "goes on", "held", "sent", "summed up", "waited for")
	wants(60*day, "asked", "busy", "goes on", "held", "sent", "summed up", "waited for")
	wants(90*day, "asked", "busy", "goes on", "held", "summed up", "waited for")
	o.apply(&bot.Change{Decide: []bot.Decision{{ID: "q", State: bot.Denied, At: o.start}}})
	wants(91*day, "busy", "goes on", "held", "summed up", "waited for")
	_, err := o.store.Apply(t.Context(), &bot.Change{Lease: &bot.Lease{Session: "empty", Fence: 1}})
	if !errors.Is(err, bot.ErrLost) {
		t.Errorf("a lease of a lane that is gone: %v, want %v", err, bot.ErrLost)
	}
	o.apply(&bot.Change{
		Claim:  &bot.Claim{Session: "empty", Place: place, Owner: "o", Now: o.start, Until: o.start.Add(time.Minute)},
		Append: &bot.Append{Session: "empty", Entries: []journal.Entry{said}},
	})
}

func TestRetentionDeletesSumsOfCharges(t *testing.T) {
	t.Parallel()
	o := newOld(t)
	o.apply(&bot.Change{Charges: []bot.Charge{
		{Key: "a", Scope: "user/u", Unit: "turns", Day: "2026-01-01", N: 1}, {Key: "b", Scope: "user/u", Unit: "turns", Day: "2026-02-01", N: 2},
	}})
	used := func(after time.Duration, want int64) {
		t.Helper()
		o.sweep(after, sql.Retention{})
		charges, err := o.store.Charges(t.Context(), "")
		check(t, err)
		var sum int64
		for _, c := range charges {
			sum += c.N
		}
		if sum != want {
			t.Errorf("after %v charges of %d are known, want %d", after, sum, want)
		}
	}
	used(100*day, 3)
	used(time.Date(2027, 2, 5, 0, 0, 0, 0, time.UTC).Sub(o.start), 3) // 400 days after the first of January
	used(time.Date(2027, 2, 6, 0, 0, 0, 0, time.UTC).Sub(o.start), 2)
}
