package state

import (
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Delivery is the part of a stored outbox row that changes.
type Delivery struct {
	State       bot.RowState
	Message     string
	NotBefore   time.Time
	Attempts    int
	Unconfirmed int
	Doubt       time.Time
	Problem     string
	Finished    time.Time // since when nothing remains to be done for it; zero = something does
}

// DeliveryOf returns the part of a row that changes, except Finished.
func DeliveryOf(row *bot.Row) Delivery {
	return Delivery{
		State: row.State, Message: row.Message, NotBefore: row.NotBefore, Attempts: row.Attempts, Doubt: row.Doubt,
		Unconfirmed: row.Unconfirmed, Problem: row.Problem,
	}
}

// On returns the row with this delivery.
func (d Delivery) On(row bot.Row) bot.Row {
	row.State, row.Message = d.State, d.Message
	row.NotBefore, row.Attempts, row.Unconfirmed = d.NotBefore, d.Attempts, d.Unconfirmed
	row.Doubt, row.Problem = d.Doubt, d.Problem
	return row
}

// Deliver returns the initial Delivery of a new row.
func Deliver(row *bot.Row, now time.Time) Delivery {
	d := DeliveryOf(row)
	if d.State == "" {
		d.State = bot.Pending
	}
	return d.finish(now)
}

// by decides which process sends a new row: the one that has open rows of its chat, so that they are sent in order,
// else the one that writes it. A row behind open rows is not sent yet; queued reports that the writer does not send the
// row, or not yet, although it was stored as being sent.
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

// Advance changes the state of a row; false if it is in none of the states that the update requires.
func (d Delivery) Advance(u *bot.RowUpdate, now time.Time) (Delivery, bool) {
	if !slices.Contains(u.From, d.State) {
		return d, false
	}
	d.State, d.NotBefore, d.Problem = u.To, u.NotBefore, u.Problem
	d.Attempts += u.Attempts
	d.Unconfirmed += u.Unconfirmed
	if u.Message != "" {
		d.Message = u.Message
	}
	if d.Doubt.IsZero() {
		d.Doubt = u.Doubt
	}
	return d.finish(now), true
}

// finish records since when nothing remains to be done for the row.
func (d Delivery) finish(now time.Time) Delivery {
	d.Finished = time.Time{}
	if d.State == bot.Sent || d.State == bot.Dead {
		d.Finished = now
	}
	return d
}
