package bottest

import (
	"fmt"
	"slices"

	"github.com/zephbot/zephbot/bot"
)

func (t *step) ask() error {
	for i := range t.change.Ask {
		a := t.change.Ask[i]
		if _, ok := t.approvals[a.ID]; ok {
			return fmt.Errorf("ask %s: id: %w", a.ID, bot.ErrTaken)
		}
		a.Needed = max(a.Needed, 1)
		if a.State == "" {
			a.State = bot.Open
		}
		if a.Short != "" && a.State == bot.Open && t.shortTaken(a.Place.ChatKey(), a.Short) {
			return fmt.Errorf("ask %s: short name %s: %w", a.ID, a.Short, bot.ErrTaken)
		}
		a.Body = append([]byte(nil), a.Body...)
		a.Votes = append([]string(nil), a.Votes...)
		a.Created, a.Expires, a.Decided = utc(a.Created), utc(a.Expires), utc(a.Decided)
		t.counters.approval++
		put(t, t.approvals, a.ID, approval{Approval: a, n: t.counters.approval})
	}
	return nil
}

func (t *step) shortTaken(chat, short string) bool {
	for _, a := range t.approvals {
		if a.State == bot.Open && a.Short == short && a.Place.ChatKey() == chat {
			return true
		}
	}
	return false
}

func (t *step) decide() error {
	for i := range t.change.Decide {
		d := &t.change.Decide[i]
		a, ok := t.approvals[d.ID]
		if !ok {
			return fmt.Errorf("question %s: %w", d.ID, bot.ErrNotFound)
		}
		if a.State != bot.Open {
			return fmt.Errorf("question %s is %s: %w", d.ID, a.State, bot.ErrDecided)
		}
		decide(&a.Approval, d)
		put(t, t.approvals, d.ID, a)
		t.applied.Decided = append(t.applied.Decided, a.State)
	}
	return nil
}

func decide(a *bot.Approval, d *bot.Decision) {
	votes := slices.Clone(a.Votes)
	given, scope, state := d.Votes, d.Scope, d.State
	if state == bot.Open {
		given = append(slices.Clone(given), d.By)
	}
	for _, vote := range given {
		if vote != "" && !slices.Contains(votes, vote) {
			votes = append(votes, vote)
		}
	}
	a.Votes = votes
	if state == bot.Open {
		if len(votes) < a.Needed {
			return
		}
		state = bot.Approved
		if scope == "" {
			scope = bot.Once
		}
	}
	a.State, a.Scope, a.By, a.ByName, a.Decided = state, scope, d.By, d.ByName, utc(d.At)
}

func (t *step) cancel() error {
	c := t.change.Cancel
	if c == nil {
		return nil
	}
	for _, a := range t.ordered() {
		if a.State != bot.Open || a.Session != c.Session || (c.Turn != "" && a.Turn != c.Turn) {
			continue
		}
		a.State, a.By, a.Decided = bot.Withdrawn, c.By, utc(c.At)
		put(t, t.approvals, a.ID, a)
		t.applied.Withdrawn = append(t.applied.Withdrawn, a.ID)
	}
	return nil
}

// ordered lists approvals in the order of asking.
func (s *Store) ordered() []approval {
	all := make([]approval, 0, len(s.approvals))
	for _, a := range s.approvals {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b approval) int { return int(a.n - b.n) })
	return all
}
