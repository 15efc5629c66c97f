package command

import (
	"context"

	"github.com/zephbot/zephbot/bot/turn"
)

// Refusals explains why calls were refused (/why).
type Refusals interface {
	Why(ctx context.Context, call *turn.Call) (turn.Effect, error)
}

// why is /why.
func (t *Table) why(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	if t.deps.Refusals == nil {
		return t.say(call, t.deps.Words.WhyNothing(call.Message.Language)), nil
	}
	return t.deps.Refusals.Why(ctx, call)
}

// People admits people and groups (/people, /admit, /remove); the caller is an admin.
type People interface {
	People(ctx context.Context, call *turn.Call) (turn.Effect, error)
	Admit(ctx context.Context, call *turn.Call) (turn.Effect, error)
	Remove(ctx context.Context, call *turn.Call) (turn.Effect, error)
}

// people is one of the commands about who may talk to the bot.
func (t *Table) people(work func(People, context.Context, *turn.Call) (turn.Effect, error)) func(context.Context, *turn.Call) (turn.Effect, error) {
	return func(ctx context.Context, call *turn.Call) (turn.Effect, error) {
		if t.deps.People == nil {
			return t.say(call, t.deps.Words.PeopleOff(call.Message.Language)), nil
		}
		return work(t.deps.People, ctx, call)
	}
}

// usable lists the tools that the caller may use here.
func (t *Table) usable(call *turn.Call) []string {
	names := t.deps.About.Tools(call.Message.Place)
	if call.Allowed == nil {
		return names
	}
	var own []string
	for _, name := range names {
		if call.Allowed(name) {
			own = append(own, name)
		}
	}
	return own
}
