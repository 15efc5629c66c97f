package deliver

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// adoptFor is how long rows in state sending are searched for after a commit whose reply was lost: longer than any
// commit takes.
const adoptFor = time.Minute

// OfferingStore is a Store whose Changes offer the rows that they write to the outbox, which then need not read them
// back. If a row can be sent at once, because its chat is free and the budget has room, the Change stores it as being
// sent already, which saves the commit of the claim. For the dispatcher it is also an Outbox, which needs no wake-up.
type OfferingStore struct {
	bot.Store
	Outbox *Outbox
}

// Wake does nothing: the outbox has the rows already.
func (s OfferingStore) Wake(bot.Place) {}

// Apply implements bot.Writer.
func (s OfferingStore) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
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
	for i := range next.Send { // the store has set it by its clock, which is close enough
		if row := &next.Send[i]; row.Created.IsZero() {
			row.Created = o.deps.Now()
		}
	}
	o.take(next.Send, applied, offers)
	return applied, nil
}

// refusedChange reports whether a Change has certainly changed nothing.
func refusedChange(err error) bool {
	return slices.ContainsFunc([]error{
		bot.ErrLost, bot.ErrConflict, bot.ErrDecided, bot.ErrNotFound, bot.ErrTaken, bot.ErrInvalid,
	}, func(kind error) bool {
		return errors.Is(err, kind)
	})
}

// offer is a row that a Change stores as being sent. It occupies its chat and a place in the budget until it is taken or
// withdrawn. A slot for requests in flight is taken after the commit: a store that is late would else keep all of them,
// and each answer would cost it one more Change, which makes it later.
type offer struct {
	index int // in Change.Send
	key   string
	chat  *chat
	held  func() // nil = the budget is asked before the request
}

// leave returns the place in the budget.
func (f *offer) leave() {
	if f.held != nil {
		f.held()
	}
}

// offer marks the rows that can be sent as soon as they are stored: the first one of each chat.
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
		if !o.mine(row) || !immediate(row, o.deps.Now()) || row.Key == "" || o.chats[chatKey] != nil ||
			o.offers[row.Key] > 0 {
			continue
		}
		if f := o.hold(row, chatKey); f != nil {
			f.index, row.State = i, bot.Sending
			offers = append(offers, f)
		}
	}
	return offers
}

// hold reserves what a row needs to be sent; it returns nil if that is not available: also if as many rows wait for a
// slot as there are slots, since what is stored as being sent counts as doubtful once the process has died. o.mu must be
// held.
func (o *Outbox) hold(row *bot.Row, chatKey string) *offer {
	if o.standing >= cap(o.slots) {
		return nil
	}
	held, ok := o.reserve(row)
	if !ok {
		return nil
	}
	f := &offer{key: row.Key, chat: &chat{key: chatKey}, held: held}
	o.chats[chatKey] = f.chat
	o.offers[row.Key]++
	o.wg.Add(1) // for its goroutine
	return f
}

// reserve takes a place in the budget for a row. A budget on a server is asked right before the request instead, so
// that nothing waits for it here: held is then nil.
func (o *Outbox) reserve(row *bot.Row) (held func(), ok bool) {
	at := priority(row.Purpose)
	if shared, is := o.deps.Pacer.(interface {
		Likely(place bot.Place, priority bot.Priority) bool
	}); is {
		return nil, shared.Likely(row.Place, at)
	}
	return o.deps.Pacer.Try(o.run, row.Place, at)
}

// mine reports whether a row is for this outbox.
func (o *Outbox) mine(row *bot.Row) bool {
	return row.Place.Channel == o.opts.Channel && row.Place.Bot == o.opts.Bot
}

// immediate reports whether a new row can be sent without reading anything or waiting.
func immediate(row *bot.Row, now time.Time) bool {
	return row.Purpose != bot.Toast && !modest(row.Purpose) && row.Edit == "" && row.EditRow == 0 &&
		(row.State == "" || row.State == bot.Pending) &&
		!row.NotBefore.After(now)
}

// withdraw releases what the offers of a failed Change hold. If it is unknown whether it was stored, its rows are
// searched for.
func (o *Outbox) withdraw(offers []*offer, doubtful bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range offers {
		o.release(f)
		f.leave()
		ctx := o.run
		go o.serveAndLeave(ctx, f.chat)
	}
	if doubtful {
		o.current, o.adopt = false, o.deps.Now().Add(adoptFor)
		o.nudge()
	}
}

// release ends an offer. o.mu must be held.
func (o *Outbox) release(f *offer) {
	if o.offers[f.key]--; o.offers[f.key] <= 0 {
		delete(o.offers, f.key)
	}
}

func (o *Outbox) serveAndLeave(ctx context.Context, c *chat) {
	defer o.wg.Done()
	o.serve(ctx, c)
}

// take reads the rows of a stored Change into memory, and sends those that were offered.
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
		if !o.current {
			o.strange++ // a look that began before does not have the row, which the next one of its chat must not overtake
		}
		o.nudge()
	}
}

// next reports whether a new row is the next one of its chat that is not in memory, and may be sent. If several
// processes deliver, another one may have written rows before it, which only a look at the store finds. o.mu must be
// held.
func (o *Outbox) next(row *bot.Row) bool {
	return o.current && !o.opts.Shared && row.EditRow == 0 && !row.NotBefore.After(o.deps.Now()) &&
		(row.State == "" || row.State == bot.Pending)
}

// begun sends a row that its own Change stored as being sent. o.mu must be held.
func (o *Outbox) begun(row *bot.Row, f *offer, skipped bool) {
	o.release(f)
	ctx := o.run
	if skipped || o.known[row.ID] { // the row existed before and has been handled
		f.leave()
		go o.serveAndLeave(ctx, f.chat)
		return
	}
	it := &item{row: *row, stored: row.NotBefore, claimed: true}
	o.known[row.ID] = true
	f.chat.insert(it)
	o.busy++
	o.standing++
	go func() {
		defer o.wg.Done()
		o.deliverOffered(ctx, f, it)
		o.serve(ctx, f.chat)
	}()
}

// deliverOffered sends a row that is stored as being sent, once there is a slot. If ctx ends before, it is left to the
// next process.
func (o *Outbox) deliverOffered(ctx context.Context, f *offer, it *item) {
	defer o.end()
	defer f.leave()
	free := o.slot(ctx)
	o.mu.Lock()
	o.standing--
	o.mu.Unlock()
	if !free {
		err := &bot.SendError{Outcome: bot.NotSent, Err: context.Cause(ctx)}
		o.settle(ctx, f.chat, it, o.judge(ctx, &outgoing{row: it.row}, bot.Sending, "", err))
		return
	}
	defer func() { <-o.slots }()
	o.deliver(ctx, f.chat, it, f.held)
}

// slot takes a slot for a request. It returns false if none was free until ctx ended.
func (o *Outbox) slot(ctx context.Context) bool {
	select {
	case o.slots <- struct{}{}:
		return true
	default:
	}
	select {
	case o.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// adopted reads rows into memory that a Change stored as being sent, but whose reply was lost: no request was made for
// them. Every other row in that state is known in this process, was offered a moment ago, or comes from a process that
// died; the last ones are returned as left.
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
		o.log(&rows[i]).Info().Msg("sending a row of a commit whose reply was lost")
		o.admitItem(ctx, &item{row: rows[i], stored: rows[i].NotBefore, claimed: true})
	}
	return left
}
