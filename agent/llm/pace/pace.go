// Package pace limits how many requests a provider gets at once and learns the limit from rate limit errors. A 429
// halves the limit (once for all requests that were in flight together), every full round of answers raises it by one,
// and all requests observe the wait that a server asks for. Waiting requests take turns by llm.Request.Party, so that
// one person's many conversations do not delay another person's first.
//
// The limit is per process. Several processes with one key learn independently, each from the vendor's answers.
package pace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/fair"
)

// Options configure New; zero values take the defaults in brackets.
type Options struct {
	Most int // requests at once, also if none was refused yet [1024]
	// Patience is the longest wait asked for by a server that is waited for here. A longer one is returned to the
	// caller [30 s].
	Patience time.Duration
	Now      func() time.Time // [time.Now]
	// Observe is called with the new limit when it was lowered; may be nil. Must not block.
	Observe func(limit int, wait time.Duration)
}

// provider is the wrapper. It is as safe for concurrent use as inner.
type provider struct {
	inner llm.Provider
	o     Options

	mu     sync.Mutex
	limit  float64
	busy   int
	round  int       // incremented when the limit is lowered: requests from before do not lower it again
	until  time.Time // nothing begins before this time
	alarm  *time.Timer
	queued fair.Queue[*waiter]
}

// waiter is a request that has not begun. Guarded by provider.mu except for ready.
type waiter struct {
	ready chan struct{} // closed when it may begin, or err is set
	begun bool
	gone  bool
	err   error
	round int
}

// New wraps inner. The wrapper has the name of inner.
func New(inner llm.Provider, o Options) llm.Provider {
	if o.Most <= 0 {
		o.Most = 1024
	}
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Observe == nil {
		o.Observe = func(int, time.Duration) {}
	}
	return &provider{inner: inner, o: o, limit: float64(o.Most)}
}

// Name implements llm.Provider.
func (p *provider) Name() string { return p.inner.Name() }

// Accepts implements llm.Accepter.
func (p *provider) Accepts() llm.Accepts { return llm.AcceptsOf(p.inner) }

// Chat implements llm.Provider. It waits for its turn until ctx ends.
func (p *provider) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	w, err := p.enter(ctx, req.Party)
	if err != nil {
		return nil, err
	}
	err = errors.New("the provider panicked")
	defer func() { p.leave(w, req.Party, err) }()
	var res *llm.Response
	res, err = p.inner.Chat(ctx, req, onDelta)
	return res, err //nolint:wrapcheck // the wrapped provider's own error
}

// enter waits for a slot.
func (p *provider) enter(ctx context.Context, party string) (*waiter, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("model %s: %w", p.Name(), err)
	}
	w := &waiter{ready: make(chan struct{})}
	p.mu.Lock()
	if wait := p.until.Sub(p.o.Now()); wait > p.o.Patience {
		p.mu.Unlock()
		return nil, p.refused(wait)
	}
	p.queued.Push(party, w)
	p.admit()
	p.mu.Unlock()
	select {
	case <-w.ready:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case w.err != nil:
		return nil, w.err
	case ctx.Err() == nil:
		return w, nil
	case w.begun:
		p.busy--
		p.queued.Done(party)
		p.admit()
	default:
		w.gone = true
	}
	return nil, fmt.Errorf("model %s: wait for a request slot: %w", p.Name(), ctx.Err())
}

// refused is the error of a request that would have to wait too long.
func (p *provider) refused(wait time.Duration) error {
	return &llm.Error{
		Kind: llm.RateLimited, Provider: p.Name(), RetryAfter: wait,
		Err: errors.New("not sent: the server asked for a longer pause than the service waits"),
	}
}

// admit starts as many waiting requests as allowed. p.mu must be held.
func (p *provider) admit() {
	wait := p.until.Sub(p.o.Now())
	if wait > 0 {
		if p.alarm == nil && p.queued.Len() > 0 {
			p.alarm = time.AfterFunc(wait, func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.alarm = nil
				p.admit()
			})
		}
		return
	}
	for p.busy < int(p.limit) {
		party, w, ok := p.queued.Pop()
		switch {
		case !ok:
			return
		case w.gone:
			p.queued.Done(party)
		default:
			w.begun, w.round = true, p.round
			p.busy++
			close(w.ready)
		}
	}
}

// leave releases a slot and learns from the result.
func (p *provider) leave(w *waiter, party string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var e *llm.Error
	switch limited := errors.As(err, &e) && e.Kind == llm.RateLimited; {
	case limited:
		p.lower(w, e.RetryAfter)
	case err == nil && p.busy >= int(p.limit): // only a limit that is reached shows that there is room above it
		p.limit = min(float64(p.o.Most), p.limit+1/p.limit)
	}
	p.busy--
	p.queued.Done(party)
	p.admit()
}

// lower halves the number of requests in flight when the server refused one, and observes the wait it asked for. p.mu
// must be held.
func (p *provider) lower(w *waiter, wait time.Duration) {
	if at := p.o.Now().Add(wait); wait > 0 && at.After(p.until) {
		p.until = at
		if p.alarm != nil && p.alarm.Stop() {
			p.alarm = nil
		}
		if wait > p.o.Patience {
			p.turnAway(wait)
		}
	}
	if w.round < p.round {
		return
	}
	p.round++
	p.limit = max(1, min(p.limit, float64(p.busy))/2)
	p.o.Observe(int(p.limit), wait)
}

// turnAway ends all requests that would have to wait too long. p.mu must be held.
func (p *provider) turnAway(wait time.Duration) {
	for {
		party, w, ok := p.queued.Pop()
		if !ok {
			return
		}
		p.queued.Done(party)
		if !w.gone {
			w.err = p.refused(wait)
			close(w.ready)
		}
	}
}
