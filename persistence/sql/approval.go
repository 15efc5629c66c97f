package sql

import (
	"context"
	"fmt"
	"slices"

	"github.com/zephbot/zephbot/bot"
)

const (
	// shortQuery looks among open questions only: ofBot keeps the planner from the index of everything that was ever asked in the chat.
	shortQuery = `SELECT id FROM approval WHERE state = 'pending' AND short = ? AND ` + ofBot + ` AND surface = ? AND COALESCE(chat, '') = ? LIMIT 1`

	insertApproval = `INSERT INTO approval (` + approvalColumns + `)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`
	decideApproval = `UPDATE approval SET state = ?, scope = ?, decider = ?, name = ?, votes = ?, decided = ? WHERE id = ?`
	cancelApproval = `UPDATE approval SET state = 'cancelled', decider = ?, decided = ? WHERE id = ?`
)

func (t *step) ask(ctx context.Context) error {
	for i := range t.change.Ask {
		a := t.change.Ask[i]
		a.Needed = max(a.Needed, 1)
		if a.State == "" {
			a.State = bot.Open
		}
		if a.Short != "" && a.State == bot.Open {
			taken, err := t.q.one(ctx, func(scan scanner) error { return scan(new(string)) },
				shortQuery, a.Short, a.Place.Channel, a.Place.Bot, a.Place.Surface, a.Place.Chat)
			if err != nil {
				return fmt.Errorf("check short name: %w", err)
			}
			if taken {
				return fmt.Errorf("ask %s: short name %s: %w", a.ID, a.Short, bot.ErrTaken)
			}
		}
		values, err := approvalValues(&a)
		if err != nil {
			return err
		}
		n, err := t.q.changed(ctx, insertApproval, values...)
		if err != nil {
			return fmt.Errorf("store question: %w", err)
		}
		if n == 0 {
			return fmt.Errorf("ask %s: id: %w", a.ID, bot.ErrTaken)
		}
	}
	return nil
}

func (t *step) decide(ctx context.Context) error {
	for i := range t.change.Decide {
		d := &t.change.Decide[i]
		a, err := readApproval(ctx, t.q, d.ID)
		if err != nil {
			return err
		}
		if a.State != bot.Open {
			return fmt.Errorf("question %s is %s: %w", d.ID, a.State, bot.ErrDecided)
		}
		decide(&a, d)
		votes := ""
		if len(a.Votes) > 0 {
			if votes, err = encode(a.Votes); err != nil {
				return err
			}
		}
		err = t.q.exec(ctx, decideApproval,
			string(a.State), a.Scope, a.By, a.ByName, votes, nanos(a.Decided), a.ID)
		if err != nil {
			return fmt.Errorf("store decision: %w", err)
		}
		t.applied.Decided = append(t.applied.Decided, a.State)
	}
	return nil
}

// decide counts the votes and, when that is the end of it, decides.
func decide(a *bot.Approval, d *bot.Decision) {
	given, scope, state := d.Votes, d.Scope, d.State
	if state == bot.Open {
		given = append(slices.Clone(given), d.By)
	}
	for _, vote := range given {
		if vote != "" && !slices.Contains(a.Votes, vote) {
			a.Votes = append(a.Votes, vote)
		}
	}
	if state == bot.Open {
		if len(a.Votes) < a.Needed {
			return
		}
		state = bot.Approved
		if scope == "" {
			scope = bot.Once
		}
	}
	a.State, a.Scope, a.By, a.ByName, a.Decided = state, scope, d.By, d.ByName, d.At
}

func (t *step) cancel(ctx context.Context) error {
	c := t.change.Cancel
	if c == nil {
		return nil
	}
	open, err := listApprovals(ctx, t.q, openQuery, c.Session)
	if err != nil {
		return fmt.Errorf("list open questions: %w", err)
	}
	for i := range open {
		if c.Turn != "" && open[i].Turn != c.Turn {
			continue
		}
		err := t.q.exec(ctx, cancelApproval, c.By, nanos(c.At), open[i].ID)
		if err != nil {
			return fmt.Errorf("withdraw question: %w", err)
		}
		t.applied.Withdrawn = append(t.applied.Withdrawn, open[i].ID)
	}
	return nil
}
