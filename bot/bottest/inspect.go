package bottest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
)

// Approval implements bot.Approvals.
func (s *Store) Approval(ctx context.Context, id string) (bot.Approval, error) {
	return s.lastApproval(ctx, "question "+id, func(a *bot.Approval) bool { return a.ID == id })
}

// ApprovalOf implements bot.Approvals.
func (s *Store) ApprovalOf(ctx context.Context, session bot.SessionKey, call string) (bot.Approval, error) {
	return s.lastApproval(ctx, "question of call "+call, func(a *bot.Approval) bool {
		return a.Session == session && a.Call == call
	})
}

func (s *Store) lastApproval(ctx context.Context, what string, is func(*bot.Approval) bool) (bot.Approval, error) {
	list := s.approvalsWhere(is)
	if len(list) == 0 {
		return bot.Approval{}, fmt.Errorf("%s: %w", what, bot.ErrNotFound)
	}
	return list[len(list)-1], ctx.Err()
}

// OpenApprovals implements bot.Approvals.
func (s *Store) OpenApprovals(ctx context.Context, session bot.SessionKey) ([]bot.Approval, error) {
	return s.approvalsWhere(func(a *bot.Approval) bool {
		return a.State == bot.Open && (session == "" || a.Session == session)
	}), ctx.Err()
}

// GrantedInSession implements bot.Approvals.
func (s *Store) GrantedInSession(ctx context.Context, session bot.SessionKey, hash string) (bot.Approval, bool, error) {
	list := s.approvalsWhere(func(a *bot.Approval) bool {
		return a.Session == session && a.Hash == hash && a.State == bot.Approved && a.Scope == bot.Session
	})
	if len(list) == 0 {
		return bot.Approval{}, false, ctx.Err()
	}
	return list[len(list)-1], true, ctx.Err()
}

// AskedSince implements bot.Approvals.
func (s *Store) AskedSince(
	ctx context.Context, channel, botID, tool string, since time.Time, limit int,
) ([]bot.Approval, error) {
	list := s.approvalsWhere(func(a *bot.Approval) bool {
		return a.Place.Channel == channel && a.Place.Bot == botID && a.Tool == tool && a.Created.After(since)
	})
	slices.Reverse(list)
	slices.SortStableFunc(list, func(a, b bot.Approval) int { return b.Created.Compare(a.Created) })
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	return list, ctx.Err()
}

func (s *Store) approvalsWhere(keep func(*bot.Approval) bool) []bot.Approval {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []bot.Approval
	for _, a := range s.ordered() {
		if keep(&a.Approval) {
			a.Body, a.Votes = slices.Clone(a.Body), slices.Clone(a.Votes)
			list = append(list, a.Approval)
		}
	}
	return list
}

// ordered lists questions in the order in which they were asked.
func (s *Store) ordered() []state.Question {
	return slices.SortedFunc(maps.Values(s.questions), func(a, b state.Question) int { return cmp.Compare(a.N, b.N) })
}

// Counts implements bot.Inspector.
func (s *Store) Counts(ctx context.Context, channel, botID string) (bot.Counts, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var c bot.Counts
	s.countLanes(&c, channel, botID)
	s.countArrivals(&c, channel, botID)
	for _, row := range s.rows {
		if row.Place.Channel != channel || row.Place.Bot != botID {
			continue
		}
		switch row.State {
		case bot.Pending, bot.Sending:
			c.Undelivered++
		case bot.Unknown:
			c.Lost++
		case bot.Sent, bot.Dead:
		}
	}
	return c, ctx.Err()
}

func (s *Store) countLanes(c *bot.Counts, channel, botID string) {
	for _, lane := range s.lanes {
		if lane.Place.Channel != channel || lane.Place.Bot != botID {
			continue
		}
		c.Sessions++
		switch lane.State {
		case bot.Running:
			c.Running++
		case bot.Parked:
			c.Parked++
		case bot.Waiting:
			c.Waiting++
		case bot.Idle:
		}
	}
}

func (s *Store) countArrivals(c *bot.Counts, channel, botID string) {
	for _, a := range s.arrivals {
		if a.Channel != channel || a.Bot != botID {
			continue
		}
		switch a.state {
		case state.Waiting:
			c.Queued++
		case state.Dead:
			c.DeadLetters++
		case state.Done:
		}
	}
}

// Charges implements bot.Inspector.
func (s *Store) Charges(ctx context.Context, sinceDay string) ([]bot.Charge, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []bot.Charge
	for _, charge := range s.charges {
		if charge.Day >= sinceDay {
			list = append(list, charge)
		}
	}
	slices.SortFunc(list, func(a, b bot.Charge) int {
		return cmp.Or(strings.Compare(a.Day, b.Day), strings.Compare(a.Key, b.Key))
	})
	return list, ctx.Err()
}

// Used implements bot.Inspector.
func (s *Store) Used(ctx context.Context, scope, unit string, days ...string) (int64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var sum int64
	for _, charge := range s.charges {
		if charge.Scope == scope && charge.Unit == unit && slices.Contains(days, charge.Day) {
			sum += charge.N
		}
	}
	return sum, ctx.Err()
}

// Rows implements bot.Inspector.
func (s *Store) Rows(ctx context.Context, session bot.SessionKey, limit int) ([]bot.Row, error) {
	rows, err := s.rowsWhere(func(r *bot.Row) bool { return r.Session == session }, false)
	if err != nil {
		return nil, err
	}
	if limit > 0 && len(rows) > limit {
		rows = rows[len(rows)-limit:]
	}
	return rows, ctx.Err()
}

// Lanes implements bot.Inspector.
func (s *Store) Lanes(ctx context.Context, channel, botID string, limit int) ([]bot.Lane, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []bot.Lane
	for _, lane := range s.lanes {
		if lane.Place.Channel == channel && lane.Place.Bot == botID {
			list = append(list, lane)
		}
	}
	slices.SortFunc(list, func(a, b bot.Lane) int { return cmp.Compare(a.Session, b.Session) })
	return first(list, limit), ctx.Err()
}

// ArrivalOf implements bot.Inspector.
func (s *Store) ArrivalOf(ctx context.Context, channel, botID, id string) (bot.Arrival, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	seq, ok := s.arrived[state.ArrivalKey{Channel: channel, Bot: botID, ID: id}]
	if !ok {
		return bot.Arrival{}, fmt.Errorf("arrival %s: %w", id, bot.ErrNotFound)
	}
	found := s.arrivals[seq].Arrival
	found.Raw = slices.Clone(found.Raw)
	return found, ctx.Err()
}

// DeadLetters implements bot.Inspector.
func (s *Store) DeadLetters(ctx context.Context, limit int) ([]bot.Arrival, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := s.arrivalsIn(state.Dead)
	slices.Reverse(list)
	return first(list, limit), ctx.Err()
}
