package deliver

import (
	"context"
	"errors"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// recoverStranded decides about rows that a dead process left in state sending. It returns false if ctx ended first.
func (o *Outbox) recoverStranded(ctx context.Context) bool {
	for n := 0; ctx.Err() == nil; n++ {
		rows, err := o.deps.Store.Stranded(ctx, o.opts.Channel, o.opts.Bot)
		if err == nil {
			err = o.doubted(ctx, rows)
		}
		if err == nil {
			return true
		}
		o.deps.Log.Warn().Err(err).Msg("rows of the last process not taken over; retrying")
		sleep(ctx, o.backoff(n))
	}
	return false
}

// doubted decides about rows that a dead process left in state sending.
func (o *Outbox) doubted(ctx context.Context, rows []bot.Row) error {
	change := &bot.Change{}
	for i := range rows {
		v := o.vague(ctx, &rows[i], bot.Sending, errors.New("the process ended while this was being sent"))
		v.update.NotBefore = time.Time{}
		change.Rows = append(change.Rows, v.update)
		for _, card := range v.more.Cards {
			card.Send += len(change.Send)
			change.Cards = append(change.Cards, card)
		}
		change.Send = append(change.Send, v.more.Send...)
	}
	if len(rows) == 0 {
		return nil
	}
	_, err := o.deps.Store.Apply(ctx, change)
	return err
}

// inherit takes over the rows that other processes left in state sending while this one runs (found reports whether
// there were any), and the losses that people were not told about. adopt says that there may be rows of a commit whose
// reply was lost.
func (o *Outbox) inherit(ctx context.Context, look uint64, adopt bool) (found bool, err error) {
	if !adopt && !o.opts.Shared {
		return false, nil
	}
	begun, err := o.deps.Store.Stranded(ctx, o.opts.Channel, o.opts.Bot)
	if err != nil {
		return false, err
	}
	left := o.adopted(ctx, begun, look, adopt)
	if err := o.doubted(ctx, left); err != nil || !o.opts.Shared {
		return len(left) > 0, err
	}
	rows, err := o.deps.Store.Lost(ctx, o.opts.Channel, o.opts.Bot)
	if err != nil {
		return false, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.lost)
	for i := range rows {
		if told, gone := o.finished[rows[i].ID]; !gone || told < look {
			o.remind(&rows[i])
		}
	}
	return len(left) > 0, nil
}
