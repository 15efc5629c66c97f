// Package processes knows which processes work on one store, and keeps what this one remembers in step with what the
// others have stored.
package processes

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// short is how many letters of an owner people are shown: enough to tell processes apart, and to find one in the log.
const short = 8

// Living are the processes that work on a store, as they were last read. Safe for concurrent use.
type Living struct {
	owner  string
	shared bool
	owners atomic.Pointer[[]string] // nil = never read
}

// New makes the Living of the process named owner. shared says that there may be others; without it this process is
// alone until Learn says otherwise.
func New(owner string, shared bool) *Living { return &Living{owner: owner, shared: shared} }

// Learn takes the owners of the processes that live now, and says whether they are not those of the last time.
func (l *Living) Learn(owners []string) (changed bool) {
	before := l.owners.Swap(&owners)
	return before == nil || !slices.Equal(*before, owners)
}

// Lives says whether a process works on the store. As long as nothing was learnt, every process that may share does:
// nothing is taken from anybody.
func (l *Living) Lives(owner string) bool {
	list := l.owners.Load()
	return owner == l.owner || (l.shared && list == nil) || (list != nil && slices.Contains(*list, owner))
}

// Eldest says whether this process does what one of those that live has to do for those that are gone. For a moment
// there may be two that do, so that work has to come to the same when it is done twice.
func (l *Living) Eldest() bool {
	list := l.owners.Load()
	if list == nil {
		return !l.shared
	}
	return len(*list) > 0 && slices.Min(*list) == l.owner
}

// Count is how many processes work on the store; two as long as nothing was learnt.
func (l *Living) Count() int {
	if list := l.owners.Load(); list != nil {
		return max(1, len(*list))
	}
	return 2
}

// Names are the processes for people: this one first.
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

// Every is the time between two rounds of Follow. There are no hints between processes: losing one would cost as much
// as waiting for the next round, and a round is a few queries with an index.
const Every = time.Second

// Follow makes rounds until ctx ends, the first one at once. A round takes the looks in their order and ends at the
// first that fails: what comes later may need what an earlier one has read. Failures are logged once, until a round
// succeeds. It always returns nil.
func Follow(ctx context.Context, log zerolog.Logger, looks ...func(ctx context.Context) error) error {
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	failing := false
	for {
		err := round(ctx, looks)
		if err != nil && ctx.Err() == nil && !failing {
			log.Warn().Err(err).Msg("what other processes have stored is not read; tried again")
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
