package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// Gone reports that a chat cannot be reached any more because the bot was blocked or removed, as a request that began at a
// time of the store's clock has shown. The express loop ends the turns of the chat and its other work. Messages that arrived after the request began are handled as usual: who writes them has let the bot in again.
// Safe for concurrent use.
func (d *Dispatcher) Gone(place bot.Place, asked time.Time) {
	chat := place.ChatKey()
	d.mu.Lock()
	if asked.After(d.lost[chat]) {
		d.lost[chat] = asked
	}
	d.mu.Unlock()
	d.nudge(d.express)
}

// leaveLost ends the work of the chats that cannot be reached.
func (d *Dispatcher) leaveLost(ctx context.Context) {
	d.mu.Lock()
	lost := d.lost
	d.lost = map[string]time.Time{}
	d.mu.Unlock()
	for chat, since := range lost {
		if err := d.leaveOne(ctx, chat, since); err != nil {
			d.report(ctx, err, "end the work of a chat that is gone")
			d.mu.Lock()
			if d.lost[chat].IsZero() {
				d.lost[chat] = since
			}
			d.mu.Unlock()
		}
	}
}

func (d *Dispatcher) leaveOne(ctx context.Context, chat string, since time.Time) error {
	for range 4 {
		e, err := d.leave(ctx, chat, func(_ int64, at time.Time) bool { return !at.After(since) })
		if err != nil || len(e.Stop)+len(e.Change.Done) == 0 {
			return err
		}
		_, err = d.parts.Store.Apply(ctx, &e.Change)
		switch {
		case err == nil:
			d.after(e)
			return nil
		case !errors.Is(err, bot.ErrConflict) && !errors.Is(err, bot.ErrLost):
			return fmt.Errorf("end the turns of a chat: %w", err)
		}
	}
	return nil // it changes too fast: whatever begins there will fail to send, too
}

// leave returns the Effect that ends the work of a chat, as far as meant selects it: turns are stopped, including
// parked ones with their questions, and waiting messages are dropped. Nobody is told, it is only logged. Commands in
// the background run to their end.
func (d *Dispatcher) leave(
	ctx context.Context, chat string, meant func(seq int64, at time.Time) bool,
) (turn.Effect, error) {
	var e turn.Effect
	lanes, err := d.parts.Store.Busy(ctx, chat)
	if err != nil {
		return e, err
	}
	tickets, err := d.parts.Store.Tickets(ctx, chat)
	if err != nil {
		return e, err
	}
	own := map[int64]bot.Lane{}
	for i := range lanes {
		own[lanes[i].Arrival] = lanes[i]
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range tickets {
		lane, busy := own[t.Seq]
		switch {
		case !meant(t.Seq, t.At):
		case !busy || lane.Session != t.Session:
			e.Change.Done = append(e.Change.Done, t.Seq)
		default:
			turn := lane.Turn
			d.leaving[t.Session] = turn
			e.Stop = append(e.Stop, t.Session)
			e.Change.Lanes = append(e.Change.Lanes, bot.LaneUpdate{Session: t.Session, Stop: &turn})
		}
	}
	if len(e.Stop)+len(e.Change.Done) > 0 {
		d.parts.Log.Info().Str("chat", chat).Int("turns", len(e.Stop)).Int("messages", len(e.Change.Done)).
			Msg("the chat is gone: its turns are ended, its waiting messages dropped")
	}
	return e, nil
}
