package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/tools/overflow"
)

const day = 24 * time.Hour

// TestSweepForgetsInItsTime: what is swept is what SQLite sweeps, batch by batch.
func TestSweepForgetsInItsTime(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	cluster := pgtest.Shared(t)
	name := cluster.Database(t, "")
	store := open(t, postgres.Options{URL: cluster.URL(name), Now: func() time.Time { return start }})
	const many = 600 // more than one batch
	var change bot.Change
	for i := range many {
		change.Arrive = append(change.Arrive, bot.Arrival{Channel: "telegram", Bot: "1", ID: fmt.Sprint(i), Session: session, Raw: []byte("raw")})
		change.Charges = append(change.Charges, bot.Charge{Key: fmt.Sprint(i), Scope: "user/7", Unit: "turns", Day: "2026-03-01", N: 2})
	}
	for i := range 3 {
		change.Send = append(change.Send, bot.Row{Session: session, Key: fmt.Sprint(i), Content: bot.Content{Text: "hello"}})
	}
	change.Facts = []bot.Fact{{Bucket: "b", Key: "old", Value: "v", Expires: start.Add(day)}, {Bucket: "b", Key: "kept", Value: "v"}}
	change.Ask = []bot.Approval{
		{ID: "denied", Session: session, State: bot.Denied, Created: start, Decided: start},
		{ID: "open", Session: session, Created: start},
		{ID: "granted", Session: session, State: bot.Approved, Scope: bot.Session, Created: start, Decided: start},
	}
	change.Append = &bot.Append{Session: session, Entries: []journal.Entry{{Kind: journal.UserEntry, At: start, Text: "old"}, {Kind: journal.ResetEntry, At: start}}}
	applied, err := store.Apply(t.Context(), &change)
	check(t, err)
	check(t, store.Save(t.Context(), overflow.Item{
		ID: "0f8fad5b-d9cb-469f-a165-708600000001", Session: session, Call: "c", Text: "long", Expires: start.Add(day),
	}))
	_, err = store.Apply(t.Context(), &bot.Change{Done: applied.Seqs, Rows: []bot.RowUpdate{
		{ID: applied.Rows[0], From: []bot.RowState{bot.Pending}, To: bot.Sent}, {ID: applied.Rows[1], From: []bot.RowState{bot.Pending}, To: bot.Dead},
	}})
	check(t, err)
	keep := keeping.Retention{Journal: 100 * day, Outbox: 90 * day}
	for _, step := range []struct {
		after time.Duration
		want  keeping.Swept
	}{
		{day - 1, keeping.Swept{}},
		{day, keeping.Swept{Facts: 1, Outputs: 1}},
		{4 * day, keeping.Swept{Charges: many}},
		{8 * day, keeping.Swept{Bodies: many}},
		{16 * day, keeping.Swept{Arrivals: many}},
		{30 * day, keeping.Swept{Contents: 2}},
		{90 * day, keeping.Swept{Rows: 2}},
		{100 * day, keeping.Swept{Entries: 1, Asked: 1}},
		{300 * day, keeping.Swept{}},
	} {
		swept, err := store.Sweep(t.Context(), start.Add(step.after), keep)
		if err != nil || swept != step.want {
			t.Errorf("after %v: %+v (%v), want %+v", step.after, swept, err, step.want)
		}
		used, err := store.Used(t.Context(), "user/7", "turns", "2026-03-01")
		if err != nil || used != 2*many {
			t.Errorf("after %v: %d used (%v)", step.after, used, err)
		}
	}
	check(t, cluster.Exec(t.Context(), name, `DO $$ BEGIN IF EXISTS (SELECT 1 FROM applied) THEN RAISE 'numbers of changes are left'; END IF; END $$`))
}

// TestSweepDeletesEmptyConversations: one in which nothing was said since it began anew, unless something refers to it.
func TestSweepDeletesEmptyConversations(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	cluster := pgtest.Shared(t)
	store := open(t, postgres.Options{URL: cluster.URL(cluster.Database(t, "")), Now: func() time.Time { return start }})
	anew := journal.Entry{Kind: journal.SummaryEntry, At: start}
	said := journal.Entry{Kind: journal.UserEntry, At: start, Text: "hello"}
	for name, change := range map[bot.SessionKey]*bot.Change{
		"empty":   {Append: &bot.Append{Entries: []journal.Entry{anew}}},
		"said":    {Append: &bot.Append{Entries: []journal.Entry{anew, said}}},
		"summary": {Append: &bot.Append{Entries: []journal.Entry{{Kind: journal.SummaryEntry, At: start, Text: "was", State: &journal.ConversationState{}}}}},
		"row":     {Append: &bot.Append{Entries: []journal.Entry{anew}}, Send: []bot.Row{{Session: "row", Place: place}}},
		"arrival": {
			Append: &bot.Append{Entries: []journal.Entry{anew}},
			Arrive: []bot.Arrival{{Channel: "telegram", Bot: "1", ID: "1", Session: "arrival"}},
		},
		"held": {Append: &bot.Append{Entries: []journal.Entry{anew}}, Claim: &bot.Claim{Session: "held", Owner: "me", Until: start.Add(day)}},
	} {
		change.Append.Session = name
		_, err := store.Apply(t.Context(), change)
		check(t, err)
	}
	keep := keeping.Retention{Journal: 100 * day}
	for _, step := range []struct {
		after time.Duration
		want  int64
	}{{100*day - 1, 0}, {100 * day, 1}, {101 * day, 0}} {
		swept, err := store.Sweep(t.Context(), start.Add(step.after), keep)
		if err != nil || swept.Lanes != step.want {
			t.Errorf("after %v: %+v (%v), want %d lanes", step.after, swept, err, step.want)
		}
	}
	_, err := store.Apply(t.Context(), &bot.Change{Append: &bot.Append{Session: "empty", Entries: []journal.Entry{said}}})
	check(t, err) // what is remembered of the lane is out of date
	entries, err := store.Journal(t.Context(), "empty", 0)
	check(t, err)
	if len(entries) != 1 || entries[0].N != 1 {
		t.Errorf("the conversation began again with %+v", entries)
	}
}
