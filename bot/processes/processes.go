// Package processes tracks which processes use the same store, and keeps what this process holds in memory in step with
// what the others have stored.
package processes

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// short is how many letters of an owner are shown to people: enough to tell processes apart and to find one in the log.
const short = 8

// Living are the processes that use a store, as last read. It is safe for concurrent use.
type Living struct {
	owner  string
	shared bool
	owners atomic.Pointer[[]string] // nil = never read
}

// New returns the Living of the process named owner. shared means that there may be others; without it this process is
// alone until Learn reports otherwise.
func New(owner string, shared bool) *Living { return &Living{owner: owner, shared: shared} }

// Learn sets the owners of the running processes and reports whether they have changed.
func (l *Living) Learn(owners []string) (changed bool) {
	before := l.owners.Swap(&owners)
	return before == nil || !slices.Equal(*before, owners)
}

// Lives reports whether a process is running. Until the first Learn, every process of a shared store is assumed to be
// running, so that nothing is taken over too early.
func (l *Living) Lives(owner string) bool {
	list := l.owners.Load()
	return owner == l.owner || (l.shared && list == nil) || (list != nil && slices.Contains(*list, owner))
}

// Eldest reports whether this process does the work that exactly one running process has to do for dead ones. For a
// moment two processes may both be told so: such work must have the same result when it is done twice.
func (l *Living) Eldest() bool {
	list := l.owners.Load()
	if list == nil {
		return !l.shared
	}
	return len(*list) > 0 && slices.Min(*list) == l.owner
}

// Count is the number of processes that use the store; until the first Learn of a shared store, two.
func (l *Living) Count() int {
	if list := l.owners.Load(); list != nil {
		return max(1, len(*list))
	}
	return 2
}

// Names lists the processes for people, this one first.
func (l *Living) Names() []string {
	names := []string{brief(l.owner)}
	if list := l.owners.Load(); list != nil {
		for _, owner := range *list {
			if owner != l.owner {
				names = append(names, brief(owner))
			}
		}
	}
	return names
}

func brief(owner string) string { return owner[:min(short, len(owner))] }

// Every is the time between two rounds of Follow. Processes do not notify each other: a lost notification would cost as
// much as waiting for the next round, and a round is a few queries that use an index.
const Every = time.Second

// Follow makes rounds until ctx ends, starting at once. A round calls the looks in order and ends at the first that
// fails, because a later one may need what an earlier one has read. Failures are logged once, until a round succeeds.
// It always returns nil.
func Follow(ctx context.Context, log zerolog.Logger, looks ...func(ctx context.Context) error) error {
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	failing := false
	for {
		err := round(ctx, looks)
		if err != nil && ctx.Err() == nil && !failing {
			log.Warn().Err(err).Msg("cannot read what other processes have stored; trying again")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func round(ctx context.Context, looks []func(ctx context.Context) error) error {
	for _, look := range looks {
		if err := look(ctx); err != nil {
			return err
		}
	}
	return nil
}
