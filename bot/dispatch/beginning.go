package dispatch

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// beginningTime is how long a command waits for a turn that begins. The store is in trouble if that is not enough, and
// other commands wait behind this one.
const beginningTime = 5 * time.Second

// awaitBeginnings waits, for the commands of a batch that overtake what waits, until the turns that this process begins
// in their sessions are stored. Otherwise a /stop that came to another connection of a webhook would be stored before
// the message that it stops.
func (d *Dispatcher) awaitBeginnings(ctx context.Context, batch []incoming) {
	for i := range batch {
		if batch[i].overtakes {
			d.awaitBeginning(ctx, d.session(&batch[i].msg))
		}
	}
}

// awaitBeginning waits until a turn that this process begins in a session is stored, or refused. For its person it runs
// already: a command must not find its message still waiting, or nothing at all.
func (d *Dispatcher) awaitBeginning(ctx context.Context, session bot.SessionKey) {
	d.mu.Lock()
	j := d.jobs[session]
	var begun <-chan struct{}
	if j != nil && j.cancel != nil && !j.held {
		begun = j.beginning
	}
	d.mu.Unlock()
	if begun == nil {
		return
	}
	timer := time.NewTimer(beginningTime)
	defer timer.Stop()
	select {
	case <-begun:
	case <-timer.C:
	case <-ctx.Done():
	}
}
