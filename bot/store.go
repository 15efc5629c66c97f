package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// Arrival is an accepted update, as it came.
type Arrival struct {
	Seq      int64 // given by the store: the order of acceptance
	Channel  string
	Bot      string
	ID       string     // with Channel and Bot unique for ever (≥ 7 days)
	Source   Source     // where it came from; "" = the channel, in what was stored before there were sources
	Session  SessionKey // lane; "" for arrivals that belong to none (presses, unknown kinds)
	Express  bool       // acts on a running turn: does not wait in the lane
	Raw      []byte     // the update, byte by byte
	At       time.Time
	Attempts int
	Problem  string // why it is a dead letter
}

// Ticket is an arrival in its place in a session, without its content.
type Ticket struct {
	Seq     int64
	Session SessionKey
	At      time.Time
}

// LaneState says what a session does.
type LaneState string

// States of a lane. A parked lane waits for a person; a waiting one for NotBefore; both hold their turn.
const (
	Idle    LaneState = "idle"
	Running LaneState = "running"
	Parked  LaneState = "parked"
	Waiting LaneState = "waiting"
)

// Lane is the right to work on one session, and what is known of the session's work.
type Lane struct {
	Session SessionKey
	Place   Place
	// id of the place of its files, which it keeps when its chat gets a new id; "" = it was not claimed since there are
	// ids
	Workspace string
	State     LaneState
	Fence     int64     // grows with every claim
	Owner     string    // process that holds it; "" = nobody
	Until     time.Time // end of the lease
	Turn      string    // turn in progress; "" = none
	Arrival   int64     // Seq of the arrival that began the turn
	Since     time.Time // when the turn began, or was parked
	NotBefore time.Time // Waiting: when to try again
	Failing   time.Time // first failure of the model in this turn; zero = none
	Stop      string    // turn that somebody asked to stop; "" = none
	Last      int64     // number of the last journal entry
	Live      int64     // outbox row of the placeholder of this turn; 0 = none
	Notice    string    // turn during which "I will get to this" was said
	Caller    string    // of the turn in progress
}

// WorkspaceID is the id of the place of the session's files. That of a lane that says none is made of its key.
func (l *Lane) WorkspaceID() string {
	if l.Workspace != "" {
		return l.Workspace
	}
	return WorkspaceID(string(l.Session))
}

// Lease is what a worker holds. It counts until somebody else claims the lane or it is given back: the fence decides,
// not the clock, so a worker whose lease ran out unnoticed goes on as long as nobody took over.
type Lease struct {
	Session SessionKey
	Fence   int64
}

// Claim takes a free lane (nobody holds it, or the lease ended at or before Now). Fence is the fence as read before;
// another claim since → ErrLost. The state stays as it is; Place is kept when Place.Channel is empty.
type Claim struct {
	Session SessionKey
	Place   Place
	// Workspace becomes that of a lane that has none.
	Workspace string
	Fence     int64
	Owner     string
	Now       time.Time
	Until     time.Time
	// Arrival makes the claim depend on an arrival that still waits: ErrConflict when it does not. 0 = on none.
	Arrival int64
	// Arrives says that the Change brings the one arrival with which a turn begins: it becomes Lane.Arrival.
	// ErrConflict when it is known already, or when another arrival of the session waits, whose turn it is then.
	Arrives bool
}

// LaneUpdate sets what is not nil. Release counts last.
type LaneUpdate struct {
	Session SessionKey
	// for a lane that is made by the update: without a place neither Lanes nor Counts find it before its first Claim
	Place     *Place
	State     *LaneState
	Turn      *string
	Arrival   *int64
	Since     *time.Time
	NotBefore *time.Time
	Failing   *time.Time
	Stop      *string
	Live      *int64
	Notice    *string
	Caller    *string
	Until     *time.Time // extends the lease
	Release   bool       // gives the lease back
}

// ApprovalState is the state of a question.
type ApprovalState string

// States of a question. Everything but Open is final.
const (
	Open      ApprovalState = "pending"
	Approved  ApprovalState = "approved"
	Denied    ApprovalState = "denied"
	Expired   ApprovalState = "expired"
	Withdrawn ApprovalState = "cancelled"
)

// MovedBucket holds, by the new id of a group, the id it had before: who was admitted there is admitted here.
const MovedBucket = "moved"

// LeaderBucket holds, by what there is to lead, the process that leads (the owner of its leases). A store deletes what
// a process leads when that is gone.
const LeaderBucket = "leader"

// ResetBucket holds, by session, when its conversation began anew (RFC 3339): what was approved "for this session"
// before counts no more.
const ResetBucket = "reset"

// Scope of an approval.
const (
	Once    = "once"
	Session = "session"
	Always  = "always"
	// Tool approves every call of a tool that only reads, in one conversation.
	Tool = "tool"
)

// Approval is a question to a person, and its decision.
type Approval struct {
	ID      string // 22 characters, 128 random bits: goes into callback data
	Short   string // for /approve: unique among open ones of a chat
	Session SessionKey
	Turn    string
	Call    string
	Place   Place
	Caller  string // who asked for the work
	Tool    string
	Hash    string          // what is approved: tool, definition, arguments, caller
	Body    json.RawMessage // tools.Question
	State   ApprovalState
	Scope   string   // of the decision
	By      string   // caller id of who decided
	ByName  string   // display name of who decided
	Votes   []string // caller ids that approved so far, where several are needed
	Needed  int      // approvals needed, ≥ 1
	Created time.Time
	Expires time.Time
	Decided time.Time
	Row     int64 // outbox row of the card
}

// Decision moves an open question; ErrDecided when it is not open any more. Votes are added to those stored, each once,
// so that two people who press at the same time on two replicas are both counted.
type Decision struct {
	ID string
	// Open adds a vote only (By votes too); the vote that makes Needed complete approves: Applied.Decided says so
	State  ApprovalState
	Scope  string
	By     string
	ByName string
	Votes  []string
	At     time.Time
}

// Fact is a small durable value. Buckets in use are constants of the packages that own them.
type Fact struct {
	Bucket  string
	Key     string
	Value   string
	Expires time.Time // zero = never
}

// Charge is a use of quota, mirrored so that counters can be rebuilt.
type Charge struct {
	Key   string // unique: a second insert is ignored
	Scope string // "user/telegram:42", "chat/telegram/1/bot/-100", "bot/telegram/1"
	Unit  string // turns, tokens, microusd
	Day   string // 2006-01-02, the day the reservation was made
	N     int64
}

// Append adds entries to a session's journal. After is the number of the last entry the writer knows; a mismatch is
// ErrConflict.
type Append struct {
	Session SessionKey
	After   int64
	Entries []journal.Entry
}

// Change is one atomic step: everything in it happens, or nothing. Order within: claim, lease check, then the rest as
// listed; Move comes last.
type Change struct {
	Claim  *Claim
	Lease  *Lease // checked: ErrLost
	Arrive []Arrival
	// the arrival that the Change is the handling of: finished by it; ErrHandled when it no longer waits. 0 = none
	Handles int64
	Done    []int64      // arrivals finished, dead letters too; again is no error, an unknown one is ErrNotFound
	Retry   []DeadLetter // arrivals whose handling failed: attempts + 1; nothing when it no longer waits
	Dead    []DeadLetter // arrivals given up; nothing when it no longer waits
	Append  *Append
	Lanes   []LaneUpdate // unknown sessions are made
	Ask     []Approval
	Decide  []Decision
	Cancel  *Cancel
	Send    []Row // IDs are given in Applied.Rows; a doubled Key is skipped and gives the old ID
	Cards   []Card
	Rows    []RowUpdate
	Facts   []Fact // set; "" value deletes
	FactsIf []Fact // set only when absent or expired by the store's clock: Applied.Set says which
	Charges []Charge
	Move    *Move
	// PlaceholderOf is the session whose lane gets Send[0] as its placeholder (Lane.Live); "" = none.
	PlaceholderOf SessionKey
}

// Validate finds what is wrong with a Change whatever the store holds; every Writer calls it first. Errors are
// ErrInvalid.
func (c *Change) Validate() error {
	return errors.Join(c.validateParts(), c.validateLists())
}

// invalid is ErrInvalid with its reason when wrong.
func invalid(wrong bool, what string) error {
	if wrong {
		return fmt.Errorf("%w: %s", ErrInvalid, what)
	}
	return nil
}

// validateParts looks at what a Change has once.
func (c *Change) validateParts() error {
	return errors.Join(
		invalid(c.Claim != nil && (c.Claim.Session == "" || c.Claim.Owner == ""), "a claim needs a session and an owner"),
		invalid(c.Claim != nil && c.Claim.Arrives && !c.arrives(c.Claim.Session), "a claim that arrives needs the one arrival of its session"),
		invalid(c.Lease != nil && c.Lease.Session == "", "a lease needs a session"),
		invalid(c.Append != nil && c.Append.Session == "", "an append needs a session"),
		invalid(c.Cancel != nil && c.Cancel.Session == "", "a cancel needs a session"),
		invalid(c.Move != nil && (c.Move.From == "" || c.Move.To == "" || c.Move.From == c.Move.To), "a move needs two different chat ids"),
		invalid(c.PlaceholderOf != "" && len(c.Send) == 0, "a placeholder needs a row to send"),
	)
}

// validateLists looks at what a Change has any number of.
// arrives says whether the Change brings one arrival, and that it waits in the session's lane.
func (c *Change) arrives(session SessionKey) bool {
	return len(c.Arrive) == 1 && c.Arrive[0].Session == session && !c.Arrive[0].Express
}

func (c *Change) validateLists() error {
	var errs []error
	for i := range c.Arrive {
		errs = append(errs, invalid(c.Arrive[i].Channel == "" || c.Arrive[i].ID == "", "an arrival needs a channel and an id"))
	}
	for i := range c.Lanes {
		errs = append(errs, invalid(c.Lanes[i].Session == "", "a lane update needs a session"))
	}
	for i := range c.Ask {
		errs = append(errs, invalid(c.Ask[i].ID == "" || c.Ask[i].Session == "", "a question needs an id and a session"))
	}
	for i := range c.Cards {
		errs = append(errs, invalid(c.Cards[i].Send < 0 || c.Cards[i].Send >= len(c.Send), "a card points to no row of the change"))
	}
	for i := range c.Rows {
		errs = append(errs, invalid(len(c.Rows[i].From) == 0 || c.Rows[i].To == "", "a row update needs states to come from and one to go to"))
	}
	for i := range c.FactsIf {
		errs = append(errs, invalid(c.FactsIf[i].Value == "", "a fact that is set if absent needs a value"))
	}
	for i := range c.Charges {
		errs = append(errs, invalid(c.Charges[i].Key == "", "a charge needs a key"))
	}
	return errors.Join(errs...)
}

// DeadLetter says why an arrival was given up or failed.
type DeadLetter struct {
	Seq     int64
	Problem string
}

// Cancel withdraws every open question of a turn (all turns of the session when Turn is "").
type Cancel struct {
	Session SessionKey
	Turn    string
	By      string
	At      time.Time
}

// Card ties an approval to the outbox row of its card: Send index i of the same Change.
type Card struct {
	Approval string
	Send     int
}

// Move carries a group's state to its new chat id: sessions, lanes, waiting arrivals, journal, approvals, outbox rows,
// facts whose key begins with the chat's key, and charges of the chat. It belongs to the sessions whose key
// (Place.SessionKey) names the chat, on every surface.
//
// Leases of moved lanes are void (ErrLost for who holds one) and their fences grow. Message ids of the old chat mean
// nothing in the new one: rows lose Message, Edit and ReplyTo, so what was to be edited is sent. Where both chats have
// the session, both journals are kept, one after the other: the one whose turn is in progress last, else the old chat's
// first. When both have a turn, the old chat's is ended: its questions are withdrawn, an end entry (reason "cancelled")
// is written, the arrival that began it is done. A fact that both have keeps the new chat's value.
type Move struct {
	Channel, Bot string
	From, To     string // chat ids
}

// Applied is what a Change did.
type Applied struct {
	Fence     int64           // of Claim
	Seqs      []int64         // of Arrive, 0 where it was a duplicate
	Rows      []int64         // of Send
	Skipped   []bool          // of Send: the key existed
	Set       []bool          // of FactsIf
	Moved     []bool          // of Rows: the compare-and-set took effect
	Decided   []ApprovalState // of Decide: never used on error
	Withdrawn []string        // approvals that Cancel withdrew
	// of Rows: pending ones behind open rows of their chat that another process sends, or that were to be sending
	Queued []int64
}

// Writer makes changes. Apply is atomic and durable when it returns; safe for concurrent use.
type Writer interface {
	Apply(ctx context.Context, change *Change) (*Applied, error)
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
	// Used adds up the charges of a scope on one day.
	Used(ctx context.Context, scope, unit, day string) (int64, error)
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
