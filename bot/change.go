package bot

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
)

// Change is one atomic step: either everything in it happens, or nothing. The order is: claim, check of the lease, then
// the rest as listed; Move is last.
type Change struct {
	Claim  *Claim
	Lease  *Lease // checked: ErrLost
	Arrive []Arrival
	// Replace gives arrivals that wait a new content. The claims of their idle lanes become void, so that no
	// turn begins with the former one.
	Replace []Replacement
	// The arrival that the Change handles, and finishes; ErrHandled if it no longer waits. 0 = none.
	Handles int64
	// Unbegun is the session in whose lane those arrivals wait that the Change handles or gives up: ErrHandled if a
	// turn has begun with one of them. Claims of the lane that were made while it was idle become void, so that none
	// begins with one either. "" = not checked.
	Unbegun SessionKey
	// Finished arrivals, including dead letters; finishing one again is no error, an unknown one is ErrNotFound.
	Done   []int64
	Retry  []DeadLetter // arrivals whose handling failed: adds 1 to their attempts; no effect if they no longer wait
	Dead   []DeadLetter // arrivals given up; no effect if they no longer wait
	Append *Append
	Lanes  []LaneUpdate // unknown sessions are created
	Ask    []Approval
	Decide []Decision
	Cancel *Cancel
	// Ids are returned in Applied.Rows; a row with a known Key is skipped, and the id of the existing one returned.
	Send    []Row
	Cards   []Card
	Rows    []RowUpdate
	Facts   []Fact // set; a value of "" deletes
	FactsIf []Fact // set only if absent or expired by the store's clock; Applied.Set reports which were
	Charges []Charge
	Ledger  *Ledger // nil = nothing is set aside, and no limit is checked
	Move    *Move
	// PlaceholderOf is the session whose lane gets Send[0] as its placeholder (Lane.Live); "" = none.
	PlaceholderOf SessionKey
}

// Validate checks what must hold for a Change whatever the store contains; every Writer calls it first. Errors are
// ErrInvalid.
func (c *Change) Validate() error {
	return errors.Join(c.validateParts(), c.validateLists())
}

// invalid returns ErrInvalid with a reason if wrong is set.
func invalid(wrong bool, what string) error {
	if wrong {
		return fmt.Errorf("%w: %s", ErrInvalid, what)
	}
	return nil
}

// validateParts checks the parts that a Change has at most once.
func (c *Change) validateParts() error {
	return errors.Join(
		invalid(c.Claim != nil && (c.Claim.Session == "" || c.Claim.Owner == ""),
			"a claim needs a session and an owner"),
		invalid(c.Claim != nil && c.Claim.Arrives && !c.arrives(c.Claim.Session),
			"a claim that arrives needs the one arrival of its session"),
		invalid(c.Lease != nil && c.Lease.Session == "", "a lease needs a session"),
		invalid(c.Append != nil && c.Append.Session == "", "an append needs a session"),
		invalid(c.Cancel != nil && c.Cancel.Session == "", "a cancel needs a session"),
		invalid(c.Move != nil && (c.Move.From == "" || c.Move.To == "" || c.Move.From == c.Move.To),
			"a move needs two different chat ids"),
		invalid(c.PlaceholderOf != "" && len(c.Send) == 0, "a placeholder needs a row to send"),
	)
}

// arrives reports whether the Change stores exactly one arrival, and whether that waits in the session's lane.
func (c *Change) arrives(session SessionKey) bool {
	return len(c.Arrive) == 1 && c.Arrive[0].Session == session && !c.Arrive[0].Express
}

// validateLists checks the parts that a Change can have any number of.
func (c *Change) validateLists() error {
	var errs []error
	for i := range c.Arrive {
		errs = append(errs,
			invalid(c.Arrive[i].Channel == "" || c.Arrive[i].ID == "", "an arrival needs a channel and an id"))
	}
	for i := range c.Replace {
		r := &c.Replace[i]
		errs = append(errs, invalid(r.Session == "" || r.Seq == 0 || len(r.Raw) == 0,
			"a replacement needs a session, an arrival and a content"))
	}
	for i := range c.Lanes {
		errs = append(errs, invalid(c.Lanes[i].Session == "", "a lane update needs a session"))
	}
	for i := range c.Ask {
		errs = append(errs,
			invalid(c.Ask[i].ID == "" || c.Ask[i].Session == "", "a question needs an id and a session"))
	}
	for i := range c.Cards {
		errs = append(errs,
			invalid(c.Cards[i].Send < 0 || c.Cards[i].Send >= len(c.Send), "a card points to no row of the change"))
	}
	for i := range c.Rows {
		errs = append(errs,
			invalid(len(c.Rows[i].From) == 0 || c.Rows[i].To == "",
				"a row update needs states to come from and one to go to"))
	}
	for i := range c.FactsIf {
		errs = append(errs, invalid(c.FactsIf[i].Value == "", "a fact that is set if absent needs a value"))
	}
	for i := range c.Charges {
		errs = append(errs, invalid(c.Charges[i].Key == "", "a charge needs a key"))
	}
	if c.Ledger != nil {
		for i := range c.Ledger.Asides {
			a := &c.Ledger.Asides[i]
			errs = append(errs, invalid(c.Ledger.Holder == "" || a.Scope == "" ||
				a.N < 0 || a.Ahead < 0, "what is set aside needs a holder and a scope"))
		}
	}
	return errors.Join(errs...)
}

// Append adds entries to a session's journal. After is the number of the last entry that the writer knows; if it
// differs, the error is ErrConflict.
type Append struct {
	Session SessionKey
	After   int64
	Entries []journal.Entry
}

// Replacement is the new content of an arrival that waits in a lane. If the arrival no longer waits, the error is
// ErrHandled; if a turn has begun with it, ErrConflict.
type Replacement struct {
	Seq     int64
	Session SessionKey // of the arrival
	Source  Source
	Raw     []byte
}

// Charge is a use of quota, mirrored so that counters can be restored.
type Charge struct {
	Key   string // unique: a second insert is ignored
	Scope string // "user/telegram:42", "chat/telegram/1/bot/-100", "bot/telegram/1"
	Unit  string // turns, tokens, microusd
	Day   string // 2006-01-02, the day of the reservation
	N     int64
}

// SumCharges adds charges up by day, scope and unit, in that order; the sums have no key.
func SumCharges(list []Charge) []Charge {
	sums := map[Charge]int64{}
	for _, c := range list {
		sums[Charge{Day: c.Day, Scope: c.Scope, Unit: c.Unit}] += c.N
	}
	out := make([]Charge, 0, len(sums))
	for c, n := range sums {
		c.N = n
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Charge) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Unit, b.Unit))
	})
	return out
}

// Fact is a small durable value. Buckets in use are constants of the packages that own them.
type Fact struct {
	Bucket  string
	Key     string
	Value   string
	Expires time.Time // zero = never
	// Was, of a Fact in Change.Facts, is the value that the Change was computed from, "" = none. If it is another one
	// by the store's clock, the Change is refused with ErrConflict. nil = any. It is not stored.
	Was *string
}

// MovedBucket holds, by the new id of a group, its former id: a group that was admitted under the one is admitted under
// the other.
const MovedBucket = "moved"

// LeaderBucket holds, by subject, the process that leads in it or has locked it (the owner of its leases). Every store
// deletes the entries of a process that no longer exists: when other processes declare it dead, or
// when the next one opens the store.
const LeaderBucket = "leader"

// ResetBucket holds, by session, when its conversation was last reset (RFC 3339): approvals "for this session" from
// before are no longer valid.
const ResetBucket = "reset"

// DeadLetter says why an arrival was given up or failed.
type DeadLetter struct {
	Seq     int64
	Problem string
}

// Cancel withdraws every open question of a turn (of all turns of the session if Turn is "").
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

// Move moves a group's state to its new chat id: sessions, lanes, waiting arrivals, journal, approvals, outbox rows,
// facts whose key begins with the chat's key, and charges of the chat. It applies to the sessions whose key
// (Place.SessionKey) contains the chat, on every surface.
//
// Leases of moved lanes become void (their holders get ErrLost), and their fences are increased. Message ids of the old
// chat are not valid in the new one: rows lose Message, Edit and ReplyTo, so that edits are sent as new messages. If
// both chats have the session, both journals are kept, one after the other: the one whose turn is in progress last,
// else the old chat's first. If both have a turn, the old chat's is ended: its questions are withdrawn, an end entry
// (reason "cancelled") is written, and the arrival that began it is finished. A fact that both have keeps the new
// chat's value.
type Move struct {
	Channel, Bot string
	From, To     string // chat ids
}

// Applied is the result of a Change.
type Applied struct {
	Fence     int64           // of Claim
	Seqs      []int64         // of Arrive, 0 for duplicates
	Rows      []int64         // of Send
	Skipped   []bool          // of Send: the key existed already
	Set       []bool          // of FactsIf
	Moved     []bool          // of Rows: the compare-and-set took effect
	Decided   []ApprovalState // of Decide; not to be used on an error
	Withdrawn []string        // approvals that Cancel has withdrawn
	Ahead     bool            // of Ledger: Ahead is set aside too
	// Of Rows: pending ones behind open rows of their chat that another process sends, or that were to become sending.
	Queued []int64
}
