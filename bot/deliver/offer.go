package deliver

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// adoptFor is how long rows in state sending are looked for after a commit whose answer got lost: longer than any
// commit takes.
const adoptFor = time.Minute

// Offered is a Store whose Changes offer the rows that they write to the outbox: it need not read them back. Where a
// row can be sent at once, because its chat is free and the budget has room, the Change stores it as being sent
// already, which saves the commit of the claim. It is an Outbox for the dispatcher too, which has nothing left to be
// woken for.
type Offered struct {
	bot.Store
	Outbox *Outbox
}

// Wake does nothing: the outbox has the rows.
func (s Offered) Wake(bot.Place) {}

// Apply implements bot.Writer.
func (s Offered) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	if len(change.Send) == 0 {
		return s.Store.Apply(ctx, change)
	}
	next := *change
	next.Send = slices.Clone(change.Send)
	o := s.Outbox
	offers := o.offer(next.Send)
	applied, err := s.Store.Apply(ctx, &next)
	if err != nil {
		o.withdraw(offers, !refusedChange(err))
		return nil, err
	}
	o.take(next.Send, applied, offers)
	return applied, nil
}

// refusedChange says that a Change certainly changed nothing.
func refusedChange(err error) bool {
	return slices.ContainsFunc([]error{bot.ErrLost, bot.ErrConflict, bot.ErrDecided, bot.ErrNotFound, bot.ErrTaken, bot.ErrInvalid}, func(kind error) bool {
		return errors.Is(err, kind)
	})
}

// offer is a row that a Change stores as being sent. It holds its chat, a place among the requests in flight and one in
// the budget until it is taken or withdrawn.
type offer struct {
	index int // in Change.Send
	key   string
	chat  *chat
	held  func() // nil = the budget is asked before the request
}

// leave gives the place in the budget back.
func (f *offer) leave() {
	if f.held != nil {
		f.held()
	}
}

// offer marks the rows that can be sent as soon as they are stored: the first of each chat.
func (o *Outbox) offer(rows []bot.Row) []*offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.current || o.run.Err() != nil {
		return nil
	}
	var offers []*offer
	for i := range rows {
		row := &rows[i]
		chatKey := row.Place.ChatKey()
		if !o.mine(row) || !immediate(row, o.deps.Now()) || row.Key == "" || o.chats[chatKey] != nil || o.offers[row.Key] > 0 {
			continue
		}
		if f := o.hold(row, chatKey); f != nil {
			f.index, row.State = i, bot.Sending
			offers = append(offers, f)
		}
	}
	return offers
}

// hold takes what a row needs to be sent; nil when there is none. o.mu is held.
func (o *Outbox) hold(row *bot.Row, chatKey string) *offer {
	select {
	case o.slots <- struct{}{}:
	default:
		return nil
	}
	held, ok := o.reserve(row)
	if !ok {
		<-o.slots
		return nil
	}
	f := &offer{key: row.Key, chat: &chat{key: chatKey}, held: held}
	o.chats[chatKey] = f.chat
	o.offers[row.Key]++
	o.wg.Add(1) // its goroutine
	return f
}

// reserve takes a row's place in the budget. One on a server is asked right before the request instead, so that nobody
// waits for it here: held is nil then.
func (o *Outbox) reserve(row *bot.Row) (held func(), ok bool) {
	at := priority(row.Purpose)
	if shared, is := o.deps.Pacer.(interface {
		Likely(place bot.Place, priority bot.Priority) bool
	}); is {
		return nil, shared.Likely(row.Place, at)
	}
	return o.deps.Pacer.Try(o.run, row.Place, at)
}

// mine says that a row is for this outbox.
func (o *Outbox) mine(row *bot.Row) bool {
	return row.Place.Channel == o.opts.Channel && row.Place.Bot == o.opts.Bot
}

// immediate says that nothing has to be looked up or waited for before a new row is sent.
func immediate(row *bot.Row, now time.Time) bool {
	return row.Purpose != bot.Toast && !modest(row.Purpose) && row.Edit == "" && row.EditRow == 0 && (row.State == "" || row.State == bot.Pending) &&
		!row.NotBefore.After(now)
}

// withdraw gives back what the offers of a failed Change hold. When nobody knows whether it was stored, its rows are
// looked for.
func (o *Outbox) withdraw(offers []*offer, doubtful bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range offers {
		o.release(f)
		f.leave()
		<-o.slots
		ctx := o.run
		go o.serveAndLeave(ctx, f.chat)
	}
	if doubtful {
		o.current, o.adopt = false, o.deps.Now().Add(adoptFor)
		o.nudge()
	}
}

// release ends an offer. o.mu is held.
func (o *Outbox) release(f *offer) {
	if o.offers[f.key]--; o.offers[f.key] <= 0 {
		delete(o.offers, f.key)
	}
}

func (o *Outbox) serveAndLeave(ctx context.Context, c *chat) {
	defer o.wg.Done()
	o.serve(ctx, c)
}

// take takes the rows of a Change that is stored into memory, and sends those that were offered.
func (o *Outbox) take(rows []bot.Row, applied *bot.Applied, offers []*offer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	late := false
	for i := range rows {
		rows[i].ID = applied.Rows[i]
		at := slices.IndexFunc(offers, func(f *offer) bool { return f.index == i })
		queued := slices.Contains(applied.Queued, rows[i].ID)
		late = late || queued
		if at >= 0 {
			o.begun(&rows[i], offers[at], applied.Skipped[i] || queued)
			continue
		}
		_, gone := o.finished[rows[i].ID]
		switch {
		case queued, applied.Skipped[i] || !o.mine(&rows[i]) || o.known[rows[i].ID] || gone:
		case !o.next(&rows[i]):
			late = true
		default:
			rows[i].State = bot.Pending
			o.admit(o.run, &rows[i])
		}
	}
	if late {
		o.nudge()
	}
}

// next says that a new row is the next one of its chat that is not in memory, and may be sent. Where several processes
// deliver, another one may have put rows before it, which only a look finds. o.mu is held.
func (o *Outbox) next(row *bot.Row) bool {
	return o.current && !o.opts.Shared && row.EditRow == 0 && !row.NotBefore.After(o.deps.Now()) && (row.State == "" || row.State == bot.Pending)
}

// begun sends a row that its own Change stored as being sent. o.mu is held.
func (o *Outbox) begun(row *bot.Row, f *offer, skipped bool) {
	o.release(f)
	ctx := o.run
	if skipped || o.known[row.ID] { // the row was there before, and has had its turn
		f.leave()
		<-o.slots
		go o.serveAndLeave(ctx, f.chat)
		return
	}
	it := &item{row: *row, stored: row.NotBefore, claimed: true}
	o.known[row.ID] = true
	f.chat.insert(it)
	o.busy++
	go func() {
		defer o.wg.Done()
		func() {
			defer o.end()
			defer func() { <-o.slots }()
			defer f.leave()
			o.deliver(ctx, f.chat, it, f.held)
		}()
		o.serve(ctx, f.chat)
	}()
}

// adopted takes rows into memory that a Change stored as being sent, whose answer got lost: no request was made for
// them. In this process every other row in that state is known, or was offered a moment ago, or comes from a process
// that died: those are left over.
func (o *Outbox) adopted(ctx context.Context, rows []bot.Row, look uint64, adopt bool) (left []bot.Row) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range rows {
		last, gone := o.finished[rows[i].ID]
		if o.known[rows[i].ID] || (gone && last >= look) || o.offers[rows[i].Key] > 0 {
			continue
		}
		if !rows[i].Doubt.IsZero() {
			left = append(left, rows[i])
			continue
		}
		if !adopt {
			continue
		}
		o.log(&rows[i]).Info().Msg("row of a commit whose answer got lost is sent")
		o.admitItem(ctx, &item{row: rows[i], stored: rows[i].NotBefore, claimed: true})
	}
	return left
}
