package telegram

import (
	"context"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// leaderBucket is where the store keeps which process leads.
const leaderBucket = "leader"

// Leader decides which of several processes polls for a bot. The leader is a fact, which the store deletes when that
// process is gone (leaderBucket). A process that was considered dead can no longer store anything, so that what it
// still fetches is neither stored nor confirmed.
type Leader struct {
	store HookStore
	key   string
	owner string
	now   func() time.Time
}

// NewLeader returns a Leader for a bot. owner identifies this process, as in its leases.
func NewLeader(store HookStore, botID, owner string, now func() time.Time) *Leader {
	return &Leader{store: store, key: "poll/" + botID, owner: owner, now: now}
}

// Lead reports whether this process leads. If none does, it takes the lead.
func (l *Leader) Lead(ctx context.Context) (bool, error) {
	holder, err := l.store.Fact(ctx, leaderBucket, l.key, l.now())
	if err != nil {
		return false, fmt.Errorf("who polls: %w", err)
	}
	if holder != "" {
		return holder == l.owner, nil
	}
	applied, err := l.store.Apply(ctx, &bot.Change{
		FactsIf: []bot.Fact{{Bucket: leaderBucket, Key: l.key, Value: l.owner}},
	})
	if err != nil {
		return false, fmt.Errorf("who polls: %w", err)
	}
	return applied.Set[0], nil
}

// Resign gives up the lead, so that another process can take it at once. Nobody else can have taken it in the meantime:
// the store lets only living processes change anything, and deletes the fact of a dead one.
func (l *Leader) Resign(ctx context.Context) error {
	holder, err := l.store.Fact(ctx, leaderBucket, l.key, l.now())
	if err != nil || holder != l.owner {
		return err
	}
	if _, err := l.store.Apply(ctx, &bot.Change{Facts: []bot.Fact{{Bucket: leaderBucket, Key: l.key}}}); err != nil {
		return fmt.Errorf("give up polling: %w", err)
	}
	return nil
}
