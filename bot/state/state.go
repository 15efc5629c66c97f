// Package state holds the rules of bot.Change: what each part of a Change does to a lane, an arrival, a question or an
// outbox row, as pure functions on values. A store loads, locks and saves, and decides nothing:
//
//	needs := state.NeedsOf(change)             // which rows the Change depends on
//	world := …                                 // load them; lock them where others write at the same time
//	result, err := state.Run(change, world, now) // an error refuses the Change, and nothing was written yet
//	…                                          // insert and update what the result lists; then Move, see Merge
//
// # Order of locks
//
// The rows of one Change are loaded and locked in the order of the fields of Needs: lanes, arrivals, questions, outbox
// rows, facts, accounts, and within each in the order of their keys (bytes; Needs is sorted). Updates are listed
// in the same order. Two Changes therefore never wait for each other in a circle over rows that exist. New rows
// come in the order in which the Change lists them, because their numbers tell that order; two Changes that
// insert the same unique keys in different orders can still meet, and an engine that reports a deadlock then has
// the Change repeated by its driver.
//
// # Guesses
//
// Run depends on its arguments alone, so a store may run it on a World that it remembers instead of one that it has
// loaded, if each write then checks that the row still is what the World said (Write.Old), and the Change is run again
// on the loaded World when one is not. A unique key that is assumed to be new is such a guess: the insert checks it.
package state

import (
	"cmp"
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Needs lists what the outcome of a Change depends on. Every list is sorted and contains each key once.
type Needs struct {
	Lanes    []bot.SessionKey
	Waiting  bot.SessionKey // session for which it must be known whether any arrival waits in its lane; "" = none
	Arrivals []int64        // by Seq
	Arrived  []ArrivalKey   // keys of new arrivals
	Asked    []string       // questions by id, including those of new questions
	OpenOf   bot.SessionKey // session whose open questions are all needed; "" = none
	Shorts   []ShortName    // open questions with these names are needed
	Rows     []int64        // outbox rows by id
	Keys     []string       // keys of new outbox rows, except ""
	Facts    []FactKey
	Chats    []bot.Place // of new outbox rows; only the fields in Place.ChatKey are set
	Accounts []Account   // with a limit that the Change is held to; locked last
	Charged  []string    // keys of the charges to Accounts
	Holder   string      // of what the Change sets aside
	// Maximum numbers of new rows.
	NewArrivals, NewQuestions, NewRows int
}

// ArrivalKey identifies an arrival.
type ArrivalKey struct{ Channel, Bot, ID string }

// ShortName is the name of an open question in a chat.
type ShortName struct {
	Place bot.Place // only the fields in Place.ChatKey are set
	Short string
}

// FactKey identifies a fact.
type FactKey struct{ Bucket, Key string }

// Account is what is counted of a unit of a scope in a window: a day (2006-01-02) or a month (2006-01).
type Account struct{ Scope, Unit, Window string }

// Balance is the state of an account.
type Balance struct {
	Taken int64 // charged
	Held  int64 // set aside by others than the holder of the Change
}

// World is what a store has of Needs. A key that is missing in a map does not exist. Run does not change it.
type World struct {
	Lanes     map[bot.SessionKey]bot.Lane
	Waiting   bool // an arrival waits in the lane of Needs.Waiting
	Arrivals  map[int64]Arrival
	Arrived   map[ArrivalKey]int64 // Seq of the known ones
	Questions map[string]Question  // Needs.Asked, OpenOf and Shorts together
	Rows      map[int64]Delivery
	Keys      map[string]int64 // id of the row that has the key
	Facts     map[FactKey]bot.Fact
	// An account that is missing is empty: a store that does not lock it has to check that
	// there is room (Result.Asides).
	Accounts map[Account]Balance
	Charged  map[string]bool // those of Needs.Charged that are stored already
	Numbers  Numbers
	// Self is the process that makes the Change. Senders are the processes that have open rows (pending, sending) of a
	// chat, by Place.ChatKey; a chat that is not listed has none, or only ones of no other process.
	Self    string
	Senders map[string]string
}

// Numbers are unused numbers for new rows in ascending order, at least as many as Needs says. Run takes them from the
// front.
type Numbers struct{ Arrivals, Questions, Rows []int64 }

// Write is a row that a Change updates, or a lane that it creates.
type Write[K comparable, V any] struct {
	Key    K
	Old    V
	New    V
	Exists bool // false: insert New
}

// NewArrival is an arrival to insert: Arrive[Index] of the Change, waiting.
type NewArrival struct {
	Seq   int64
	Index int
}

// NewRow is an outbox row to insert: Send[Index] of the Change, with the values given here in place of its own.
type NewRow struct {
	ID       int64
	Index    int
	Created  time.Time
	Owner    string // the process that sends it
	Delivery Delivery
}

// NewQuestion is a question to insert, as the Change leaves it.
type NewQuestion struct {
	Index    int // of Ask
	Question Question
}

// Result is what a store has to write, in this order and in one transaction.
type Result struct {
	Applied *bot.Applied

	Arrive    []NewArrival
	Replace   []int // indexes of the Change's Replace
	Send      []NewRow
	Ask       []NewQuestion
	Entries   int64          // number of the first entry of Append
	Forget    bot.SessionKey // session with a new conversation: its stored outputs are deleted; "" = none
	Lanes     []Write[bot.SessionKey, bot.Lane]
	Arrivals  []Write[int64, Arrival]
	Questions []Write[string, Question]
	Rows      []Write[int64, Delivery]
	Facts     []bot.Fact // with their new values; a value of "" = absent
	// What the holder of the Change's Ledger has set aside from now on, in the order of scope, unit and day; the limits
	// are those that the Change is held to. Stored after the charges.
	Asides []bot.Aside
}

// NeedsOf lists what must be known to run a valid Change. Move is not included: see Merge.
func NeedsOf(c *bot.Change) Needs {
	n := Needs{NewArrivals: len(c.Arrive), NewQuestions: len(c.Ask), NewRows: len(c.Send)}
	n.lanes(c)
	n.arrivals(c)
	n.questions(c)
	n.rows(c)
	for i := range c.FactsIf {
		n.Facts = append(n.Facts, FactKey{c.FactsIf[i].Bucket, c.FactsIf[i].Key})
	}
	for i := range c.Facts {
		if c.Facts[i].Was != nil {
			n.Facts = append(n.Facts, FactKey{c.Facts[i].Bucket, c.Facts[i].Key})
		}
	}
	n.Facts = unique(n.Facts, func(a, b FactKey) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Key, b.Key))
	})
	n.accounts(c)
	return n
}

func (n *Needs) lanes(c *bot.Change) {
	if c.Claim != nil {
		n.Lanes = append(n.Lanes, c.Claim.Session)
	}
	if c.Lease != nil {
		n.Lanes = append(n.Lanes, c.Lease.Session)
	}
	if c.Append != nil {
		n.Lanes = append(n.Lanes, c.Append.Session)
	}
	for i := range c.Lanes {
		n.Lanes = append(n.Lanes, c.Lanes[i].Session)
	}
	for i := range c.Replace {
		n.Lanes = append(n.Lanes, c.Replace[i].Session)
	}
	if c.Unbegun != "" {
		n.Lanes = append(n.Lanes, c.Unbegun)
	}
	if c.PlaceholderOf != "" {
		n.Lanes = append(n.Lanes, c.PlaceholderOf)
	}
	n.Lanes = unique(n.Lanes, cmp.Compare[bot.SessionKey])
}

func (n *Needs) arrivals(c *bot.Change) {
	if c.Claim != nil {
		switch {
		case c.Claim.Arrives:
			n.Waiting = c.Claim.Session
		case c.Claim.Arrival != 0:
			n.Arrivals = append(n.Arrivals, c.Claim.Arrival)
		}
	}
	for i := range c.Replace {
		n.Arrivals = append(n.Arrivals, c.Replace[i].Seq)
	}
	if c.Handles != 0 {
		n.Arrivals = append(n.Arrivals, c.Handles)
	}
	n.Arrivals = append(n.Arrivals, c.Done...)
	for i := range c.Retry {
		n.Arrivals = append(n.Arrivals, c.Retry[i].Seq)
	}
	for i := range c.Dead {
		n.Arrivals = append(n.Arrivals, c.Dead[i].Seq)
	}
	n.Arrivals = unique(n.Arrivals, cmp.Compare[int64])
	for i := range c.Arrive {
		n.Arrived = append(n.Arrived, keyOf(&c.Arrive[i]))
	}
	n.Arrived = unique(n.Arrived, func(a, b ArrivalKey) int {
		return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Bot, b.Bot), cmp.Compare(a.ID, b.ID))
	})
}

func (n *Needs) questions(c *bot.Change) {
	for i := range c.Ask {
		a := &c.Ask[i]
		n.Asked = append(n.Asked, a.ID)
		if named(a) {
			n.Shorts = append(n.Shorts, shortOf(a))
		}
	}
	for i := range c.Decide {
		n.Asked = append(n.Asked, c.Decide[i].ID)
	}
	for i := range c.Cards {
		n.Asked = append(n.Asked, c.Cards[i].Approval)
	}
	n.Asked = unique(n.Asked, cmp.Compare[string])
	n.Shorts = unique(n.Shorts, func(a, b ShortName) int {
		return cmp.Or(cmp.Compare(a.Place.ChatKey(), b.Place.ChatKey()), cmp.Compare(a.Short, b.Short))
	})
	if c.Cancel != nil {
		n.OpenOf = c.Cancel.Session
	}
}

func (n *Needs) rows(c *bot.Change) {
	for i := range c.Rows {
		n.Rows = append(n.Rows, c.Rows[i].ID)
	}
	n.Rows = unique(n.Rows, cmp.Compare[int64])
	for i := range c.Send {
		if c.Send[i].Key != "" {
			n.Keys = append(n.Keys, c.Send[i].Key)
		}
	}
	n.Keys = unique(n.Keys, cmp.Compare[string])
	for i := range c.Send {
		p := c.Send[i].Place
		n.Chats = append(n.Chats, bot.Place{Channel: p.Channel, Bot: p.Bot, Surface: p.Surface, Chat: p.Chat})
	}
	n.Chats = unique(n.Chats, func(a, b bot.Place) int { return cmp.Compare(a.ChatKey(), b.ChatKey()) })
}

// unique sorts a list and removes duplicates.
func unique[T comparable](list []T, compare func(a, b T) int) []T {
	if len(list) < 2 {
		return list
	}
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}
