// Package keeping is what the stores in SQL have in common for those who open and watch them: that a database does not
// work, what is kept for how long, what a sweep removed, and how contents of files are cut into pieces.
package keeping

import (
	"errors"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// ErrClosed is returned by Apply after Close.
var ErrClosed = errors.New("the store is closed")

// ErrBuried is returned by Apply when other processes have taken this one for dead and gone on with its work: it can
// store nothing any more, and has to end.
var ErrBuried = errors.New("other processes have taken this one for dead and gone on with its work; start it anew")

// Unavailable says that the database does not work, whatever the Change was. Nothing was changed.
type Unavailable struct {
	Path   string
	Op     string // what was tried: "open", "read", "commit"
	Reason string // a plain sentence with what to do
	Err    error  // of the driver; nil when there is none
}

// Error implements error.
func (u *Unavailable) Error() string {
	text := fmt.Sprintf("%s %s: %s", u.Op, u.Path, u.Reason)
	if u.Err != nil {
		text += fmt.Sprintf(" (%v)", u.Err)
	}
	return text
}

// Advice says in plain words what is wrong and what to do, without paths.
func (u *Unavailable) Advice() string { return u.Reason }

// Unwrap gives the driver's error.
func (u *Unavailable) Unwrap() error { return u.Err }

// Hooks watch a store. The changes of those of commits are those of one transaction that were not refused; which
// goroutine calls is the store's matter.
type Hooks struct {
	BeforeCommit func(changes []*bot.Change)
	AfterCommit  func(changes []*bot.Change) // before the callers are answered
	Statement    func(query string)          // before each run of a statement, on any goroutine
}

// Retention says for how long what nobody needs any more is kept all the same; 0 = for ever.
type Retention struct {
	// what was said before a conversation was begun anew, from then on; decided questions; lanes that nothing refers to
	Journal time.Duration
	Outbox  time.Duration // rows that were delivered or given up
	Blobs   time.Duration // files, from the last time that they were put for a session
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
	Blobs    int64 // files that a session had, and those that never came in as a whole
}
