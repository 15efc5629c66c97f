package dispatch

import (
	"context"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// reminder is what the model of a turn is reminded of.
type reminder struct {
	recalled *journal.Recalled // nil = nothing
	flagged  bool              // it tries to give instructions
}

// remind looks up what may matter to the message of a turn that begins. It becomes part of the message's entry, so that
// the conversation before it, which a vendor may have cached, stays the same.
func (d *Dispatcher) remind(ctx context.Context, lane *bot.Lane, t *task, j *job, payer cost.Payer) {
	memory := d.parts.Memory
	if memory == nil || !memory.Has(t.msg) {
		return
	}
	d.stepAside(j) // a text is looked up by a request to its model
	of := &turn.Reminder{Message: t.msg}
	if tail, ok := d.kept.tail(lane); ok {
		for i := range tail.Entries {
			switch e := &tail.Entries[i]; {
			case e.Begins():
				of.Known = nil
			case e.Recalled != nil:
				of.Known = append(of.Known, e.Recalled.IDs...)
			}
		}
	}
	t.recalled, t.flagged = memory.Recall(cost.WithPayer(ctx, payer), of)
}
