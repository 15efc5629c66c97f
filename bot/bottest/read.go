package bottest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
)

// Lane implements bot.Reader.
func (s *Store) Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.lane(session), ctx.Err()
}

// Ready implements bot.Reader.
func (s *Store) Ready(ctx context.Context, channel, botID string, now time.Time, limit int) ([]bot.SessionKey, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	oldest := s.oldest(channel, botID)
	type work struct {
		session bot.SessionKey
		age     int64
	}
	var ready []work
	for session, seq := range oldest {
		if lane := s.lane(session); lane.State == bot.Idle && free(&lane, now) {
			ready = append(ready, work{session, seq})
		}
	}
	for _, lane := range s.lanes {
		if lane.State == bot.Idle || lane.Place.Channel != channel || lane.Place.Bot != botID || !free(&lane, now) ||
			!s.runnable(&lane, now) {
			continue
		}
		seq, queued := oldest[lane.Session]
		switch {
		case lane.Turn != "":
			ready = append(ready, work{lane.Session, lane.Arrival})
		case queued:
			ready = append(ready, work{lane.Session, seq})
		}
	}
	slices.SortFunc(ready, func(a, b work) int {
		return cmp.Or(cmp.Compare(a.age, b.age), cmp.Compare(a.session, b.session))
	})
	var sessions []bot.SessionKey
	for _, w := range ready {
		sessions = append(sessions, w.session)
	}
	return first(sessions, limit), ctx.Err()
}

// Stops implements bot.Reader.
func (s *Store) Stops(ctx context.Context, owner string) ([]bot.Stop, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var stops []bot.Stop
	for _, lane := range s.lanes {
		if owner != "" && lane.Owner == owner && lane.Turn != "" && lane.Stop == lane.Turn {
			stops = append(stops, bot.Stop{Session: lane.Session, Turn: lane.Turn})
		}
	}
	slices.SortFunc(stops, func(a, b bot.Stop) int { return cmp.Compare(a.Session, b.Session) })
	return stops, ctx.Err()
}

// oldest maps each session of a bot to its first waiting arrival.
func (s *Store) oldest(channel, botID string) map[bot.SessionKey]int64 {
	oldest := map[bot.SessionKey]int64{}
	for _, a := range s.queue() {
		if _, ok := oldest[a.Session]; !ok && !a.Express && a.Session != "" && a.Channel == channel && a.Bot == botID {
			oldest[a.Session] = a.Seq
		}
	}
	return oldest
}

func (s *Store) lane(session bot.SessionKey) bot.Lane {
	lane, ok := s.lanes[session]
	if !ok {
		return state.Idle(session)
	}
	return lane
}

func free(lane *bot.Lane, now time.Time) bool { return lane.Owner == "" || !lane.Until.After(now) }

// runnable reports whether the state of a lane lets it continue.
func (s *Store) runnable(lane *bot.Lane, now time.Time) bool {
	if lane.State == bot.Running || (lane.Stop != "" && lane.Stop == lane.Turn) {
		return true
	}
	if lane.State == bot.Waiting {
		return !lane.NotBefore.After(now)
	}
	for _, a := range s.questions {
		if a.State == bot.Open && a.Session == lane.Session {
			return false
		}
	}
	return true
}

// queue lists waiting arrivals in order.
func (s *Store) queue() []bot.Arrival {
	return s.arrivalsIn(state.Waiting)
}

func (s *Store) arrivalsIn(in state.ArrivalState) []bot.Arrival {
	var list []bot.Arrival
	for _, a := range s.arrivals {
		if a.state == in {
			a.Raw = slices.Clone(a.Raw)
			list = append(list, a.Arrival)
		}
	}
	slices.SortFunc(list, func(a, b bot.Arrival) int { return cmp.Compare(a.Seq, b.Seq) })
	return list
}

// Next implements bot.Reader.
func (s *Store) Next(ctx context.Context, session bot.SessionKey, limit int) ([]bot.Arrival, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := slices.DeleteFunc(s.queue(), func(a bot.Arrival) bool {
		return a.Express || a.Session != session || session == ""
	})
	return first(list, limit), ctx.Err()
}

// Express implements bot.Reader.
func (s *Store) Express(ctx context.Context, channel, botID string, limit int) ([]bot.Arrival, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := slices.DeleteFunc(s.queue(), func(a bot.Arrival) bool {
		return a.Channel != channel || a.Bot != botID || (!a.Express && a.Session != "")
	})
	return first(list, limit), ctx.Err()
}

// Journal implements bot.Reader.
func (s *Store) Journal(ctx context.Context, session bot.SessionKey, after int64) ([]journal.Entry, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []journal.Entry
	for _, entry := range s.journal[session] {
		if entry.Begins() {
			list = nil
		}
		if entry.N <= after {
			continue
		}
		read, err := copied(entry)
		if err != nil {
			return nil, err
		}
		read.N = entry.N
		list = append(list, read)
	}
	return list, ctx.Err()
}

// InChat implements bot.Reader.
func (s *Store) InChat(ctx context.Context, chat string, limit int) ([]bot.Lane, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []bot.Lane
	for _, lane := range s.lanes {
		if within(lane.Session, chat) {
			list = append(list, lane)
		}
	}
	slices.SortFunc(list, func(a, b bot.Lane) int { return cmp.Compare(a.Session, b.Session) })
	return first(list, limit), ctx.Err()
}

// Past implements bot.Reader.
func (s *Store) Past(ctx context.Context, session bot.SessionKey, from, before int64) ([]journal.Entry, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []journal.Entry
	for _, entry := range slices.Backward(s.journal[session]) {
		if entry.N < from || entry.N >= before || !entry.Spoken() && !entry.Begins() {
			continue
		}
		read, err := copied(entry)
		if err != nil {
			return nil, err
		}
		read.N = entry.N
		list = append(list, read)
	}
	return list, ctx.Err()
}

// Tail implements bot.Reader.
func (s *Store) Tail(ctx context.Context, session bot.SessionKey, room int) (journal.Tail, error) {
	entries, err := s.Journal(ctx, session, 0)
	if err != nil {
		return journal.Tail{}, err
	}
	back := journal.Back{Room: room}
	for _, e := range slices.Backward(entries) {
		if !back.Take(e) {
			break
		}
	}
	tail := back.Tail()
	if n := back.Wants(); n > 0 {
		at := slices.IndexFunc(entries, func(e journal.Entry) bool { return e.N == n })
		return tail.With(entries[at]), nil
	}
	return tail, nil
}

// Due implements bot.Reader.
func (s *Store) Due(ctx context.Context, channel, botID string, now time.Time, limit int) ([]bot.Row, error) {
	rows, err := s.rowsWhere(func(r *bot.Row) bool {
		if !s.mine(r) || r.State != bot.Pending || r.NotBefore.After(now) || r.Place.Channel != channel ||
			r.Place.Bot != botID {
			return false
		}
		target := s.rows[r.EditRow]
		return r.EditRow == 0 || (target.State != bot.Pending && target.State != bot.Sending)
	}, true)
	if err != nil {
		return nil, err
	}
	return first(rows, limit), ctx.Err()
}

// rowsWhere lists rows by id; if resolve is set, it fills in what EditRow refers to.
func (s *Store) rowsWhere(keep func(*bot.Row) bool, resolve bool) ([]bot.Row, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []bot.Row
	for _, row := range s.rows {
		if !keep(&row) {
			continue
		}
		content, err := copied(row.Content)
		if err != nil {
			return nil, err
		}
		row.Content = content
		if target := s.rows[row.EditRow]; resolve && target.State == bot.Sent {
			row.Edit = target.Message
		}
		list = append(list, row)
	}
	slices.SortFunc(list, func(a, b bot.Row) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

// Row implements bot.Reader.
func (s *Store) Row(ctx context.Context, id int64) (bot.Row, error) {
	rows, err := s.rowsWhere(func(r *bot.Row) bool { return r.ID == id }, false)
	if err != nil {
		return bot.Row{}, err
	}
	if len(rows) == 0 {
		return bot.Row{}, fmt.Errorf("row %d: %w", id, bot.ErrNotFound)
	}
	return rows[0], ctx.Err()
}

// RowOf implements bot.Reader.
func (s *Store) RowOf(ctx context.Context, key string) (bot.Row, error) {
	rows, err := s.rowsWhere(func(r *bot.Row) bool { return r.Key == key && key != "" }, false)
	if err != nil {
		return bot.Row{}, err
	}
	if len(rows) == 0 {
		return bot.Row{}, fmt.Errorf("row of key %s: %w", key, bot.ErrNotFound)
	}
	return rows[0], ctx.Err()
}

// Stranded implements bot.Reader.
func (s *Store) Stranded(ctx context.Context, channel, botID string) ([]bot.Row, error) {
	rows, err := s.rowsWhere(func(r *bot.Row) bool {
		return s.mine(r) && r.State == bot.Sending && r.Place.Channel == channel && r.Place.Bot == botID
	}, false)
	if err != nil {
		return nil, err
	}
	return rows, ctx.Err()
}

// Lost implements bot.Reader.
func (s *Store) Lost(ctx context.Context, channel, botID string) ([]bot.Row, error) {
	rows, err := s.rowsWhere(func(r *bot.Row) bool {
		return r.State == bot.Unknown && r.Place.Channel == channel && r.Place.Bot == botID
	}, false)
	if err != nil {
		return nil, err
	}
	return rows, ctx.Err()
}

// Fact implements bot.Facts.
func (s *Store) Fact(ctx context.Context, bucket, key string, now time.Time) (string, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	fact := s.facts[state.FactKey{Bucket: bucket, Key: key}]
	if state.Over(fact.Expires, now) {
		return "", ctx.Err()
	}
	return fact.Value, ctx.Err()
}

// FactsOf implements bot.Facts.
func (s *Store) FactsOf(ctx context.Context, bucket, prefix string, now time.Time) ([]bot.Fact, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []bot.Fact
	for key, fact := range s.facts {
		if key.Bucket == bucket && strings.HasPrefix(key.Key, prefix) && !state.Over(fact.Expires, now) {
			list = append(list, fact)
		}
	}
	slices.SortFunc(list, func(a, b bot.Fact) int { return strings.Compare(a.Key, b.Key) })
	return list, ctx.Err()
}

func first[T any](list []T, limit int) []T {
	if limit > 0 && len(list) > limit {
		return list[:limit]
	}
	return list
}
