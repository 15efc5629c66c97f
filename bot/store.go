package bot

import (
	"context"
	"errors"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
)

// Errors of a Change; errors.Is works on them. A refused Change changed nothing.
var (
	// ErrLost: the lane is held by another worker or its lease ran out; stop at once.
	ErrLost = errors.New("the lane is held by another worker")
	// ErrConflict: the journal has entries that this writer does not know.
	ErrConflict = journal.ErrConflict
	// ErrDecided: the approval is no longer pending.
	ErrDecided = errors.New("the question is already decided")
	// ErrHandled: somebody else has handled the arrival.
	ErrHandled = errors.New("the arrival is handled already")
	// ErrNotFound: no such row.
	ErrNotFound = errors.New("not found")
	// ErrTaken: the id of a new question exists, or its short name is in use by an open question of the chat; choose
	// another.
	ErrTaken = errors.New("the name is already in use")
	// ErrInvalid: the Change itself is wrong (a programmer's mistake); the text says where.
	ErrInvalid = errors.New("invalid change")
)

// Writer makes changes. Apply is atomic and durable when it returns; safe for concurrent use.
type Writer interface {
	Apply(ctx context.Context, change *Change) (*Applied, error)
}

// Stop is a turn in progress that somebody asked to stop.
type Stop struct {
	Session SessionKey
	Turn    string
}

// Reader reads what the loops need. Reads see every Change applied before. A limit of 0 or less means no limit. Times
// come back in UTC.
type Reader interface {
	// Lane reads a lane; a session never seen is an Idle lane with Fence 0.
	Lane(ctx context.Context, session SessionKey) (Lane, error)
	// Ready lists sessions of the channel and bot with work to do at now, oldest work first. The lane must be free
	// (never held, given back, or its lease is over) and have work (a turn, or a waiting arrival). An idle lane is
	// ready for a waiting arrival; a running one always; a waiting one after NotBefore; a parked one when the session
	// has no open question; waiting and parked ones too when the stop of their turn was asked for.
	Ready(ctx context.Context, channel, bot string, now time.Time, limit int) ([]SessionKey, error)
	// Stops lists the turns that are to be stopped among those whose lane owner holds, by session: a process asks for all
	// its turns at once.
	Stops(ctx context.Context, owner string) ([]Stop, error)
	// Next lists waiting arrivals of a session in order.
	Next(ctx context.Context, session SessionKey, limit int) ([]Arrival, error)
	// Tickets lists what waits in a session (Place.SessionKey) or in all sessions of a chat (Place.ChatKey), in order,
	// without reading what it says.
	Tickets(ctx context.Context, scope string) ([]Ticket, error)
	// Busy lists the lanes of a chat (Place.ChatKey) that have a turn, by session.
	Busy(ctx context.Context, chat string) ([]Lane, error)
	// Express lists arrivals that overtake or belong to no lane, in order.
	Express(ctx context.Context, channel, bot string, limit int) ([]Arrival, error)
	// Journal reads entries of a session from the one that begins the conversation on (the last that Begins; it is
	// included), numbered above after.
	Journal(ctx context.Context, session SessionKey, after int64) ([]journal.Entry, error)
	// Tail reads the end of a session's journal, as journal.Back does with room bytes; it reads no more than that
	// needs.
	Tail(ctx context.Context, session SessionKey, room int) (journal.Tail, error)
	// Due lists rows that this process has to deliver at now in order of id: pending ones that are due, at most limit.
	// A row with EditRow waits while that row is pending or sending; then Edit is filled in with its message, and stays
	// "" (send it) when that row never got out.
	Due(ctx context.Context, channel, bot string, now time.Time, limit int) ([]Row, error)
	// Row reads one row; ErrNotFound.
	Row(ctx context.Context, id int64) (Row, error)
	// Stranded lists rows of this process in state sending. What it has from a process that died has Doubt set.
	Stranded(ctx context.Context, channel, bot string) ([]Row, error)
	// Lost lists rows in state unknown: somebody waits for them and has not been told that they may not have arrived.
	Lost(ctx context.Context, channel, bot string) ([]Row, error)
	Facts
	Approvals
	Inspector
}

// Facts reads small durable values.
type Facts interface {
	// Fact reads one value; "" when absent or expired at now.
	Fact(ctx context.Context, bucket, key string, now time.Time) (string, error)
	// FactsOf lists the live facts of a bucket whose keys begin with prefix, by key.
	FactsOf(ctx context.Context, bucket, prefix string, now time.Time) ([]Fact, error)
}

// Approvals reads questions.
type Approvals interface {
	// Approval finds by id; ErrNotFound.
	Approval(ctx context.Context, id string) (Approval, error)
	// ApprovalOf finds the question of a call; ErrNotFound.
	ApprovalOf(ctx context.Context, session SessionKey, call string) (Approval, error)
	// OpenApprovals lists open questions of a session ("" = all), oldest first.
	OpenApprovals(ctx context.Context, session SessionKey) ([]Approval, error)
	// GrantedInSession says whether a question with this hash was approved with scope session in this session, and by
	// whom.
	GrantedInSession(ctx context.Context, session SessionKey, hash string) (Approval, bool, error)
	// AskedSince lists questions about calls of a tool that were asked after since, in all chats of the bot, newest
	// first, at most limit.
	AskedSince(ctx context.Context, channel, bot, tool string, since time.Time, limit int) ([]Approval, error)
}

// Counts is what /status and the metrics show.
type Counts struct {
	Running, Parked, Waiting int // lanes
	Queued                   int // waiting arrivals
	Undelivered              int // outbox rows pending or sending
	Lost                     int // outbox rows that may not have arrived, and nobody was told
	Sessions                 int // lanes ever seen
	DeadLetters              int
}

// Inspector reads for people: /status, the simulator's inspector, tests.
type Inspector interface {
	Counts(ctx context.Context, channel, bot string) (Counts, error)
	// Charges lists what was charged since a day, by day and key: each charge for some days, later one sum a scope and
	// unit, without a key.
	Charges(ctx context.Context, sinceDay string) ([]Charge, error)
	// Used adds up the charges of a scope on some days, each of which is named once.
	Used(ctx context.Context, scope, unit string, days ...string) (int64, error)
	// Rows lists outbox rows of a session, newest last, at most limit.
	Rows(ctx context.Context, session SessionKey, limit int) ([]Row, error)
	// Lanes lists lanes of a channel and bot, by session, at most limit.
	Lanes(ctx context.Context, channel, bot string, limit int) ([]Lane, error)
	// ArrivalOf finds an arrival, finished or not, by the id that its channel gave it; ErrNotFound.
	ArrivalOf(ctx context.Context, channel, botID, id string) (Arrival, error)
	// DeadLetters lists arrivals that were given up, newest first.
	DeadLetters(ctx context.Context, limit int) ([]Arrival, error)
}

// Store is the durable memory of the service.
type Store interface {
	Writer
	Reader
}
