package deliver

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Run admits waiting requests in their order, and reports to the budget which requests have ended and what a 429 said,
// until ctx ends.
func (p *SharedPacer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		timer := time.NewTimer(p.work(ctx))
		select {
		case <-ctx.Done():
		case <-p.nudge:
		case <-timer.C:
		}
		timer.Stop()
	}
	if over := p.untold(); len(over) > 0 {
		parting, cancel := context.WithTimeout(context.WithoutCancel(ctx), partingPatience)
		defer cancel()
		// Otherwise they expire, like those of a process that was killed.
		_ = p.budget.End(parting, told(over, p.opts.Now()))
	}
	return nil
}

// work asks the budget for every waiter that may be admitted now, and returns the time until there is something to do.
func (p *SharedPacer) work(ctx context.Context) time.Duration {
	for ctx.Err() == nil {
		p.tellFreezes(ctx)
		w, wait := p.next()
		if w == nil {
			return min(wait, p.tellOver(ctx))
		}
		done, ok := p.spend(ctx, w.ask, w.place, w.priority)
		if !ok {
			continue
		}
		if !p.letGo(w, done) {
			done() // its caller has stopped waiting
		}
	}
	return 0
}

// letGo ends the wait of a request that was booked; it returns false if that has ended already.
func (p *SharedPacer) letGo(w *sharedWaiter, done func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.gone {
		return false
	}
	for i, other := range p.waiting {
		if other == w {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			break
		}
	}
	w.done = done
	close(w.granted)
	return true
}

// next returns the first waiter that is worth asking for, or, without one, the time until there may be one.
func (p *SharedPacer) next() (*sharedWaiter, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, wait := p.opts.Now(), sweepEvery
	p.forget(now)
	for _, w := range p.waiting {
		delay := p.delay(w.ask.Chat, w.priority, now)
		if delay <= 0 {
			return w, 0
		}
		wait = min(wait, delay)
	}
	return nil, wait
}

// forget drops what no longer counts. p.mu must be held.
func (p *SharedPacer) forget(now time.Time) {
	if now.Sub(p.swept) < sweepEvery {
		return
	}
	p.swept = now
	for chat, known := range p.chats {
		if !known.wait.After(now) && !known.frozen.After(now) {
			delete(p.chats, chat)
		}
	}
}

// untold takes the ended requests that were not reported yet.
func (p *SharedPacer) untold() []ended {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(len(p.over), tellMost)
	list := append([]ended(nil), p.over[:n]...)
	p.over = append(p.over[:0], p.over[n:]...)
	return list
}

// tellLater puts back what could not be reported.
func (p *SharedPacer) tellLater(over []ended) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.opts.Now()
	for _, e := range over {
		if now.Sub(e.at) < overdue { // older ones have expired
			p.over = append(p.over, e)
		}
	}
}

// told returns ended requests in the form that the budget expects.
func told(over []ended, now time.Time) []Over {
	list := make([]Over, len(over))
	for i, e := range over {
		list[i] = Over{Ask: e.ask, Ago: max(0, now.Sub(e.at))}
	}
	return list
}

// tellOver reports ended requests if no request has done so for a while, and returns the time until there may be
// something to report.
func (p *SharedPacer) tellOver(ctx context.Context) time.Duration {
	p.mu.Lock()
	wait := sweepEvery
	if len(p.over) > 0 {
		wait = tellEvery - p.opts.Now().Sub(p.over[0].at)
	}
	p.mu.Unlock()
	if wait > 0 {
		return wait
	}
	over := p.untold()
	if err := p.budget.End(ctx, told(over, p.opts.Now())); err != nil {
		p.tellLater(over)
		return tellEvery
	}
	return leastWait
}

// tellFreezes reports what a 429 said.
func (p *SharedPacer) tellFreezes(ctx context.Context) {
	p.mu.Lock()
	list := p.freezes
	p.freezes = nil
	p.mu.Unlock()
	for _, f := range list {
		left := f.wait - p.opts.Now().Sub(f.at)
		if err := p.budget.Freeze(ctx, f.chat, left, f.more); err != nil {
			p.opts.Log.Debug().Err(err).Str("chat", f.chat).
				Msg("freeze not shared; the other processes get the 429 themselves")
		}
	}
}

// book books a request that the budget has admitted.
func (p *Pacer) book(place bot.Place, priority bot.Priority) (done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.sweep(now)
	return p.take(place, priority, now)
}

// part admits a request as far as one of the given number of processes may; done is nil if it has to wait.
func (p *Pacer) part(place bot.Place, priority bot.Priority, of int) (done func(), wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, whole := p.now(), p.limits
	defer func() { p.limits = whole }()
	if whole.PerSecond > 0 {
		p.limits.PerSecond = max(1, whole.PerSecond/of)
	}
	if whole.PerGroupPerMinute > 0 {
		p.limits.PerGroupPerMinute = max(1, whole.PerGroupPerMinute/of)
	}
	p.sweep(now)
	if wait = p.delay(place, priority, now); wait > 0 {
		return nil, wait
	}
	return p.take(place, priority, now), 0
}
