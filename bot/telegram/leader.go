package telegram

import (
	"context"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// leaderBucket is where a store knows who leads what.
const leaderBucket = "leader"

// Leader decides which of several processes polls for a bot. Who leads is a fact, which the store deletes when the
// process is gone (leaderBucket): a process that was taken for dead can store nothing any more, so what it still
// fetches is neither stored nor confirmed.
type Leader struct {
	store HookStore
	key   string
	owner string
	now   func() time.Time
}

// NewLeader makes a Leader for a bot. owner names this process as its leases do.
func NewLeader(store HookStore, botID, owner string, now func() time.Time) *Leader {
	return &Leader{store: store, key: "poll/" + botID, owner: owner, now: now}
}

// Lead says whether this process leads. When nobody does, it takes the lead.
func (l *Leader) Lead(ctx context.Context) (bool, error) {
	holder, err := l.store.Fact(ctx, leaderBucket, l.key, l.now())
	if err != nil {
		return false, fmt.Errorf("who polls: %w", err)
	}
	if holder != "" {
		return holder == l.owner, nil
	}
	applied, err := l.store.Apply(ctx, &bot.Change{FactsIf: []bot.Fact{{Bucket: leaderBucket, Key: l.key, Value: l.owner}}})
	if err != nil {
		return false, fmt.Errorf("who polls: %w", err)
	}
	return applied.Set[0], nil
}

// Resign gives the lead back, for another process to take it at once. Nobody else can have taken it meanwhile: the
// store lets only living processes change anything, and deletes the fact of a dead one.
func (l *Leader) Resign(ctx context.Context) error {
	holder, err := l.store.Fact(ctx, leaderBucket, l.key, l.now())
	if err != nil || holder != l.owner {
		return err
	}
	if _, err := l.store.Apply(ctx, &bot.Change{Facts: []bot.Fact{{Bucket: leaderBucket, Key: l.key}}}); err != nil {
		return fmt.Errorf("polling given back: %w", err)
	}
	return nil
}
