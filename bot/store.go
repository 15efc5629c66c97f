package bot

import (
	"context"
	"errors"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
)

// Errors of a Change; errors.Is works on them. A refused Change has changed nothing.
var (
	// ErrLost: another worker holds the lane, or its lease has expired; stop at once.
	ErrLost = errors.New("the lane is held by another worker")
	// ErrConflict: the journal has entries that this writer does not know.
	ErrConflict = journal.ErrConflict
	// ErrDecided: the approval is no longer pending.
	ErrDecided = errors.New("the question is already decided")
	// ErrHandled: the arrival has been handled by somebody else.
	ErrHandled = errors.New("the arrival is handled already")
	// ErrNotFound: no such row.
	ErrNotFound = errors.New("not found")
	// ErrTaken: the id of a new question exists, or an open question of the chat uses its short name; choose another.
	ErrTaken = errors.New("the name is already in use")
	// ErrInvalid: the Change itself is wrong (a programmer's mistake); the text says where.
	ErrInvalid = errors.New("invalid change")
)

// Writer makes changes. Apply is atomic, and durable when it returns; safe for concurrent use.
type Writer interface {
	Apply(ctx context.Context, change *Change) (*Applied, error)
}

// Stop is a turn in progress that somebody asked to stop.
type Stop struct {
	Session SessionKey
	Turn    string
}

// Reader reads what the loops need. Reads see every Change that was applied before. A limit of 0 or less means no
// limit. Times are in UTC.
type Reader interface {
	// Lane returns a lane; for an unknown session, an Idle lane with Fence 0.
	Lane(ctx context.Context, session SessionKey) (Lane, error)
	// Ready lists sessions of the channel and bot with work to do at now, oldest work first. The lane must be free
	// (never held, given back, or its lease has expired) and have work (a turn, or a waiting arrival). An idle lane is
	// ready for a waiting arrival; a running one always; a waiting one after NotBefore; a parked one if the session has
	// no open question; waiting and parked ones also if their turn was asked to stop.
	Ready(ctx context.Context, channel, bot string, now time.Time, limit int) ([]SessionKey, error)
	// Stops lists the turns that are to be stopped among those whose lane owner holds, by session: a process
	// asks for all its turns at once.
	Stops(ctx context.Context, owner string) ([]Stop, error)
	// Next lists waiting arrivals of a session in order.
	Next(ctx context.Context, session SessionKey, limit int) ([]Arrival, error)
	// Tickets lists, in order, what waits in a session (Place.SessionKey) or in all sessions of a chat (Place.ChatKey),
	// without its content.
	Tickets(ctx context.Context, scope string) ([]Ticket, error)
	// Busy lists the lanes of a chat (Place.ChatKey) that have a turn, by session.
	Busy(ctx context.Context, chat string) ([]Lane, error)
	// Express lists the waiting express arrivals and those that belong to no lane, in order.
	Express(ctx context.Context, channel, bot string, limit int) ([]Arrival, error)
	// Journal returns the entries of a session, from the one that begins the conversation on (the last that Begins,
	// included), that are numbered above after.
	Journal(ctx context.Context, session SessionKey, after int64) ([]journal.Entry, error)
	// Tail returns the end of a session's journal, like journal.Back with room bytes; it reads no more than that needs.
	Tail(ctx context.Context, session SessionKey, room int) (journal.Tail, error)
	// InChat lists the lanes of a chat (Place.ChatKey), by session, at most limit.
	InChat(ctx context.Context, chat string, limit int) ([]Lane, error)
	// Past lists what people have said in a session and what was answered, with the entries that begin its
	// conversations, newest first: of the entries numbered from from on and below before, whichever conversation they
	// belong to.
	Past(ctx context.Context, session SessionKey, from, before int64) ([]journal.Entry, error)
	// Due lists at most limit pending rows that this process has to deliver at now, by id. A row with EditRow waits
	// while that row is pending or sending; after that, Edit is set to that row's message, or remains "" (send a new
	// one) if that row was never sent.
	Due(ctx context.Context, channel, bot string, now time.Time, limit int) ([]Row, error)
	// Row returns one row; ErrNotFound.
	Row(ctx context.Context, id int64) (Row, error)
	// RowOf returns the row of a key that is not empty; ErrNotFound.
	RowOf(ctx context.Context, key string) (Row, error)
	// Stranded lists rows of this process in state sending. Those taken over from a process that died have Doubt set.
	Stranded(ctx context.Context, channel, bot string) ([]Row, error)
	// Lost lists rows in state unknown: somebody waits for them and has not been told that they may not have arrived.
	Lost(ctx context.Context, channel, bot string) ([]Row, error)
	Facts
	Approvals
	Inspector
}

// Facts reads small durable values.
type Facts interface {
	// Fact returns one value; "" if absent or expired at now.
	Fact(ctx context.Context, bucket, key string, now time.Time) (string, error)
	// FactsOf lists the live facts of a bucket whose keys begin with prefix, by key.
	FactsOf(ctx context.Context, bucket, prefix string, now time.Time) ([]Fact, error)
}

// Approvals reads questions.
type Approvals interface {
	// Approval returns a question by id; ErrNotFound.
	Approval(ctx context.Context, id string) (Approval, error)
	// ApprovalOf returns the question of a call; ErrNotFound.
	ApprovalOf(ctx context.Context, session SessionKey, call string) (Approval, error)
	// OpenApprovals lists open questions of a session ("" = all), oldest first.
	OpenApprovals(ctx context.Context, session SessionKey) ([]Approval, error)
	// GrantedInSession reports whether a question with this hash was approved with scope session in this session, and
	// returns it.
	GrantedInSession(ctx context.Context, session SessionKey, hash string) (Approval, bool, error)
	// AskedSince lists at most limit questions about calls of a tool that were asked after since, in all chats of the
	// bot, newest first.
	AskedSince(ctx context.Context, channel, bot, tool string, since time.Time, limit int) ([]Approval, error)
}

// Counts are the figures that /status and the metrics show.
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
	// Charges lists the charges since a day, by day and key. For some days each charge is kept; older ones are one sum
	// per scope and unit, without a key.
	Charges(ctx context.Context, sinceDay string) ([]Charge, error)
	// Used adds up the charges of a scope on some days, each of which is named once.
	Used(ctx context.Context, scope, unit string, days ...string) (int64, error)
	// Rows lists outbox rows of a session, newest last, at most limit.
	Rows(ctx context.Context, session SessionKey, limit int) ([]Row, error)
	// Lanes lists lanes of a channel and bot, by session, at most limit.
	Lanes(ctx context.Context, channel, bot string, limit int) ([]Lane, error)
	// ArrivalOf returns an arrival, finished or not, by the id that its channel gave it; ErrNotFound.
	ArrivalOf(ctx context.Context, channel, botID, id string) (Arrival, error)
	// DeadLetters lists arrivals that were given up, newest first.
	DeadLetters(ctx context.Context, limit int) ([]Arrival, error)
	// Backlog lists the arrivals that wait, in sessions or for none, that were accepted after one (Seq; 0 = all), in
	// order and without their content.
	Backlog(ctx context.Context, channel, bot string, after int64, limit int) ([]Arrival, error)
	// RowsIn lists outbox rows in a state with ids below before (0 = all), newest first. The states are
	// Pending, Sending and Unknown; and Dead, for which it lists only answers, replies and questions
	// that were given up for a reason.
	RowsIn(ctx context.Context, channel, bot string, state RowState, before int64, limit int) ([]Row, error)
	// Sums adds up the charges since a day, by day, scope and unit; the sums have no key.
	Sums(ctx context.Context, sinceDay string) ([]Charge, error)
}

// Store is the durable state of the service.
type Store interface {
	Writer
	Reader
}
