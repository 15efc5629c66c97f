package app

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// endTurns asks the turns to stop that an earlier process left, and drops what waits: nobody has asked this process to
// go on with them, and nobody could be asked. ours selects the sessions; nil = all. It
// returns those that had something.
func (c *Core) endTurns(
	ctx context.Context, channel, botID string, ours func(bot.SessionKey) bool,
) (map[bot.SessionKey]bool, error) {
	store := c.stores.Bot
	ready, err := store.Ready(ctx, channel, botID, c.now(), 0)
	if err != nil {
		return nil, err
	}
	lanes, err := store.Lanes(ctx, channel, botID, 0)
	if err != nil {
		return nil, err
	}
	left := map[bot.SessionKey]bool{}
	for _, session := range ready {
		left[session] = true
	}
	for i := range lanes {
		if lanes[i].Turn != "" {
			left[lanes[i].Session] = true
		}
	}
	if ours != nil {
		maps.DeleteFunc(left, func(session bot.SessionKey, _ bool) bool { return !ours(session) })
	}
	for session := range left {
		if err := c.endTurn(ctx, session); err != nil {
			return nil, fmt.Errorf("end what an earlier process has begun: %w", err)
		}
	}
	return left, nil
}

// endsTime is how long a start waits for the ends of turns that an earlier process left.
const endsTime = 10 * time.Second

// awaitEnds waits until no turn of the sessions is under way: what is shown of them then is complete.
func (c *Core) awaitEnds(ctx context.Context, sessions map[bot.SessionKey]bool) {
	ctx, done := context.WithTimeout(ctx, endsTime)
	defer done()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for session := range sessions {
		for {
			lane, err := c.stores.Bot.Lane(ctx, session)
			if err != nil || lane.Turn == "" {
				break
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}

func (c *Core) endTurn(ctx context.Context, session bot.SessionKey) error {
	lane, err := c.stores.Bot.Lane(ctx, session)
	if err != nil {
		return err
	}
	waiting, err := c.stores.Bot.Tickets(ctx, string(session))
	if err != nil {
		return err
	}
	change := &bot.Change{}
	for _, t := range waiting {
		if lane.Turn == "" || t.Seq != lane.Arrival {
			change.Done = append(change.Done, t.Seq)
		}
	}
	if lane.Turn != "" {
		change.Lanes = []bot.LaneUpdate{{Session: session, Stop: &lane.Turn}}
	}
	_, err = c.stores.Bot.Apply(ctx, change)
	return err
}
