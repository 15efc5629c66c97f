package news

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// endBucket holds which commands are to end, by the id of the run: what a process wants of the one that runs them,
// which looks each second.
const endBucket = "background_end"

// endFor is how long a command is wanted to end. Nobody deletes a wish about a command of a process that died.
const endFor = time.Hour

// End gives facts that have other processes end the commands of a session that run there, one fact a command. Commands
// that are to end already are left out, and so are those of this process and of processes that do not live.
func (n *Ledger) End(ctx context.Context, session bot.SessionKey) ([]bot.Fact, error) {
	ending, err := n.Ending(ctx)
	if err != nil {
		return nil, err
	}
	now := n.deps.Now()
	var list []bot.Fact
	for _, name := range n.deps.Moves.Names(session) {
		runs, err := n.deps.Store.FactsOf(ctx, runBucket, string(name)+"/", now)
		if err != nil {
			return nil, fmt.Errorf("read the commands in the background: %w", err)
		}
		if err := n.meetProcesses(ctx, runs); err != nil {
			return nil, err
		}
		for _, f := range runs {
			if run, ok := n.readElsewhere(f); ok && !ending[run.ID] {
				list = append(list, bot.Fact{Bucket: endBucket, Key: run.ID, Value: "1", Expires: now.Add(endFor)})
			}
		}
	}
	return list, nil
}

// Ending returns the ids of the commands that are to end, of whatever process.
func (n *Ledger) Ending(ctx context.Context) (map[string]bool, error) {
	facts, err := n.deps.Store.FactsOf(ctx, endBucket, "", n.deps.Now())
	if err != nil {
		return nil, fmt.Errorf("read which commands are to end: %w", err)
	}
	ids := make(map[string]bool, len(facts))
	for _, f := range facts {
		ids[f.Key] = true
	}
	return ids, nil
}

// readElsewhere reads a command that was begun; false if no other living process runs it.
func (n *Ledger) readElsewhere(f bot.Fact) (item, bool) {
	var i item
	if err := json.Unmarshal([]byte(f.Value), &i); err != nil {
		n.deps.Log.Error().Err(err).Str("news", f.Key).Msg("command in the background not readable")
		return i, false
	}
	return i, i.ID != "" && i.Owner != n.deps.Owner && n.deps.Lives(i.Owner)
}

// Elsewhere reports whether another process runs a command of a session in the background, as this one last saw it.
func (n *Ledger) Elsewhere(session bot.SessionKey) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.others[n.deps.Moves.Current(session)]
}
