package turn

import (
	"context"

	"github.com/zephbot/zephbot/bot"
)

// Audit writes to the audit log what people do by commands and buttons. The zero value writes nothing.
type Audit struct {
	// Line returns the facts of a line about a call, to be stored in the Change that does what it says. what takes the
	// place of a tool's name, args are encoded as JSON. nil = nothing is recorded.
	Line func(call *Call, what string, args any) []bot.Fact
	// Recorded writes the lines that are stored.
	Recorded func(ctx context.Context)
}

// Record adds a line to an Effect, which is then written as soon as the Effect is stored.
func (a Audit) Record(e Effect, call *Call, what string, args any) Effect {
	if a.Line == nil {
		return e
	}
	e.Change.Facts = append(e.Change.Facts, a.Line(call, what, args)...)
	then := e.Then
	e.Then = func(ctx context.Context, applied *bot.Applied) (Effect, error) {
		a.Recorded(ctx)
		if then == nil {
			return Effect{}, nil
		}
		return then(ctx, applied)
	}
	return e
}
