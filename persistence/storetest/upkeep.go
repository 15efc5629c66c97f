package storetest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/tools/overflow"
)

// Kept has the operations on a database as a whole.
type Kept interface {
	bot.Store
	overflow.Store
	blob.Store
	Recover(ctx context.Context, owner string) (freed int64, err error)
	Sweep(ctx context.Context, now time.Time, keep keeping.Retention) (keeping.Swept, error)
}

// Upkeep does what a service does for its database over the years: it frees what a dead process held, moves a group
// with all its data, and deletes old data. It fails if there was nothing to delete.
func Upkeep(t *testing.T, store Kept) {
	t.Helper()
	h := &harness{T: t, Store: store}
	h.furnish()
	put := func(session, output, file string) {
		h.ok(store.Save(t.Context(), overflow.Item{
			ID:      "0f8fad5b-d9cb-469f-a165-70860000000" + output,
			Session: session,
			Call:    "c",
			Text:    "long",
			Expires: start,
		}))
		_, err := store.Put(t.Context(), session, strings.NewReader(file))
		h.ok(err)
	}
	put(session, "1", "of both")
	put(moved, "2", "of both")
	put(session, "3", "of one")
	h.say(another, "", "one", "two", "three")
	decided := bot.Decision{ID: "later", State: bot.Denied, By: "u", At: start}
	h.do(&bot.Change{Ask: []bot.Approval{{ID: "later", Session: another, Created: start}}})
	rows := h.do(&bot.Change{
		Decide: []bot.Decision{decided},
		Send:   []bot.Row{{Session: another, Place: h.place(), Purpose: bot.Final, Key: "late"}},
	}).Rows
	h.do(&bot.Change{
		Rows: []bot.RowUpdate{{ID: rows[0], From: []bot.RowState{bot.Pending}, To: bot.Sent, Message: "9"}},
	})
	seqs := h.arrive(another, "8", "9")
	h.do(&bot.Change{
		Done:   seqs[:1],
		Arrive: []bot.Arrival{{Channel: channel, Bot: botID, ID: "10", Session: session, Express: true, At: start}},
	})
	h.do(&bot.Change{
		Append: &bot.Append{
			Session: another,
			After:   3,
			Entries: []journal.Entry{{Kind: journal.ResetEntry, At: start}},
		},
		Facts: []bot.Fact{{Bucket: bot.ResetBucket, Key: another, Value: start.Format(time.RFC3339Nano)}},
	})
	keep := keeping.Retention{Journal: time.Hour, Outbox: time.Hour, Blobs: time.Hour}
	sweep := func(years int) keeping.Swept {
		swept, err := store.Sweep(t.Context(), time.Now().AddDate(years, 0, 0), keep)
		h.ok(err)
		return swept
	}
	h.locksOfTheDeadAreFree(store)
	first := sweep(0) // charges of past days become sums
	h.do(&bot.Change{Move: groupMove})
	_, err := h.Tickets(t.Context(), moved)
	h.ok(err)
	_, err = h.Busy(t.Context(), moved)
	h.ok(err)
	swept := sweep(2)
	if first.Charges == 0 || swept.Outputs+first.Outputs == 0 || swept.Blobs == 0 ||
		swept.Asked+first.Asked == 0 || swept.Contents+first.Contents == 0 {
		t.Errorf("swept %+v, then %+v", first, swept)
	}
	sweep(3)
}

// locksOfTheDeadAreFree: who opens a store finds no lock of a process that is gone, and keeps its own.
func (h *harness) locksOfTheDeadAreFree(store Kept) {
	h.Helper()
	lock := func(key, owner string) bot.Fact { return bot.Fact{Bucket: bot.LeaderBucket, Key: key, Value: owner} }
	h.do(&bot.Change{
		Facts: []bot.Fact{lock("polls", "alive"), lock("erases", "dead"), {Bucket: "leaders", Key: "x", Value: "dead"}},
	})
	_, err := store.Recover(h.Context(), "alive")
	h.ok(err)
	locks, err := store.FactsOf(h.Context(), bot.LeaderBucket, "", time.Now())
	if err != nil || !slices.Equal(locks, []bot.Fact{lock("polls", "alive")}) {
		h.Errorf("locks after a start: %v, %v; want the own one only", locks, err)
	}
	if other, err := store.Fact(h.Context(), "leaders", "x", time.Now()); err != nil || other != "dead" {
		h.Errorf("another bucket lost %q, %v", other, err)
	}
}
