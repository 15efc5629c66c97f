package command

import (
	"context"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

func (t *Table) status(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	place, about := call.Message.Place, t.deps.About
	lane, err := t.deps.Store.Lane(ctx, call.Session)
	if err != nil {
		return turn.Effect{}, err
	}
	waiting, err := t.deps.Store.Tickets(ctx, string(call.Session))
	if err != nil {
		return turn.Effect{}, err
	}
	s := texts.Status{Model: about.Model(call.Session), Lane: lane, Waiting: len(waiting), Tools: t.usable(call)}
	if lane.Turn != "" { // it still counts the message that it began with
		s.Waiting = max(0, s.Waiting-1)
	}
	if !lane.Since.IsZero() {
		s.Since = t.deps.Now().Sub(lane.Since)
	}
	if about.Fenced != nil {
		s.Fenced = about.Fenced(call.Session)
	}
	if about.Servers != nil {
		s.Servers = about.Servers()
	}
	if call.Admin {
		if s.Details, err = t.details(ctx, place); err != nil {
			return turn.Effect{}, err
		}
	}
	return t.say(call, t.deps.Words.Status(call.Message.Language, s)), nil
}

// details returns what /status shows to admins.
func (t *Table) details(ctx context.Context, place bot.Place) (*texts.Details, error) {
	about := t.deps.About
	counts, err := t.deps.Store.Counts(ctx, place.Channel, place.Bot)
	if err != nil {
		return nil, err
	}
	// Arrivals in progress do not wait: each turn holds the arrival that it began with, and this command is one itself.
	counts.Queued = max(0, counts.Queued-counts.Running-counts.Parked-counts.Waiting-1)
	d := &texts.Details{
		Counts: counts, Sandbox: about.Sandbox, Embedded: about.Embedded, Engine: about.Engine, Version: about.Version,
		Up: t.deps.Now().Sub(about.Started),
	}
	if about.Previews != nil {
		d.Previews = about.Previews(ctx)
	}
	if about.Filters != nil {
		d.Filters = about.Filters()
	}
	if about.Processes != nil {
		d.Processes = about.Processes()
	}
	if about.Redis != nil {
		d.Redis = about.Redis(ctx)
	}
	return d, nil
}
