// Package agent runs the conversation. A turn is a state machine over a stored journal, advanced by a Runner that knows
// no channel and no store.
package agent

import (
	"context"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/tools"
)

// Journal is the journal of one session as seen by the holder of its lane (the lock that one worker holds on a
// session). It is for one goroutine; the Runner serialises the appends of a parallel batch.
type Journal interface {
	// Load reads the end of the journal: the last turn, and as many earlier ones as fit into room bytes (see
	// journal.Back).
	Load(ctx context.Context, room int) (journal.Tail, error)
	// Append stores entries durably and numbers them. It fails with ErrConflict if another worker wrote to the journal
	// or holds the lane.
	Append(ctx context.Context, entries ...journal.Entry) ([]journal.Entry, error)
}

// Asker is a Journal that can put questions to people while the turn goes on, so that nobody waits for a question until
// everything else has ended. The turn parks later with the same questions, which are asked once.
type Asker interface {
	Ask(ctx context.Context, questions []tools.Question, stats journal.Stats) error
}
