// Package storetest is the suite that every bot.Store must pass: the effect of each part of a Change, the result of
// each Reader, that a Change is atomic, and that two stores behave alike under random Changes. It also contains the
// suites of other stores, such as Overflow for overflow.Store.
package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// The chat of the suite, and a second session in it.
const (
	channel = "telegram"
	botID   = "1"
	session = "telegram/1/bot/-100/0/42"
	another = "telegram/1/bot/-100/0/43"
	moved   = "telegram/1/bot/-200/0/42"
	owner   = "worker"
)

// An expiry that no clock of a store reaches, and one that has passed for every clock.
var (
	farFuture = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	longAgo   = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	start     = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
)

// Run runs the suite. open returns an empty store that lives as long as its test; it is called once for each behaviour.
func Run(t *testing.T, open func(t *testing.T) bot.Store) {
	t.Helper()
	for _, group := range []map[string]func(*harness){
		arrivalTests(), laneTests(), readyTests(), journalTests(),
		approvalTests(), outboxTests(), editTests(), factTests(), moveTests(),
		atomicTests(), concurrencyTests(), inspectTests(), ledgerTests(),
	} {
		for name, test := range group {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(&harness{T: t, Store: open(t)})
			})
		}
	}
}

// harness is one test with its store.
type harness struct {
	*testing.T
	bot.Store
}

func (h *harness) place() bot.Place {
	return bot.Place{Channel: channel, Bot: botID, Surface: "bot", Chat: "-100", Group: true}
}

// do applies a Change that must succeed.
func (h *harness) do(change *bot.Change) *bot.Applied {
	h.Helper()
	applied, err := h.Apply(h.Context(), change)
	if err != nil {
		h.Fatalf("apply: %v", err)
	}
	return applied
}

// refused applies a Change that must fail with want.
func (h *harness) refused(change *bot.Change, want error) {
	h.Helper()
	applied, err := h.Apply(h.Context(), change)
	if !errors.Is(err, want) {
		h.Fatalf("apply: got error %v, want %v", err, want)
	}
	if applied != nil {
		h.Errorf("a refused change returned %+v", applied)
	}
}

// arrive stores arrivals of a session and returns their numbers.
func (h *harness) arrive(session bot.SessionKey, ids ...string) []int64 {
	h.Helper()
	var change bot.Change
	for _, id := range ids {
		change.Arrive = append(change.Arrive, bot.Arrival{
			Channel: channel,
			Bot:     botID,
			ID:      id,
			Source:  bot.FromTelegram,
			Session: session,
			Raw:     []byte("raw " + id),
			At:      start,
		})
	}
	return h.do(&change).Seqs
}

// claim claims a lane until one minute after start.
func (h *harness) claim(session bot.SessionKey, fence int64) int64 {
	h.Helper()
	return h.do(&bot.Change{Claim: &bot.Claim{
		Session: session, Place: h.place(), Fence: fence, Owner: owner, Now: start, Until: start.Add(time.Minute),
	}}).Fence
}

func (h *harness) lane(session bot.SessionKey) bot.Lane {
	h.Helper()
	lane, err := h.Lane(h.Context(), session)
	h.ok(err)
	return lane
}

func (h *harness) row(id int64) bot.Row {
	h.Helper()
	row, err := h.Row(h.Context(), id)
	h.ok(err)
	return row
}

func (h *harness) approval(id string) bot.Approval {
	h.Helper()
	a, err := h.Approval(h.Context(), id)
	h.ok(err)
	return a
}

func (h *harness) journal(session bot.SessionKey) []journal.Entry {
	h.Helper()
	entries, err := h.Journal(h.Context(), session, 0)
	h.ok(err)
	return entries
}

func (h *harness) ready(now time.Time) []bot.SessionKey {
	h.Helper()
	sessions, err := h.Ready(h.Context(), channel, botID, now, 10)
	h.ok(err)
	return sessions
}

func (h *harness) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// same compares. Empty lists are equal to nil.
func same[T any](h *harness, what string, got, want T) {
	h.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		h.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func ids(arrivals []bot.Arrival) []string {
	var list []string
	for _, a := range arrivals {
		list = append(list, a.ID)
	}
	return list
}

func rowIDs(rows []bot.Row) []int64 {
	var list []int64
	for _, row := range rows {
		list = append(list, row.ID)
	}
	return list
}

func texts(entries []journal.Entry) []string {
	var list []string
	for _, entry := range entries {
		list = append(list, entry.Text)
	}
	return list
}

func said(turn, text string) journal.Entry {
	return journal.Entry{Turn: turn, Kind: journal.UserEntry, At: start, Text: text}
}
