// Package bottest is an in-memory bot.Store for tests: the same semantics as the durable ones, nothing on disk, and hooks that make it fail.
package bottest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// Hooks inject failures. They run without the store's lock, so they may read the store.
type Hooks struct {
	// BeforeApply runs before a Change; its error is returned and nothing is changed.
	BeforeApply func(*bot.Change) error
	// AfterApply runs after a Change that took effect; its error is returned all the same, like a commit whose outcome got lost.
	AfterApply func(*bot.Change) error
}

// Store is an in-memory bot.Store. Safe for concurrent use. Hooks and Now must be set before the first use.
type Store struct {
	Hooks Hooks
	Now   func() time.Time // the clock of FactsIf; New sets time.Now

	mu        sync.RWMutex
	counters  counters
	arrivals  map[int64]arrival
	arrived   map[arrivalKey]int64
	lanes     map[string]bot.Lane
	journal   map[string][]journal.Entry
	approvals map[string]approval
	rows      map[int64]bot.Row
	keys      map[string]int64 // Row.Key → id
	facts     map[factKey]bot.Fact
	charges   map[string]bot.Charge
}

var _ bot.Store = (*Store)(nil)

type counters struct{ seq, row, approval int64 }

type arrivalKey struct{ channel, bot, id string }

type arrival struct {
	bot.Arrival
	state arrivalState
}

type arrivalState string

const (
	waiting arrivalState = "waiting"
	done    arrivalState = "done"
	dead    arrivalState = "dead"
)

type approval struct {
	bot.Approval
	n int64 // order of asking
}

type factKey struct{ bucket, key string }

// New makes an empty store.
func New() *Store {
	return &Store{
		Now:       time.Now,
		arrivals:  map[int64]arrival{},
		arrived:   map[arrivalKey]int64{},
		lanes:     map[string]bot.Lane{},
		journal:   map[string][]journal.Entry{},
		approvals: map[string]approval{},
		rows:      map[int64]bot.Row{},
		keys:      map[string]int64{},
		facts:     map[factKey]bot.Fact{},
		charges:   map[string]bot.Charge{},
	}
}

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
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &step{Store: s, change: change, applied: &bot.Applied{}, before: s.counters}
	for _, part := range []func() error{
		t.claim, t.lease, t.arrive, t.finish, t.append, t.laneUpdates, t.ask, t.decide, t.cancel, t.send, t.cards, t.rowUpdates,
		t.setFacts, t.charge, t.placeholder, t.move,
	} {
		if err := part(); err != nil {
			t.rollback()
			return nil, err
		}
	}
	return t.applied, nil
}

// step is one Change under way.
type step struct {
	*Store
	change  *bot.Change
	applied *bot.Applied
	before  counters
	undo    []func()
}

func (t *step) rollback() {
	for _, v := range slices.Backward(t.undo) {
		v()
	}
	t.counters = t.before
}

// put sets a value so that rollback takes it back.
func put[K comparable, V any](t *step, m map[K]V, key K, value V) {
	remember(t, m, key)
	m[key] = value
}

// drop deletes a value so that rollback brings it back.
func drop[K comparable, V any](t *step, m map[K]V, key K) {
	remember(t, m, key)
	delete(m, key)
}

func remember[K comparable, V any](t *step, m map[K]V, key K) {
	old, had := m[key]
	t.undo = append(t.undo, func() {
		if had {
			m[key] = old
		} else {
			delete(m, key)
		}
	})
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

func over(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }
