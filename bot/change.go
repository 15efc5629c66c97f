package bot

import (
	"errors"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
)

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

// arrives says whether the Change brings one arrival, and that it waits in the session's lane.
func (c *Change) arrives(session SessionKey) bool {
	return len(c.Arrive) == 1 && c.Arrive[0].Session == session && !c.Arrive[0].Express
}

// validateLists looks at what a Change has any number of.
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

// Append adds entries to a session's journal. After is the number of the last entry the writer knows; a mismatch is
// ErrConflict.
type Append struct {
	Session SessionKey
	After   int64
	Entries []journal.Entry
}

// Charge is a use of quota, mirrored so that counters can be rebuilt.
type Charge struct {
	Key   string // unique: a second insert is ignored
	Scope string // "user/telegram:42", "chat/telegram/1/bot/-100", "bot/telegram/1"
	Unit  string // turns, tokens, microusd
	Day   string // 2006-01-02, the day the reservation was made
	N     int64
}

// Fact is a small durable value. Buckets in use are constants of the packages that own them.
type Fact struct {
	Bucket  string
	Key     string
	Value   string
	Expires time.Time // zero = never
}

// MovedBucket holds, by the new id of a group, the id it had before: who was admitted there is admitted here.
const MovedBucket = "moved"

// LeaderBucket holds, by what there is to lead, the process that leads (the owner of its leases). A store deletes what
// a process leads when that is gone.
const LeaderBucket = "leader"

// ResetBucket holds, by session, when its conversation began anew (RFC 3339): what was approved "for this session"
// before counts no more.
const ResetBucket = "reset"

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
