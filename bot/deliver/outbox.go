// Package deliver sends to people: the outbox delivers durable rows, the pacer enforces send budgets, and progress
// shows a turn that has not ended yet.
package deliver

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot"
)

const (
	// batch is how many unknown rows one look at the store may return.
	batch = 256
	// ages is later than the time of any row: the look at startup also finds rows for a later time.
	ages = 50 * 365 * 24 * time.Hour
	// drainEvery is how often Drain checks.
	drainEvery = 20 * time.Millisecond
)

// Outbox delivers those rows of one channel and bot that the store assigns to this process. A process may run one
// Outbox per channel and bot: a row found in state sending at its start counts as left by a dead process. Make it with
// NewOutbox and call Run once; Wake and Drain are safe for concurrent use.
type Outbox struct {
	deps Deps
	opts Options

	mu       sync.Mutex
	chats    map[string]*chat
	known    map[int64]bool   // rows in memory
	finished map[int64]uint64 // rows that left memory, with the number of the latest look at that time
	looks    uint64
	strange  uint64            // rows that were stored without being offered, so that a look has to find them
	lost     map[string][]lost // by chat: the losses that nobody was told about yet
	run      context.Context   //nolint:containedctx // of Run, for goroutines that a Change starts; else nil
	current  bool              // all due rows are in memory: a new row may be sent before a look
	offers   map[string]int    // keys of rows that a Change in progress stores as being sent
	adopt    time.Time         // until then, unknown rows in state sending are searched for
	busy     int               // deliveries in progress
	standing int               // of them, rows that are stored as being sent and wait for a slot
	way      *way

	wake  chan struct{}
	slots chan struct{} // requests in flight to chats
	quick chan struct{} // toasts in flight
	wg    sync.WaitGroup
}

// NewOutbox returns an Outbox.
func NewOutbox(deps Deps, opts Options) *Outbox {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Observe == nil {
		deps.Observe = func(bot.Row, string, time.Time) {}
	}
	if deps.Language == nil {
		deps.Language = func(*bot.Row) string { return "" }
	}
	opts = opts.withDefaults()
	return &Outbox{
		deps: deps, opts: opts,
		chats: map[string]*chat{}, known: map[int64]bool{}, finished: map[int64]uint64{}, lost: map[string][]lost{},
		offers: map[string]int{}, way: &way{probe: deps.Probe, pause: backoffOf(opts), losses: 1},
		wake: make(chan struct{}, 1), slots: make(chan struct{}, opts.Chats), quick: make(chan struct{}, opts.Chats),
	}
}

// Run delivers until ctx ends. Then no new row is taken, requests in flight are finished and their outcomes stored, and
// Run returns nil when all its goroutines have ended. The remaining rows are delivered by the next process.
func (o *Outbox) Run(ctx context.Context) error {
	defer o.leave()
	if !o.recoverStranded(ctx) || !o.recall(ctx) || !o.resume(ctx) {
		return nil
	}
	o.mu.Lock()
	o.run = ctx
	o.mu.Unlock()
	failures := 0
	for ctx.Err() == nil {
		wait := o.opts.Poll
		if err := o.look(ctx); err == nil {
			failures = 0
			wait = o.stretch(wait)
		} else if ctx.Err() == nil {
			o.deps.Log.Warn().Err(err).Msg("outbox not read; it will be read again")
			wait = max(wait, o.backoff(failures))
			failures++
		}
		o.pause(ctx, wait, failures == 0)
	}
	return nil
}

// leave stops taking offers and waits for all goroutines.
func (o *Outbox) leave() {
	o.mu.Lock()
	o.current = false
	o.mu.Unlock()
	o.wg.Wait()
}

// pause waits for the next look.
func (o *Outbox) pause(ctx context.Context, wait time.Duration, wakeable bool) {
	wake := o.wake
	if !wakeable {
		wake = nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-wake:
	}
}

// stretch makes looks less frequent while there is much in memory that each of them would read again.
func (o *Outbox) stretch(wait time.Duration) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return wait * time.Duration(1+len(o.known)/batch)
}

// Wake announces rows for the place. It is a hint that saves waiting for the next look.
func (o *Outbox) Wake(place bot.Place) {
	o.mu.Lock()
	o.strange++
	o.current = false // a row of this chat may precede the next one that is offered
	if c := o.chats[place.ChatKey()]; c != nil {
		c.stir()
	}
	o.mu.Unlock()
	o.nudge()
}

func (o *Outbox) nudge() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Drain waits, while Run runs, until no row is due and nothing is in flight; rows for a later time do not count. It
// returns ctx's error if that ends first.
func (o *Outbox) Drain(ctx context.Context) error {
	ticker := time.NewTicker(drainEvery)
	defer ticker.Stop()
	for {
		// In this order: a row that leaves the list is counted as busy first.
		rows, err := o.deps.Store.Due(ctx, o.opts.Channel, o.opts.Bot, o.deps.Now(), 1)
		if err == nil && len(rows) == 0 && o.idle() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

func (o *Outbox) idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.busy == 0
}

// resume reads rows for a later time into memory, with all others of their chats, so that no younger row overtakes an
// older one, and has the pacer wait as the last process was told to. It returns false if ctx ended first.
func (o *Outbox) resume(ctx context.Context) bool {
	for n := 0; ctx.Err() == nil; n++ {
		now := o.deps.Now()
		rows, err := o.deps.Store.Due(ctx, o.opts.Channel, o.opts.Bot, now.Add(ages), 0)
		if err == nil {
			later := map[string]bool{}
			for i := range rows {
				left := rows[i].NotBefore.Sub(now)
				if left <= 0 {
					continue
				}
				later[rows[i].Place.ChatKey()] = true
				// a request before the time is over lengthens it
				if strings.HasPrefix(rows[i].Problem, string(bot.Throttled)) {
					o.deps.Pacer.Freeze(rows[i].Place, left)
				}
			}
			rows = slices.DeleteFunc(rows, func(r bot.Row) bool {
				return r.Purpose == bot.Toast || !later[r.Place.ChatKey()]
			})
			o.mu.Lock()
			defer o.mu.Unlock()
			for i := range rows {
				o.admit(ctx, &rows[i])
			}
			return true
		}
		o.deps.Log.Warn().Err(err).Msg("outbox not read; retrying")
		sleep(ctx, o.backoff(n))
	}
	return false
}

// look reads the due rows and queues them in their chats.
func (o *Outbox) look(ctx context.Context) error {
	now := o.deps.Now()
	o.mu.Lock()
	o.looks++
	until := now
	if o.opts.Shared {
		until = now.Add(ages) // rows for a later time that another process left must not be overtaken either
	}
	this, limit, adopt, strange := o.looks, batch+o.listed(until), now.Before(o.adopt), o.strange
	o.mu.Unlock()
	rows, err := o.read(ctx, until, limit, this, adopt)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.current = false
		return err
	}
	fresh := 0
	for i := range rows {
		left, gone := o.finished[rows[i].ID]
		if o.known[rows[i].ID] || (gone && left >= this) { // the list may be older than the outcome of the row
			continue
		}
		fresh++
		o.admit(ctx, &rows[i])
	}
	for id, left := range o.finished {
		if left < this {
			delete(o.finished, id)
		}
	}
	more := len(rows) == limit
	o.current = !more && !now.Before(o.adopt) && strange == o.strange
	if fresh > 0 && more {
		o.nudge()
	}
	return nil
}

// read returns the rows that are due until a time. What a process that died was sending comes before what waited behind
// it: such rows are searched for afterwards, and if there are any, the list is read again.
func (o *Outbox) read(ctx context.Context, until time.Time, limit int, look uint64, adopt bool) ([]bot.Row, error) {
	for {
		rows, err := o.deps.Store.Due(ctx, o.opts.Channel, o.opts.Bot, until, limit)
		if err != nil {
			return nil, err
		}
		inherited, err := o.inherit(ctx, look, adopt)
		if err != nil || !inherited {
			return rows, err
		}
	}
}

// listed returns how many rows in memory the store lists as due. o.mu must be held.
func (o *Outbox) listed(now time.Time) int {
	n := len(o.known)
	for _, c := range o.chats {
		for _, it := range c.items {
			if it.stored.After(now) {
				n--
			}
		}
	}
	return n
}

// admit adds a row to memory. o.mu must be held.
func (o *Outbox) admit(ctx context.Context, row *bot.Row) {
	o.known[row.ID] = true
	if row.Purpose == bot.Toast {
		o.wg.Go(func() { o.toast(ctx, *row) })
		return
	}
	o.admitItem(ctx, &item{row: *row, stored: row.NotBefore})
}

// admitItem adds an item to the queue of its chat. o.mu must be held.
func (o *Outbox) admitItem(ctx context.Context, it *item) {
	o.known[it.row.ID] = true
	if it.row.Problem == parkedProblem {
		it.row.NotBefore = time.Time{}
	}
	key := it.row.Place.ChatKey()
	c := o.chats[key]
	if c == nil {
		c = &chat{key: key}
		o.chats[key] = c
		o.wg.Go(func() { o.serve(ctx, c) })
	}
	c.insert(it)
	c.stir()
}

// forget removes a row from memory. o.mu must be held.
func (o *Outbox) forget(id int64) {
	delete(o.known, id)
	o.finished[id] = o.looks
}

func (o *Outbox) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy++
}

func (o *Outbox) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy--
}

// backoff returns the delay after n earlier failures.
func (o *Outbox) backoff(n int) time.Duration { return backoffOf(o.opts)(n) }

func backoffOf(opts Options) func(n int) time.Duration {
	return func(n int) time.Duration { return min(opts.Backoff<<min(n, 16), opts.MaxBackoff) }
}

// sleep waits; it returns false if ctx ended first.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
