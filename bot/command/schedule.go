package command

import (
	"context"

	"github.com/zephbot/zephbot/bot/turn"
)

// schedule answers /schedule.
func (t *Table) schedule(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	if t.deps.Schedule == nil {
		return t.say(call, t.deps.Words.ScheduleOff(call.Message.Language)), nil
	}
	return t.deps.Schedule(ctx, call)
}
