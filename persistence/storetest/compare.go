package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// rounds limits Compare: a store on a disk is slow under the race detector.
const rounds = 30

// Compare applies the same random Changes to two empty stores and requires equal answers and contents.
func Compare(t *testing.T, one, two bot.Store) {
	t.Helper()
	CompareGroups(t, one, two, func(changes []*bot.Change) ([]*bot.Applied, []error) {
		applied, errs := make([]*bot.Applied, len(changes)), make([]error, len(changes))
		for i, change := range changes {
			applied[i], errs[i] = two.Apply(t.Context(), change)
		}
		return applied, errs
	})
}

// CompareGroups applies random Changes to one store one by one, and to another in the same order in the groups passed
// to apply. Both stores must be empty. It requires equal answers and contents.
func CompareGroups(t *testing.T, one, two bot.Store, apply func([]*bot.Change) ([]*bot.Applied, []error)) {
	t.Helper()
	round, broken := 0, false
	rapid.Check(t, func(r *rapid.T) {
		round++
		if round > rounds && !broken {
			return
		}
		wasBroken := broken
		broken = true // until this round is complete
		defer func() { broken = broken || wasBroken }()
		g := newGenerator(r, fmt.Sprint("b", round))
		var changes []*bot.Change
		var applied []*bot.Applied
		var errs []error
		for range rapid.IntRange(1, 12).Draw(r, "changes") {
			change := g.change(t.Context(), one)
			got, err := one.Apply(t.Context(), change)
			changes, applied, errs = append(changes, change), append(applied, got), append(errs, err)
			g.learn(got)
		}
		got, gotErrs := apply(changes)
		for i, change := range changes {
			if err := sameError(errs[i], gotErrs[i]); err != nil {
				r.Fatalf("%v\nchange %d: %+v", err, i, change)
			}
			if diff := cmp.Diff(applied[i], got[i], cmpopts.EquateEmpty()); diff != "" {
				r.Fatalf("applied differs:\n%s\nchange %d: %+v", diff, i, change)
			}
		}
		g.look(t.Context(), one, two)
		broken = false
	})
}

// look compares what can be read from two stores.
func (g *generator) look(ctx context.Context, one, two bot.Store) {
	for _, view := range g.views() {
		got1, err1 := view.read(ctx, one)
		got2, err2 := view.read(ctx, two)
		if err := sameError(err1, err2); err != nil {
			g.r.Fatalf("%s: %v", view.name, err)
		}
		if diff := cmp.Diff(got1, got2, cmpopts.EquateEmpty(), cmp.Comparer(sameEnd)); diff != "" {
			g.r.Fatalf("%s differs:\n%s", view.name, diff)
		}
	}
}

// sameEnd compares entries. Those that the stores wrote themselves carry each store's own time.
func sameEnd(a, b journal.Entry) bool {
	if a.Kind == journal.EndEntry && b.Kind == journal.EndEntry {
		a.At, b.At = time.Time{}, time.Time{}
	}
	return cmp.Equal(a, b, cmpopts.EquateEmpty())
}

func sameError(one, two error) error {
	for _, kind := range []error{
		bot.ErrLost, bot.ErrConflict, bot.ErrDecided, bot.ErrNotFound, bot.ErrTaken, bot.ErrInvalid,
	} {
		if errors.Is(one, kind) != errors.Is(two, kind) {
			return fmt.Errorf("one says %w, the other %w", orNil(one), orNil(two))
		}
	}
	if (one == nil) != (two == nil) {
		return fmt.Errorf("one says %w, the other %w", orNil(one), orNil(two))
	}
	return nil
}

func orNil(err error) error {
	if err == nil {
		return errors.New("yes")
	}
	return err
}

// view is one way of reading a store.
type view struct {
	name string
	read func(context.Context, bot.Store) (any, error)
}

// views returns all Readers, with the generator's arguments.
func (g *generator) views() []view {
	views := []view{
		{
			"ready",
			func(ctx context.Context, s bot.Store) (any, error) { return s.Ready(ctx, channel, g.bot, start, 0) },
		},
		{"ready later", func(ctx context.Context, s bot.Store) (any, error) {
			return s.Ready(ctx, channel, g.bot, start.Add(time.Hour), 2)
		}},
		{"stops", func(ctx context.Context, s bot.Store) (any, error) { return s.Stops(ctx, "w") }},
		{"express", func(ctx context.Context, s bot.Store) (any, error) { return s.Express(ctx, channel, g.bot, 0) }},
		{"due", func(ctx context.Context, s bot.Store) (any, error) { return s.Due(ctx, channel, g.bot, start, 0) }},
		{"stranded", func(ctx context.Context, s bot.Store) (any, error) { return s.Stranded(ctx, channel, g.bot) }},
		{"lost", func(ctx context.Context, s bot.Store) (any, error) { return s.Lost(ctx, channel, g.bot) }},
		{"counts", func(ctx context.Context, s bot.Store) (any, error) { return s.Counts(ctx, channel, g.bot) }},
		{
			"queued in a chat",
			func(ctx context.Context, s bot.Store) (any, error) { return s.Tickets(ctx, channel+"/"+g.bot+"/bot/1") },
		},
		{
			"busy in a chat",
			func(ctx context.Context, s bot.Store) (any, error) { return s.Busy(ctx, channel+"/"+g.bot+"/bot/1") },
		},
		{"lanes", func(ctx context.Context, s bot.Store) (any, error) { return s.Lanes(ctx, channel, g.bot, 0) }},
		{"charges", func(ctx context.Context, s bot.Store) (any, error) { return s.Charges(ctx, "") }},
		{"used", func(ctx context.Context, s bot.Store) (any, error) {
			return s.Used(ctx, "chat/"+channel+"/"+g.bot+"/bot/-1", "turns", "2026-03-01")
		}},
		{"dead letters", func(ctx context.Context, s bot.Store) (any, error) { return s.DeadLetters(ctx, 0) }},
		{
			"backlog",
			func(ctx context.Context, s bot.Store) (any, error) { return s.Backlog(ctx, channel, g.bot, 1, 3) },
		},
		{"rows given up", func(ctx context.Context, s bot.Store) (any, error) {
			return s.RowsIn(ctx, channel, g.bot, bot.Dead, 0, 0)
		}},
		{"rows that wait", func(ctx context.Context, s bot.Store) (any, error) {
			return s.RowsIn(ctx, channel, g.bot, bot.Pending, 5, 2)
		}},
		{"sums", func(ctx context.Context, s bot.Store) (any, error) { return s.Sums(ctx, "") }},
		{"facts", func(ctx context.Context, s bot.Store) (any, error) { return s.FactsOf(ctx, g.bot, "", start) }},
	}
	for _, id := range g.asked {
		views = append(views, view{"question", func(ctx context.Context, s bot.Store) (any, error) {
			return timeless(s.Approval(ctx, id))
		}})
	}
	for _, name := range g.sessions {
		views = append(views,
			view{"lane", func(ctx context.Context, s bot.Store) (any, error) { return s.Lane(ctx, name) }},
			view{"queue", func(ctx context.Context, s bot.Store) (any, error) { return s.Next(ctx, name, 0) }},
			view{
				"tickets",
				func(ctx context.Context, s bot.Store) (any, error) { return s.Tickets(ctx, string(name)) },
			},
			view{"busy", func(ctx context.Context, s bot.Store) (any, error) { return s.Busy(ctx, string(name)) }},
			view{"journal", func(ctx context.Context, s bot.Store) (any, error) { return s.Journal(ctx, name, 0) }},
			view{"tail", func(ctx context.Context, s bot.Store) (any, error) { return s.Tail(ctx, name, 3000) }},
			view{"last turn", func(ctx context.Context, s bot.Store) (any, error) { return s.Tail(ctx, name, 0) }},
			view{"rows", func(ctx context.Context, s bot.Store) (any, error) { return s.Rows(ctx, name, 0) }},
			view{"open", func(ctx context.Context, s bot.Store) (any, error) { return s.OpenApprovals(ctx, name) }},
			view{
				"question of call",
				func(ctx context.Context, s bot.Store) (any, error) { return timeless(s.ApprovalOf(ctx, name, "c1")) },
			},
			view{"grant", func(ctx context.Context, s bot.Store) (any, error) {
				a, granted, err := s.GrantedInSession(ctx, name, "h")
				return []any{a, granted}, err
			}},
		)
	}
	return views
}

// timeless removes the time of a question that a Move withdrew, which is each store's own.
func timeless(a bot.Approval, err error) (any, error) {
	if a.State == bot.Withdrawn && a.By == "" {
		a.Decided = time.Time{}
	}
	return a, err
}
