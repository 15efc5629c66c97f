package bottest

import (
	"cmp"
	"context"
	"slices"

	"github.com/zephbot/zephbot/bot"
)

// Tickets implements bot.Reader.
func (s *Store) Tickets(ctx context.Context, scope string) ([]bot.Ticket, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []bot.Ticket
	for _, a := range s.queue() {
		if !a.Express && within(a.Session, scope) {
			list = append(list, bot.Ticket{Seq: a.Seq, Session: a.Session, At: a.At})
		}
	}
	return list, ctx.Err()
}

// Busy implements bot.Reader.
func (s *Store) Busy(ctx context.Context, chat string) ([]bot.Lane, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []bot.Lane
	for _, lane := range s.lanes {
		if lane.Turn != "" && within(lane.Session, chat) {
			list = append(list, lane)
		}
	}
	slices.SortFunc(list, func(a, b bot.Lane) int { return cmp.Compare(a.Session, b.Session) })
	return list, ctx.Err()
}

func within(session bot.SessionKey, scope string) bool {
	low, high := bot.ScopeRange(scope)
	return session != "" && session >= low && session < high
}
