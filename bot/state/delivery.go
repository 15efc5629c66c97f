package state

import (
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Delivery is what changes about a stored outbox row.
type Delivery struct {
	State     bot.RowState
	Message   string
	NotBefore time.Time
	Attempts  int
	Doubt     time.Time
	Problem   string
	Finished  time.Time // since when nothing is to be done for it any more; zero = something is
}

// DeliveryOf is the part of a row that changes, Finished apart.
func DeliveryOf(row *bot.Row) Delivery {
	return Delivery{
		State: row.State, Message: row.Message, NotBefore: row.NotBefore, Attempts: row.Attempts, Doubt: row.Doubt, Problem: row.Problem,
	}
}

// On gives the row with this delivery.
func (d Delivery) On(row bot.Row) bot.Row {
	row.State, row.Message, row.NotBefore, row.Attempts, row.Doubt, row.Problem = d.State, d.Message, d.NotBefore, d.Attempts, d.Doubt, d.Problem
	return row
}

// Deliver is how the delivery of a new row begins.
func Deliver(row *bot.Row, now time.Time) Delivery {
	d := DeliveryOf(row)
	if d.State == "" {
		d.State = bot.Pending
	}
	return d.finish(now)
}

// by says which process sends a new row: the one that has open rows of its chat, so that they stay in order, else the
// one that writes it. Behind open rows nothing is being sent yet; queued says that the writer has nothing to do with
// the row, or has not begun as it meant to.
func (d Delivery) by(self, sender string) (after Delivery, owner string, queued bool) {
	if sender == "" {
		return d, self, false
	}
	queued = sender != self
	if d.State == bot.Sending {
		d.State, queued = bot.Pending, true
	}
	return d, sender, queued
}

// Advance moves a row on; false when it is in none of the states that the update comes from.
func (d Delivery) Advance(u *bot.RowUpdate, now time.Time) (Delivery, bool) {
	if !slices.Contains(u.From, d.State) {
		return d, false
	}
	d.State, d.NotBefore, d.Problem = u.To, u.NotBefore, u.Problem
	d.Attempts += u.Attempts
	if u.Message != "" {
		d.Message = u.Message
	}
	if d.Doubt.IsZero() {
		d.Doubt = u.Doubt
	}
	return d.finish(now), true
}

// finish notes since when the row is done with.
func (d Delivery) finish(now time.Time) Delivery {
	d.Finished = time.Time{}
	if d.State == bot.Sent || d.State == bot.Dead {
		d.Finished = now
	}
	return d
}
