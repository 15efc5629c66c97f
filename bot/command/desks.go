package command

import (
	"context"

	"github.com/zephbot/zephbot/bot/turn"
)

// Desk answers one command.
type Desk func(ctx context.Context, call *turn.Call) (turn.Effect, error)

// Desks are the parts of the service that answer a command of their own. nil = there is no such part.
type Desks struct {
	Model    Desk // /model (bot/choice); required
	Recap    Desk // /recap (bot/recap)
	Memory   Desk // /memory (bot/memory)
	Skills   Desk // /skills (bot/skills)
	Schedule Desk // /schedule (bot/schedule)
	Zone     Desk // /timezone (bot/zone)
	Export   Desk // /export (bot/privacy)
	Forget   Desk // /forget (bot/privacy)
	Operator Desk // /admin (bot/operator)
}

// memory is /memory.
func (t *Table) memory(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	if t.deps.Memory == nil {
		return t.say(call, t.deps.Words.MemoryOff(call.Message.Language)), nil
	}
	return t.deps.Memory(ctx, call)
}

// skills is /skills.
func (t *Table) skills(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	if t.deps.Skills == nil {
		return t.say(call, t.deps.Words.SkillsOff(call.Message.Language)), nil
	}
	return t.deps.Skills(ctx, call)
}

// schedule answers /schedule.
func (t *Table) schedule(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	if t.deps.Schedule == nil {
		return t.say(call, t.deps.Words.ScheduleOff(call.Message.Language)), nil
	}
	return t.deps.Schedule(ctx, call)
}
