package deliver

import (
	"context"
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/clock"
)

const (
	// parkFrom is the delay from which on the rows behind a waiting one are delayed in the store too, so that looks do
	// not read them repeatedly.
	parkFrom = 5 * time.Second
	// around is how many rows of a session are searched for one that replaces another.
	around = 64
	// parkedProblem marks a row that was delayed, as opposed to one that was made for a later time: it keeps its place
	// when it is read again.
	parkedProblem = "waits behind an earlier message"
)

// chat is the queue of one chat. All fields are guarded by Outbox.mu.
type chat struct {
	key       string
	items     []*item            // by row id
	interrupt context.CancelFunc // interrupts the waiting of the chat's goroutine
}

// item is a row in memory. Only the goroutine of its chat changes row.
type item struct {
	row     bot.Row
	form    form // the fullest form that was not refused yet
	noTopic bool
	claimed bool // stored as being sent, but not requested yet
	// Not_before in the store, guarded by Outbox.mu; may be later than row.NotBefore while another row delays the chat.
	stored time.Time
}

func (c *chat) insert(it *item) {
	at, _ := slices.BinarySearchFunc(c.items, it.row.ID, func(e *item, id int64) int { return int(e.row.ID - id) })
	c.items = slices.Insert(c.items, at, it)
}

func (c *chat) remove(it *item) {
	if i := slices.Index(c.items, it); i >= 0 {
		c.items = slices.Delete(c.items, i, i+1)
	}
}

// stir makes the chat's goroutine look at its queue again.
func (c *chat) stir() {
	if c.interrupt != nil {
		c.interrupt()
	}
}

// modest reports whether rows of the purpose are sent after answers and questions.
func modest(p bot.Purpose) bool { return p == bot.Notice || p == bot.Placeholder }

func priority(p bot.Purpose) bot.Priority {
	switch p {
	case bot.Final, bot.Reply, bot.Toast:
		return bot.High
	case bot.Question, bot.Record, bot.Notice:
		return bot.Middle
	case bot.Placeholder:
		return bot.Low
	default:
		return bot.Middle
	}
}

// next returns the row to send and how long it still has to wait. Rows are sent by id, modest ones only if there are no
// others. A row that failed delays those behind it; one that was made for a later time does not.
func (c *chat) next(now time.Time) (*item, time.Duration) {
	var early *item
	for _, second := range []bool{false, true} {
		for _, it := range c.items {
			if modest(it.row.Purpose) != second {
				continue
			}
			wait := clock.Left(it.row.NotBefore, now)
			if wait <= 0 || it.row.Attempts > 0 {
				return it, max(wait, 0)
			}
			if early == nil || it.row.NotBefore.Before(early.row.NotBefore) {
				early = it
			}
		}
	}
	if early == nil {
		return nil, 0
	}
	return early, clock.Left(early.row.NotBefore, now)
}

// serve delivers the rows of one chat until there are none left or ctx ends.
func (o *Outbox) serve(ctx context.Context, c *chat) {
	again := false // the row has waited: a row that replaces it may have arrived
	for ctx.Err() == nil {
		waiting, interrupt := context.WithCancel(ctx)
		o.mu.Lock()
		c.interrupt = interrupt
		it, wait := c.next(o.deps.Now())
		if it == nil {
			delete(o.chats, c.key)
		}
		o.mu.Unlock()
		if it == nil {
			interrupt()
			return
		}
		switch {
		case again && replaceable(&it.row) && o.replaced(ctx, c, it):
			again = false
		case wait > 0:
			o.park(ctx, c, it, wait)
			clock.Until(waiting, o.deps.Now, it.row.NotBefore, 0, nil)
			again = true
		case !it.row.Doubt.IsZero() && !o.way.isOpen():
			o.way.await(ctx)
		default:
			again = !o.turnOf(ctx, waiting, c, it)
		}
		interrupt()
	}
}

// turnOf waits for the budget and a free slot, then delivers. A modest row stops waiting when another row arrives, and
// from time to time; it then returns false.
func (o *Outbox) turnOf(ctx, waiting context.Context, c *chat, it *item) bool {
	if modest(it.row.Purpose) {
		limited, cancel := context.WithTimeout(waiting, o.opts.Poll)
		defer cancel()
		waiting = limited
	} else {
		waiting = ctx
	}
	over, err := o.deps.Pacer.Wait(waiting, it.row.Place, priority(it.row.Purpose))
	if err != nil {
		return false
	}
	defer over()
	if !o.slot(ctx) {
		return true
	}
	defer func() { <-o.slots }()
	if ctx.Err() != nil {
		return true
	}
	if !it.row.Doubt.IsZero() && !o.way.isOpen() { // an answer was lost meanwhile
		return false
	}
	o.begin()
	defer o.end()
	if !replaceable(&it.row) || !o.replaced(ctx, c, it) {
		o.deliver(ctx, c, it, over)
	}
	return true
}

// park delays the rows behind a waiting one in the store too.
func (o *Outbox) park(ctx context.Context, c *chat, head *item, wait time.Duration) {
	if wait < parkFrom {
		return
	}
	until := o.deps.Now().Add(wait)
	change := &bot.Change{}
	o.mu.Lock()
	var behind []*item
	for _, it := range c.items {
		if it != head && !it.claimed && it.stored.Before(until) {
			behind = append(behind, it)
			change.Rows = append(change.Rows, bot.RowUpdate{
				ID: it.row.ID, From: []bot.RowState{bot.Pending}, To: bot.Pending, NotBefore: until,
				Problem: parkedProblem,
			})
		}
	}
	o.mu.Unlock()
	if len(behind) == 0 {
		return
	}
	// This only saves reads: if it fails, the rows are read again.
	if _, err := o.deps.Store.Apply(ctx, change); err != nil {
		o.deps.Log.Debug().Err(err).Str("chat", c.key).Msg("rows not parked")
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, it := range behind {
		it.stored = until
	}
}

// replaceable reports whether the store should be asked for a row that replaces this one. Other rows are sent and then
// edited.
func replaceable(row *bot.Row) bool {
	return row.Purpose == bot.Placeholder || row.Purpose == bot.Question || row.Attempts > 0
}

// replaced drops an unsent row if a younger one of its session is to edit its message: that one is sent instead.
func (o *Outbox) replaced(ctx context.Context, c *chat, it *item) bool {
	if it.claimed || !it.row.Doubt.IsZero() { // it may have been sent
		return false
	}
	rows, err := o.deps.Store.Rows(ctx, it.row.Session, around)
	if err != nil {
		return false // it is sent and then edited, with the same result
	}
	by := slices.IndexFunc(rows, func(r bot.Row) bool { return r.EditRow == it.row.ID && r.State == bot.Pending })
	if by < 0 {
		return false
	}
	o.settle(ctx, c, it, verdict{outcome: "replaced", update: bot.RowUpdate{
		ID: it.row.ID, From: []bot.RowState{bot.Pending}, To: bot.Dead, Problem: "a newer row is sent in its place",
	}})
	o.nudge()
	return true
}
