package dispatch

import (
	"context"
	"errors"
	"time"

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

// heedOne cancels a turn that was asked to stop, with the cause that the store tells.
func (d *Dispatcher) heedOne(ctx context.Context, h holder) {
	lane, err := d.parts.Store.Lane(ctx, h.lease.Session)
	if err == nil && lane.Turn == h.turn {
		var waiting []bot.Arrival
		if waiting, err = d.parts.Store.Next(ctx, h.lease.Session, lookAhead); err == nil && stopped(&lane) {
			h.cancel(d.cause(ctx, &lane, waiting, true))
		}
	}
	d.report(ctx, err, "look why a turn is to be stopped")
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
				d.heedOne(ctx, h)
			}
		}
	}
}
