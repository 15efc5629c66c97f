package state

import (
	"fmt"
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Question is a stored approval.
type Question struct {
	bot.Approval
	N int64 // order in which questions were asked
}

// completeQuestion completes a new question: by default it needs one approval and is open.
func completeQuestion(a bot.Approval) bot.Approval {
	a.Needed = max(a.Needed, 1)
	if a.State == "" {
		a.State = bot.Open
	}
	return a
}

// named reports whether a new question needs a short name that no open question of its chat has.
func named(a *bot.Approval) bool { return a.Short != "" && (a.State == "" || a.State == bot.Open) }

func shortOf(a *bot.Approval) ShortName {
	return ShortName{
		Place: bot.Place{Channel: a.Place.Channel, Bot: a.Place.Bot, Surface: a.Place.Surface, Chat: a.Place.Chat},
		Short: a.Short,
	}
}

// Vote counts the votes of a decision, each person once, and decides the question if that completes it. The error is
// bot.ErrDecided if it is not open.
func Vote(a bot.Approval, d *bot.Decision) (bot.Approval, error) {
	if a.State != bot.Open {
		return a, fmt.Errorf("question %s is %s: %w", d.ID, a.State, bot.ErrDecided)
	}
	a.Votes = votes(a.Votes, d)
	state, scope := d.State, d.Scope
	if state == bot.Open {
		if len(a.Votes) < a.Needed {
			return a, nil
		}
		state = bot.Approved
		if scope == "" {
			scope = bot.Once
		}
	}
	a.State, a.Scope, a.By, a.ByName, a.Decided = state, scope, d.By, d.ByName, d.At
	return a, nil
}

// votes adds the votes of a decision to a copy of the earlier ones.
func votes(given []string, d *bot.Decision) []string {
	all := slices.Clone(given)
	add := func(vote string) {
		if vote != "" && !slices.Contains(all, vote) {
			all = append(all, vote)
		}
	}
	for _, vote := range d.Votes {
		add(vote)
	}
	if d.State == bot.Open {
		add(d.By)
	}
	return all
}

// Withdraw ends an open question that nobody has to decide any more; by is who requested that, "" = the service.
func Withdraw(a bot.Approval, by string, at time.Time) bot.Approval {
	a.State, a.By, a.Decided = bot.Withdrawn, by, at
	return a
}
