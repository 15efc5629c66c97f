package dispatch

import (
	"context"
	"fmt"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
)

// task is an arrival that a worker handles.
type task struct {
	arrival   *bot.Arrival
	msg       *bot.Message // in the chat that its session is in now
	verdict   turn.Verdict
	rules     turn.Rules
	reachable bool          // somebody could approve what the person asks for
	waiting   []bot.Arrival // waiting arrivals of its session, as far as they were read
	rest      []int64       // further arrivals that the turn works on
	// what became of its files; nil = nobody has read them
	received *turn.Received
	first    *bot.Message // the message of arrival alone
	reminder
}

// task decodes an arrival. Access and rules are those of the chat where the message was written; the answer is sent to
// the chat that its session is in now.
func (d *Dispatcher) task(ctx context.Context, a *bot.Arrival) (*task, error) {
	msg, err := d.decode(a)
	if err != nil {
		return nil, err
	}
	return d.taskOf(ctx, a, msg)
}

// taskOf is task for an arrival that has been decoded.
func (d *Dispatcher) taskOf(ctx context.Context, a *bot.Arrival, msg bot.Message) (*task, error) {
	verdict, err := d.parts.Guard.Admit(ctx, &msg)
	if err != nil {
		return nil, fmt.Errorf("check who may talk: %w", err)
	}
	if verdict.Payer != "" {
		msg.Caller = verdict.Payer
	}
	rules := d.parts.Guard.Rules(msg.Place)
	relocate(&msg, a.Session)
	first := msg
	t := &task{arrival: a, msg: &msg, first: &first, verdict: verdict, rules: rules}
	if verdict.OK {
		caller := msg.Caller
		if msg.FromBot { // it presses no buttons
			caller = ""
		}
		if t.reachable, err = d.parts.Approvals.Reachable(ctx, msg.Place, caller); err != nil {
			return nil, fmt.Errorf("check who may approve: %w", err)
		}
	}
	return t, nil
}

// both says which tools two allow-lists have; nil = all.
func both(a, b func(tool string) bool) func(tool string) bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	default:
		return func(tool string) bool { return a(tool) && b(tool) }
	}
}

// overlay returns how the tools of a turn differ from all tools. Added tools that are unsound are left out.
func (d *Dispatcher) overlay(allowed func(tool string) bool, added []tools.Tool) *tools.Overlay {
	if len(added) == 0 {
		return tools.Only(allowed)
	}
	var takes func(tool string) bool
	if allowed != nil {
		takes = func(tool string) bool { return !allowed(tool) }
	}
	o, err := tools.NewOverlay(takes, added...)
	if err != nil {
		d.parts.Log.Error().Err(err).Msg("tools of a channel cannot be used")
		return tools.Only(allowed)
	}
	return o
}

// private reports whether nobody but the writer of a message reads its chat.
func private(msg *bot.Message) bool {
	return !msg.Place.Group && msg.Place.Ordinary() && msg.Caller != "" && !msg.FromBot
}

// turnOf returns what the Runner needs to know about a turn.
func (d *Dispatcher) turnOf(lane *bot.Lane, t *task) *agent.Turn {
	place, model := t.msg.Place, ""
	if d.parts.Model != nil {
		model = d.parts.Model(lane.Session)
	}
	return &agent.Turn{
		Model: model,
		ID:    lane.Turn, Request: requestID(lane.Turn), System: t.rules.System,
		Tools: d.overlay(both(t.rules.Allowed, t.verdict.Allowed), t.rules.Added), Group: place.Group,
		Shared: place.Group && t.rules.SharedSession,
		Origin: tools.Origin{
			Channel: place.Channel, Session: string(lane.Session), Workspace: lane.Workspace, Chat: place.ChatKey(),
			Turn:   lane.Turn,
			Caller: t.msg.Caller, Name: t.msg.Name, Admin: t.verdict.Admin,
			Private: private(t.msg),
			Alone:   !t.reachable,
		},
	}
}
