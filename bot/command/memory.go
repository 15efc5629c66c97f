package command

import (
	"context"

	"github.com/zephbot/zephbot/bot/turn"
)

// memory is /memory.
func (t *Table) memory(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	if t.deps.Memory == nil {
		return t.say(call, t.deps.Words.MemoryOff(call.Message.Language)), nil
	}
	return t.deps.Memory(ctx, call)
}
