// Package keeping contains what the SQL stores and their callers share: errors, hooks, retention, what a sweep removed,
// schema versions, and splitting files into pieces.
package keeping

import (
	"errors"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/policy/reason"
)

// ErrClosed is returned by Apply after Close.
var ErrClosed = errors.New("the store is closed")

// ErrBuried is returned by Apply if other processes have declared this one dead and taken over its work. It can store
// nothing any more and must end.
var ErrBuried = errors.New("other processes have declared this one dead and taken over its work; restart it")

// Unavailable says that the database does not work, independent of the Change. Nothing was changed.
type Unavailable struct {
	Path   string
	Op     string        // what was attempted: "open", "read", "commit"
	Reason reason.Reason // for people, including what to do
	Err    error         // of the driver; nil = none
}

// Error implements error.
func (u *Unavailable) Error() string {
	text := fmt.Sprintf("%s %s: %s", u.Op, u.Path, u.Reason)
	if u.Err != nil {
		text += fmt.Sprintf(" (%v)", u.Err)
	}
	return text
}

// Advice says what is wrong and what to do, without paths.
func (u *Unavailable) Advice() reason.Reason { return u.Reason }

// Unwrap gives the driver's error.
func (u *Unavailable) Unwrap() error { return u.Err }

// Hooks observe a store. AfterCommit gets the Changes of one transaction that were not refused. The hooks can be called
// on any goroutine.
type Hooks struct {
	BeforeCommit func(changes []*bot.Change)
	AfterCommit  func(changes []*bot.Change) // before the callers are answered
	Statement    func(query string)          // before each run of a statement, on any goroutine
	Took         func(d time.Duration)       // after a commit of Changes: how long it took to become durable
}

// Retention says how long data is kept after it is no longer needed; 0 = forever.
type Retention struct {
	// Journal is for entries from before a new conversation, counted from its beginning, for decided questions, and for
	// lanes that nothing refers to.
	Journal time.Duration
	Outbox  time.Duration // rows that were delivered or given up
	Blobs   time.Duration // files, since they were last put for a session
}

// Swept says what a Sweep removed.
type Swept struct {
	Bodies   int64 // of arrivals
	Arrivals int64
	Contents int64 // of outbox rows
	Facts    int64
	Outputs  int64 // of tools
	Charges  int64 // added to the sums of their days
	Rows     int64 // of the outbox
	Entries  int64 // of journals
	Asked    int64 // questions
	Lanes    int64
	Sums     int64 // of charges of a day
	Blobs    int64 // files of sessions, and uploads that were never completed
}
