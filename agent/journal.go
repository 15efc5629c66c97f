// Package agent holds the conversation: a turn is a state machine over a stored journal, moved by a Runner that knows
// no channel and no store.
package agent

import (
	"context"

	"github.com/zephbot/zephbot/agent/journal"
)

// Journal is the journal of one session as the holder of its lane sees it. One goroutine at a time appends; a parallel
// batch is serialised by the Runner.
type Journal interface {
	// Load reads the end of the journal: the last turn, and of those before it the last ones, until they have room
	// bytes (see journal.Back).
	Load(ctx context.Context, room int) (journal.Tail, error)
	// Append stores entries durably and numbers them; ErrConflict when the lane or the journal has moved on.
	Append(ctx context.Context, entries ...journal.Entry) ([]journal.Entry, error)
}

// Pending is a Journal that Load may read ahead of: the entry with which the turn begins is on its way to the disk. The
// model is asked meanwhile.
type Pending interface {
	Journal
	// Stored waits until all that Load gave is durable. An error means that it never will be: nothing that the model
	// said counts, except its price. It does not end with a context, because the commit decides, and soon.
	Stored() error
}
