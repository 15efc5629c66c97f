package sign

import (
	"context"
	"encoding/json"

	"github.com/zephbot/zephbot/bot"
)

// startCrowd begins to show signs on messages that wait because many are asking: so many together that they cost the
// store one Change, and only while no others are being stored. d.mu must be held.
func (d *Reactions) startCrowd(ctx context.Context) {
	if d.crowding || len(d.crowd) == 0 {
		return
	}
	n := min(batch, len(d.crowd))
	var list []crowded
	for _, c := range d.crowd[:n] {
		s := d.sessionOf(c.session)
		if s.busy || len(s.marks) > 0 { // it has a sign, or gets one
			continue
		}
		s.busy, s.crowd = true, true
		list = append(list, c)
	}
	if d.crowd = d.crowd[n:]; len(d.crowd) == 0 {
		d.crowd = nil
	}
	d.crowding = true
	d.wg.Go(func() {
		err := d.keepCrowd(ctx, list)
		d.reportError(ctx, err, "signs on waiting messages not shown")
		for _, c := range list {
			d.wg.Go(func() { d.showCrowded(ctx, c, err == nil) })
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.crowding = false
		d.nudge()
	})
}

// keepCrowd stores signs before they are shown.
func (d *Reactions) keepCrowd(ctx context.Context, list []crowded) error {
	change := &bot.Change{}
	for _, c := range list {
		value, err := json.Marshal(c.mark)
		if err != nil {
			return err
		}
		f := signFact(c.session, c.arrival, string(value))
		f.Expires = d.deps.Now().Add(keep)
		change.Facts = append(change.Facts, f)
	}
	if len(change.Facts) == 0 {
		return nil
	}
	return d.applyChange(ctx, change)
}

// showCrowded shows one sign, and gives its session back.
func (d *Reactions) showCrowded(ctx context.Context, c crowded, kept bool) {
	d.slots <- struct{}{}
	defer func() { <-d.slots }()
	d.mu.Lock()
	s := d.sessionOf(c.session)
	d.mu.Unlock()
	if kept {
		s.marks[c.arrival] = c.mark
		if err := d.requestReaction(ctx, c.mark.Place, c.mark.Message, Seen); err != nil && isUseless(err) {
			d.forgetSign(ctx, c.session, s.marks, c.arrival)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.busy = false
	if d.restSession(s); len(s.marks) == 0 && s.due.IsZero() {
		s.crowd = false
	}
}
