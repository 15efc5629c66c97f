package route

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/fair"
)

// PacerOptions configure NewPacer; zero values take the defaults in brackets.
type PacerOptions struct {
	Most int // requests at once, also if none was refused yet [1024]
	// Patience is the longest wait asked for by a server that is waited for here. A longer one is returned to the
	// caller [30 s].
	Patience time.Duration
	Now      func() time.Time // [time.Now]
	// Observe is called with the new limit when it was lowered; may be nil. Must not block.
	Observe func(limit int, wait time.Duration)
}

// pacer is the wrapper. It is as safe for concurrent use as inner.
type pacer struct {
	inner llm.Provider
	o     PacerOptions

	mu     sync.Mutex
	limit  float64
	busy   int
	round  int       // incremented when the limit is lowered: requests from before do not lower it again
	until  time.Time // nothing begins before this time
	alarm  *time.Timer
	queued fair.Queue[*pacedCall]
}

// pacedCall is a request that has not begun. Guarded by provider.mu except for ready.
type pacedCall struct {
	ready chan struct{} // closed when it may begin, or err is set
	begun bool
	gone  bool
	err   error
	round int
}

// NewPacer limits how many requests inner gets at once and learns the limit from rate limit errors. A 429 halves the
// limit (once for all requests that were in flight together), every full round of answers raises it by one, and all
// requests observe the wait that a server asks for. Waiting requests take turns by llm.Request.Party, so that one
// person's many conversations do not delay another person's first. The wrapper has the name of inner.
//
// The limit is per process. Several processes with one key learn independently, each from the vendor's answers.
func NewPacer(inner llm.Provider, o PacerOptions) llm.Provider {
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
	return &pacer{inner: inner, o: o, limit: float64(o.Most)}
}

// Name implements llm.Provider.
func (p *pacer) Name() string { return p.inner.Name() }

// Accepts implements llm.Accepter.
func (p *pacer) Accepts() llm.Accepts { return llm.AcceptsOf(p.inner) }

// Chat implements llm.Provider. It waits for its turn until ctx ends.
func (p *pacer) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	w, err := p.awaitPlace(ctx, req.Party)
	if err != nil {
		return nil, err
	}
	err = errors.New("the provider panicked")
	defer func() { p.freePlace(w, req.Party, err) }()
	var res *llm.Response
	res, err = p.inner.Chat(ctx, req, onDelta)
	return res, err //nolint:wrapcheck // the wrapped provider's own error
}

// awaitPlace waits for a slot.
func (p *pacer) awaitPlace(ctx context.Context, party string) (*pacedCall, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("model %s: %w", p.Name(), err)
	}
	w := &pacedCall{ready: make(chan struct{})}
	p.mu.Lock()
	if wait := p.until.Sub(p.o.Now()); wait > p.o.Patience {
		p.mu.Unlock()
		return nil, p.refuseCrowd(wait)
	}
	p.queued.Push(party, w)
	p.admitWaiting()
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
		p.admitWaiting()
	default:
		w.gone = true
	}
	return nil, fmt.Errorf("model %s: wait for a request slot: %w", p.Name(), ctx.Err())
}

// refuseCrowd is the error of a request that would have to wait too long.
func (p *pacer) refuseCrowd(wait time.Duration) error {
	return &llm.Error{
		Kind: llm.RateLimited, Provider: p.Name(), RetryAfter: wait,
		Err: errors.New("not sent: the server asked for a longer pause than the service waits"),
	}
}

// admitWaiting starts as many waiting requests as allowed. p.mu must be held.
func (p *pacer) admitWaiting() {
	wait := p.until.Sub(p.o.Now())
	if wait > 0 {
		if p.alarm == nil && p.queued.Len() > 0 {
			p.alarm = time.AfterFunc(wait, func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.alarm = nil
				p.admitWaiting()
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

// freePlace releases a slot and learns from the result.
func (p *pacer) freePlace(w *pacedCall, party string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var e *llm.Error
	switch limited := errors.As(err, &e) && e.Kind == llm.RateLimited; {
	case limited:
		p.lowerLimit(w, e.RetryAfter)
	case err == nil && p.busy >= int(p.limit): // only a limit that is reached shows that there is room above it
		p.limit = min(float64(p.o.Most), p.limit+1/p.limit)
	}
	p.busy--
	p.queued.Done(party)
	p.admitWaiting()
}

// lowerLimit halves the number of requests in flight when the server refused one, and observes the wait
// it asked for. p.mu must be held.
func (p *pacer) lowerLimit(w *pacedCall, wait time.Duration) {
	if at := p.o.Now().Add(wait); wait > 0 && at.After(p.until) {
		p.until = at
		if p.alarm != nil && p.alarm.Stop() {
			p.alarm = nil
		}
		if wait > p.o.Patience {
			p.refuseWaiting(wait)
		}
	}
	if w.round < p.round {
		return
	}
	p.round++
	p.limit = max(1, min(p.limit, float64(p.busy))/2)
	p.o.Observe(int(p.limit), wait)
}

// refuseWaiting ends all requests that would have to wait too long. p.mu must be held.
func (p *pacer) refuseWaiting(wait time.Duration) {
	for {
		party, w, ok := p.queued.Pop()
		if !ok {
			return
		}
		p.queued.Done(party)
		if !w.gone {
			w.err = p.refuseCrowd(wait)
			close(w.ready)
		}
	}
}
