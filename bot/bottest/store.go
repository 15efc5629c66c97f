// Package bottest provides an in-memory bot.Store for tests: it has the semantics of the durable ones, nothing on disk,
// and hooks that make it fail.
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
	// AfterApply runs after a Change that took effect; its error is returned nevertheless, like that of a commit whose
	// result was lost.
	AfterApply func(*bot.Change) error
}

// Store is an in-memory bot.Store. Safe for concurrent use. Hooks and Now must be set before the first use.
type Store struct {
	Hooks Hooks
	Now   func() time.Time // the clock of FactsIf; New sets time.Now
	self  string           // the process; "" = one that owns everything
	*memory
}

// memory is what the processes share.
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
	asides    map[string]asides // by holder
	owners    map[int64]string  // of rows
	living    map[string]bool   // processes that have a name
}

var _ bot.Store = (*Store)(nil)

type counters struct{ seq, row, question int64 }

type arrival struct {
	bot.Arrival
	state    state.ArrivalState
	finished time.Time
}

// New returns an empty store.
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
		asides:    map[string]asides{},
		owners:    map[int64]string{},
		living:    map[string]bool{},
	}}
}

// ErrBuried is the error of Changes of a process that was declared dead.
var ErrBuried = errors.New("the process was declared dead")

// Beside returns the store as seen by another process, which uses it until it is buried. It has its own hooks.
func (s *Store) Beside(process string) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.living[process] = true
	return &Store{Now: s.Now, self: process, memory: s.memory}
}

// Bury declares a process dead, and assigns its rows to another one.
func (s *Store) Bury(process string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.living, process)
	s.book(func(owner string) bool { return owner == process })
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

// senders returns the processes that have open rows of chats.
func (s *Store) senders() map[string]string {
	found := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(s.owners)) {
		if row := s.rows[id]; row.State == bot.Pending || row.State == bot.Sending {
			found[row.Place.ChatKey()] = s.owners[id]
		}
	}
	return found
}

// mine reports whether this process sends a row.
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

// copied returns a deep copy made through JSON, as in a durable store.
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

// utc returns the time as a durable store returns it.
func utc(at time.Time) time.Time {
	if at.IsZero() {
		return time.Time{}
	}
	return at.Round(0).UTC()
}
