package dispatch

import (
	"context"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

func (d *Dispatcher) expressPress(ctx context.Context, a *bot.Arrival, msg *bot.Message) error {
	verdict, err := d.parts.Guard.Admit(ctx, msg)
	if err != nil {
		return err
	}
	if !verdict.OK {
		row := bot.Row{
			Place: msg.Place, Purpose: bot.Toast, Query: msg.Query, Alert: true,
			Content: bot.Content{Text: verdict.Reply},
		}
		return d.effect(ctx, a, func() (turn.Effect, error) {
			return turn.Effect{Change: bot.Change{Send: []bot.Row{row}}}, nil
		})
	}
	prefix, _, _ := strings.Cut(msg.Data, ":")
	presser := d.parts.Pressers[prefix]
	return d.effect(ctx, a, func() (turn.Effect, error) {
		if presser == nil && prefix != againPrefix {
			return d.parts.Approvals.Press(ctx, msg)
		}
		call := &turn.Call{Message: msg, Session: d.session(msg), Admin: verdict.Admin, Running: d.busy(d.session(msg))}
		if presser == nil {
			return d.pressAgain(ctx, call)
		}
		return presser.Press(ctx, call)
	})
}

// stopTap handles the Stop button of a draft. It never stops a turn that a later message began.
func (d *Dispatcher) stopTap(ctx context.Context, a *bot.Arrival, msg *bot.Message) (turn.Effect, error) {
	session := d.session(msg)
	lane, err := d.parts.Store.Lane(ctx, session)
	if err != nil || lane.Turn == "" || lane.Arrival > a.Seq {
		return turn.Effect{}, err
	}
	waiting, err := d.parts.Store.Next(ctx, session, lookAhead)
	if err != nil {
		return turn.Effect{}, err
	}
	return turn.Effect{
		Change: bot.Change{
			Lanes: []bot.LaneUpdate{{Session: session, Stop: new(lane.Turn)}},
			Done:  editsOf(waiting, lane.Turn), // or the turn would go on with them
		},
		Stop: []bot.SessionKey{session},
	}, nil
}
