package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
)

// keepLeases extends the leases of the turns in progress, and finds turns that another replica was asked to stop.
func (d *Dispatcher) keepLeases(ctx context.Context) {
	leases, stops := time.NewTicker(d.opts.Lease/3), time.NewTicker(d.opts.Sweep)
	defer leases.Stop()
	defer stops.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-leases.C:
			for _, h := range d.holders() {
				d.keep(ctx, h)
			}
		case <-stops.C:
			d.heed(ctx, d.holders())
		}
	}
}

type holder struct {
	lease  bot.Lease
	turn   string
	cancel context.CancelCauseFunc
}

func (d *Dispatcher) holders() []holder {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []holder
	for _, j := range d.jobs {
		if j.cancel != nil && j.held {
			list = append(list, holder{j.lease, j.turn, j.cancel})
		}
	}
	return list
}

func (d *Dispatcher) keep(ctx context.Context, h holder) {
	until := d.parts.Now().Add(d.opts.Lease)
	_, err := d.parts.Store.Apply(ctx, &bot.Change{
		Lease: &h.lease, Lanes: []bot.LaneUpdate{{Session: h.lease.Session, Until: &until}},
	})
	if errors.Is(err, bot.ErrLost) {
		h.cancel(bot.ErrLost)
		return
	}
	d.report(ctx, err, "extend a lease")
}

// heed ends the turns that another replica was asked to stop.
func (d *Dispatcher) heed(ctx context.Context, running []holder) {
	if len(running) == 0 {
		return
	}
	stops, err := d.parts.Store.Stops(ctx, d.opts.Owner)
	if err != nil {
		d.report(ctx, err, "look for turns to stop")
		return
	}
	for _, s := range stops {
		for _, h := range running {
			if h.lease.Session == s.Session && h.turn == s.Turn {
				h.cancel(agent.ErrStopped)
			}
		}
	}
}
