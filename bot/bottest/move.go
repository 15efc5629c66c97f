package bottest

import (
	"maps"
	"slices"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
)

// move moves a chat to its new id.
func (s *Store) move(m *bot.Move, now time.Time) {
	for _, old := range slices.Sorted(maps.Keys(s.lanes)) {
		if session, ok := state.Rename(m, old); ok {
			to, met := s.lanes[session]
			s.moveLane(old, state.Merge(m, s.lanes[old], to, met, now), now)
		}
	}
	for seq, a := range s.arrivals {
		if session, ok := state.Rename(m, a.Session); ok && a.state != state.Done {
			a.Session = session
			s.arrivals[seq] = a
		}
	}
	for id, q := range s.questions {
		q.Session, _ = state.Rename(m, q.Session)
		q.Place, _ = state.Relocate(m, q.Place)
		s.questions[id] = q
	}
	for id, row := range s.rows {
		s.rows[id], _ = state.MoveRow(m, row)
	}
	s.moveKeys(m)
}

// moveLane moves one session with its journal.
func (s *Store) moveLane(old bot.SessionKey, merged state.Merged, now time.Time) {
	from, to := s.journal[old], s.journal[merged.Lane.Session]
	if merged.Ended != nil {
		s.endTurn(merged.Ended, now)
		merged.End.At = utc(merged.End.At)
		from = append(slices.Clone(from), merged.End)
	}
	entries := append(shifted(from, merged.ShiftFrom), shifted(to, merged.ShiftTo)...)
	slices.SortFunc(entries, func(a, b journal.Entry) int { return int(a.N - b.N) })
	delete(s.lanes, old)
	delete(s.journal, old)
	s.saveLane(merged.Lane)
	s.journal[merged.Lane.Session] = entries
}

// shifted returns a journal with increased numbers.
func shifted(entries []journal.Entry, by int64) []journal.Entry {
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].N += by
	}
	return entries
}

// endTurn ends the turn of a lane that is merged with another one.
func (s *Store) endTurn(lane *bot.Lane, now time.Time) {
	for _, q := range s.questions {
		if q.Session == lane.Session && q.State == bot.Open {
			q.Approval = state.Withdraw(q.Approval, "", now)
			s.saveQuestion(q)
		}
	}
	if a, ok := s.arrivals[lane.Arrival]; ok && a.state == state.Waiting {
		s.saveArrival(a.Seq, state.Arrival{State: a.state, Attempts: a.Attempts, Problem: a.Problem}.Finish(now))
	}
}

// moveKeys moves facts and charges; a fact that the new chat has already is kept.
func (s *Store) moveKeys(m *bot.Move) {
	for old, fact := range maps.Clone(s.facts) {
		key, ok := state.Rename(m, old.Key)
		if !ok {
			continue
		}
		delete(s.facts, old)
		to := state.FactKey{Bucket: old.Bucket, Key: key}
		if _, met := s.facts[to]; !met {
			fact.Key = key
			s.facts[to] = fact
		}
	}
	for key, charge := range s.charges {
		charge.Scope, _ = state.RenameScope(m, charge.Scope)
		s.charges[key] = charge
	}
}
