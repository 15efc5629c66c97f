package sql

import (
	"context"

	"github.com/zephbot/zephbot/bot"
)

const queuedQuery = `SELECT seq, session, at FROM inbox
WHERE state = 'waiting' AND express = 0 AND session <> '' AND session >= ? AND session < ? ORDER BY seq`

// Tickets implements bot.Reader.
func (r *reader) Tickets(ctx context.Context, scope string) ([]bot.Ticket, error) {
	low, high := bot.ScopeRange(scope)
	tickets, err := listRows(ctx, r.q, func(scan scanner) (t bot.Ticket, err error) {
		err = scan(&t.Seq, &t.Session, stamp{&t.At})
		return t, err
	}, queuedQuery, low, high)
	return tickets, r.wrapProblem("list waiting work", err)
}

const busyQuery = `SELECT ` + laneColumns + ` FROM lane WHERE session >= ? AND session < ? AND turn <> ''
	ORDER BY session`

// Busy implements bot.Reader.
func (r *reader) Busy(ctx context.Context, chat string) ([]bot.Lane, error) {
	low, high := bot.ScopeRange(chat)
	lanes, err := listRows(ctx, r.q, scanLane, busyQuery, low, high)
	return lanes, r.wrapProblem("list turns of a chat", err)
}
