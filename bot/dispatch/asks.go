package dispatch

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
)

var _ agent.Asker = (*laneJournal)(nil)

// asked are questions of the turn as they are put to people.
func (w *work) asked(questions []tools.Question, stats journal.Stats) turn.Asked {
	asked := turn.Asked{
		Session: w.lane.Session, Turn: w.turn.ID, Place: w.msg.Place, Caller: w.msg.Caller, Name: w.msg.Name,
		Language: w.msg.Language, Questions: questions, Stats: stats,
	}
	if w.msg.Place.Group {
		asked.ReplyTo = w.msg.Message
	}
	return asked
}

// Ask implements agent.Asker. A decision about these questions is acted on when the turn has parked.
func (j *laneJournal) Ask(ctx context.Context, questions []tools.Question, stats journal.Stats) (err error) {
	w := j.ear.work
	w.fresh = false // the end of the turn withdraws what is open
	for try := range commitTries {
		if try > 0 && !pause(ctx, time.Duration(try)*commitPause) {
			return err
		}
		change := &bot.Change{Lease: &j.lease}
		if err = w.d.parts.Approvals.Ask(ctx, w.asked(questions, stats), change); err == nil && len(change.Ask) > 0 {
			_, err = j.store.Apply(ctx, change)
		}
		switch {
		case err == nil:
			j.wake()
			return nil
		case taken(err), hopeless(err):
			return err
		}
	}
	return err
}

// decidedLater keeps a decision about a turn that another process still works on: the turn may park with other
// questions open, and then nobody else looks at it.
func (d *Dispatcher) decidedLater(session bot.SessionKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.decided[session] {
		d.retry[session] = true
	}
}
