package app

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/zephbot/zephbot/tools/mcp"
)

// followEvery is how often a process looks at what the others have stored. There are no hints between processes: losing
// one would cost as much as waiting for the next look, and a look is a few queries with an index.
const followEvery = time.Second

// neighbours are the processes that work on the same database.
type neighbours struct {
	owners atomic.Pointer[[]string] // of leases, as they were last read; nil = not yet
}

// lives says whether a process works on the database. As long as nobody was asked, everybody does: nothing is taken
// from anybody.
func (c *Core) lives(owner string) bool {
	list := c.neighbours.owners.Load()
	return owner == c.owner || (c.shared() && list == nil) || (list != nil && slices.Contains(*list, owner))
}

// eldest says whether this process does what one of those that live has to do for those that are gone. For a moment two
// may, which is harmless there.
func (c *Core) eldest() bool {
	list := c.neighbours.owners.Load()
	return list == nil && !c.shared() || list != nil && len(*list) > 0 && slices.Min(*list) == c.owner
}

// processes is how many processes work on the database, as far as this one knows.
func (c *Core) processes() int {
	if list := c.neighbours.owners.Load(); list != nil {
		return max(1, len(*list))
	}
	return 2
}

// together names the processes that work on the database, for people: this one first.
func (c *Core) together() []string {
	const short = 8 // letters: enough to tell them apart, and to find one in the log
	names := []string{c.owner[:short]}
	if list := c.neighbours.owners.Load(); list != nil {
		for _, owner := range *list {
			if owner != c.owner {
				names = append(names, owner[:min(short, len(owner))])
			}
		}
	}
	return names
}

// following keeps what this process remembers in step with what other processes have stored, until ctx ends.
func (s *service) following(ctx context.Context) error {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	failing := false
	for {
		err := s.follow(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			s.log.Warn().Err(err).Msg("what other processes have stored is not read; tried again")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// follow looks once.
func (s *service) follow(ctx context.Context) error {
	c := s.core
	living, err := c.stores.Living(ctx)
	if err != nil {
		return err
	}
	var before []string
	if list := c.neighbours.owners.Swap(&living); list != nil {
		before = *list
	}
	moved, err := c.moves.Refresh(ctx, c.stores.Bot, c.now())
	if err != nil {
		return err
	}
	if moved {
		c.renameRuns()
		s.meter.Forget() // the charges have moved
	}
	if err := c.news.Follow(ctx); err != nil {
		return err
	}
	if err := (background{c}).follow(ctx); err != nil {
		return err
	}
	if err := c.servers.Sync(ctx); err != nil && !errors.Is(err, mcp.ErrNotRunning) {
		return err
	}
	if !slices.Equal(before, living) {
		c.settleAudit(ctx) // of a process that is gone
	}
	return s.desk.TakeUp(ctx)
}
