package bottest

import (
	"context"
	"fmt"
	"slices"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
)

// Backlog implements bot.Inspector.
func (s *Store) Backlog(ctx context.Context, channel, botID string, after int64, limit int) ([]bot.Arrival, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []bot.Arrival
	for _, a := range s.arrivalsIn(state.Waiting) {
		if a.Channel == channel && a.Bot == botID && a.Seq > after {
			a.Raw = nil
			list = append(list, a)
		}
	}
	return first(list, limit), ctx.Err()
}

// RowsIn implements bot.Inspector.
func (s *Store) RowsIn(
	ctx context.Context, channel, botID string, state bot.RowState, before int64, limit int,
) ([]bot.Row, error) {
	if !slices.Contains([]bot.RowState{bot.Pending, bot.Sending, bot.Unknown, bot.Dead}, state) {
		return nil, fmt.Errorf("%w: rows in state %q are not listed", bot.ErrInvalid, state)
	}
	rows, err := s.rowsWhere(func(r *bot.Row) bool {
		failed := r.Problem != "" && (r.Purpose == bot.Final || r.Purpose == bot.Reply || r.Purpose == bot.Question)
		return r.State == state && r.Place.Channel == channel &&
			r.Place.Bot == botID && (before <= 0 || r.ID < before) &&
			(state != bot.Dead || failed)
	}, false)
	slices.Reverse(rows)
	if err != nil {
		return nil, err
	}
	return first(rows, limit), ctx.Err()
}

// Sums implements bot.Inspector.
func (s *Store) Sums(ctx context.Context, sinceDay string) ([]bot.Charge, error) {
	list, err := s.Charges(ctx, sinceDay)
	return bot.SumCharges(list), err
}
