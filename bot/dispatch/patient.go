package dispatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// errMoving is why somebody is neither admitted nor refused yet.
var errMoving = errors.New("the group is getting a new id, under which it is not known yet")

// patient is a Guard that refuses nobody too early.
type patient struct {
	turn.Guard
	reader *Dispatcher // of arrivals; it is never started
}

// patiently makes the Guard of a Dispatcher a patient one.
func patiently(parts Parts, opts Options) (Parts, Options) {
	parts.Guard = patient{Guard: parts.Guard, reader: &Dispatcher{parts: parts, opts: opts}}
	return parts, opts
}

// Admit implements turn.Guard. A group that is not on the list may be the new id of one that is, which another arrival
// tells: nobody in it is refused while that waits, here or in another process. Then the error is errMoving.
func (p patient) Admit(ctx context.Context, msg *bot.Message) (turn.Verdict, error) {
	verdict, err := p.Guard.Admit(ctx, msg)
	if err != nil || verdict.OK || !msg.Place.Group {
		return verdict, err
	}
	moving, err := p.reader.moving(ctx, msg.Place.Chat)
	switch {
	case err != nil:
		return turn.Verdict{}, err
	case moving:
		return turn.Verdict{}, errMoving
	default: // it may have moved between the two looks
		return p.Guard.Admit(ctx, msg)
	}
}

// moving says whether an arrival waits that tells of a chat as the new id of a group.
func (d *Dispatcher) moving(ctx context.Context, chat string) (bool, error) {
	waiting, err := d.parts.Store.Express(ctx, d.opts.Channel, d.opts.Bot, expressBatch)
	if err != nil {
		return false, fmt.Errorf("look for groups with new ids: %w", err)
	}
	for i := range waiting {
		// one that cannot be read tells of nothing
		if msg, err := d.decode(&waiting[i]); err == nil && msg.Kind == bot.Migrated && msg.Target == chat {
			return true, nil
		}
	}
	return false, nil
}
