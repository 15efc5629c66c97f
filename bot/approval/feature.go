package approval

import (
	"context"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/turn"
)

// Questions decides open questions by a command: a Broker, or what wraps it.
type Questions interface {
	Command(ctx context.Context, call *turn.Call, state bot.ApprovalState) (turn.Effect, error)
}

// Feature returns /approve and /deny. The buttons of questions come with the questions (turn.Approvals).
func Feature(of Questions) feature.Feature {
	decide := func(state bot.ApprovalState) func(context.Context, *turn.Call) (turn.Effect, error) {
		return func(ctx context.Context, call *turn.Call) (turn.Effect, error) { return of.Command(ctx, call, state) }
	}
	return feature.Feature{Name: "approval", Commands: []feature.Command{
		{Name: "approve", Audience: feature.Deciders, Run: decide(bot.Approved)},
		{Name: "deny", Audience: feature.Deciders, Run: decide(bot.Denied)},
	}}
}
