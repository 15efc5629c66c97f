// Package bottest is an in-memory bot.Store for tests: the same semantics as the durable ones, nothing on disk, and
// hooks that make it fail.
package bottest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
)

// Hooks inject failures. They run without the store's lock, so they may read the store.
type Hooks struct {
	// BeforeApply runs before a Change; its error is returned and nothing is changed.
	BeforeApply func(*bot.Change) error
	// AfterApply runs after a Change that took effect; its error is returned all the same, like a commit whose outcome
	// got lost.
	AfterApply func(*bot.Change) error
}

// Store is an in-memory bot.Store. Safe for concurrent use. Hooks and Now must be set before the first use.
type Store struct {
	Hooks Hooks
	Now   func() time.Time // the clock of FactsIf; New sets time.Now
	self  string           // the process; "" = one that has everything
	*memory
}

// memory is what the processes of a store share.
type memory struct {
	mu        sync.RWMutex
	counters  counters
	arrivals  map[int64]arrival
	arrived   map[state.ArrivalKey]int64
	lanes     map[bot.SessionKey]bot.Lane
	journal   map[bot.SessionKey][]journal.Entry
	questions map[string]state.Question
	rows      map[int64]bot.Row
	keys      map[string]int64 // Row.Key → id
	facts     map[state.FactKey]bot.Fact
	charges   map[string]bot.Charge
	owners    map[int64]string // of rows
	living    map[string]bool  // processes that have a name
}

var _ bot.Store = (*Store)(nil)

type counters struct{ seq, row, question int64 }

type arrival struct {
	bot.Arrival
	state    state.ArrivalState
	finished time.Time
}

// New makes an empty store.
func New() *Store {
	return &Store{Now: time.Now, memory: &memory{
		arrivals:  map[int64]arrival{},
		arrived:   map[state.ArrivalKey]int64{},
		lanes:     map[bot.SessionKey]bot.Lane{},
		journal:   map[bot.SessionKey][]journal.Entry{},
		questions: map[string]state.Question{},
		rows:      map[int64]bot.Row{},
		keys:      map[string]int64{},
		facts:     map[state.FactKey]bot.Fact{},
		charges:   map[string]bot.Charge{},
		owners:    map[int64]string{},
		living:    map[string]bool{},
	}}
}

// ErrBuried is the error of Changes of a process that was buried.
var ErrBuried = errors.New("the process was buried")

// Beside is the store as another process has it, which works on it until it is buried. Its hooks are its own.
func (s *Store) Beside(process string) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.living[process] = true
	return &Store{Now: s.Now, self: process, memory: s.memory}
}

// Bury ends what a process may do, and gives what it had to another one.
func (s *Store) Bury(process string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.living, process)
	for session, lane := range s.lanes {
		if lane.Owner == process {
			s.lanes[session] = state.Release(lane)
		}
	}
	living := slices.Sorted(maps.Keys(s.living))
	if len(living) == 0 {
		return
	}
	for id, owner := range s.owners {
		row := s.rows[id]
		if owner != process || (row.State != bot.Pending && row.State != bot.Sending) {
			continue
		}
		s.owners[id] = living[0]
		if row.State == bot.Sending && row.Doubt.IsZero() {
			row.Doubt = utc(s.Now())
			s.rows[id] = row
		}
	}
}

// senders are the processes that have open rows of chats.
func (s *Store) senders() map[string]string {
	found := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(s.owners)) {
		if row := s.rows[id]; row.State == bot.Pending || row.State == bot.Sending {
			found[row.Place.ChatKey()] = s.owners[id]
		}
	}
	return found
}

// mine says whether this process sends a row.
func (s *Store) mine(r *bot.Row) bool { return s.self == "" || s.owners[r.ID] == s.self }

// Apply implements bot.Writer.
func (s *Store) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("apply change: %w", err)
	}
	if s.Hooks.BeforeApply != nil {
		if err := s.Hooks.BeforeApply(change); err != nil {
			return nil, err
		}
	}
	if err := change.Validate(); err != nil {
		return nil, err
	}
	applied, err := s.apply(change)
	if err != nil {
		return nil, err
	}
	if s.Hooks.AfterApply != nil {
		if err := s.Hooks.AfterApply(change); err != nil {
			return nil, err
		}
	}
	return applied, nil
}

func (s *Store) apply(change *bot.Change) (*bot.Applied, error) {
	made, err := copies(change)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.self != "" && !s.living[s.self] {
		return nil, ErrBuried
	}
	now, needs := s.Now(), state.NeedsOf(change)
	done, err := state.Run(change, s.world(&needs), now)
	if err != nil {
		return nil, err
	}
	s.save(change, done, &made)
	if change.Move != nil {
		s.move(change.Move, now)
	}
	return done.Applied, nil
}

// copied is a deep copy by way of JSON, as a durable store makes it.
func copied[T any](value T) (T, error) {
	var out T
	data, err := json.Marshal(value)
	if err != nil {
		return out, fmt.Errorf("encode %T: %w", value, err)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return out, fmt.Errorf("decode %T: %w", value, err)
	}
	return out, nil
}

// utc is the time as a durable store gives it back.
func utc(at time.Time) time.Time {
	if at.IsZero() {
		return time.Time{}
	}
	return at.Round(0).UTC()
}
