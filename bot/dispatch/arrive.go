package dispatch

import (
	"context"
	"sync"

	"github.com/zephbot/zephbot/bot"
)

// mostTogether is how many arrivals are stored by one Change.
const mostTogether = 256

// arrivals stores arrivals. Those that come while others are being stored wait until that is done, and are then stored
// together, so that a flood of messages costs the store few Changes. The zero value is ready. Safe for concurrent use.
type arrivals struct {
	mu   sync.Mutex
	busy bool  // a load is being stored
	next *load // comes after it; nil = nothing waits
}

// load are arrivals that are stored together.
type load struct {
	list    []bot.Arrival
	begin   chan struct{} // closed when the load before is done
	done    chan struct{} // closed when this one is
	applied *bot.Applied
	err     error
}

// store stores arrivals and returns their numbers, 0 for those that were stored before.
func (s *arrivals) store(ctx context.Context, to bot.Writer, list []bot.Arrival) ([]int64, error) {
	s.mu.Lock()
	l, leads := s.next, false
	switch {
	case !s.busy:
		s.busy, leads = true, true
		l = &load{}
	case l == nil:
		leads = true
		l = &load{begin: make(chan struct{}), done: make(chan struct{})}
		s.next = l
	case len(l.list)+len(list) > mostTogether:
		s.mu.Unlock()
		return alone(ctx, to, list)
	}
	at := len(l.list)
	l.list = append(l.list, list...)
	s.mu.Unlock()
	if !leads {
		<-l.done
	} else {
		s.lead(ctx, to, l)
	}
	switch {
	case l.err == nil:
		return l.applied.Seqs[at : at+len(list)], nil
	case len(l.list) == len(list):
		return nil, l.err
	default: // what is wrong may be another's
		return alone(ctx, to, list)
	}
}

// lead stores a load when it is its turn, and lets the next one begin.
func (s *arrivals) lead(ctx context.Context, to bot.Writer, l *load) {
	if l.begin != nil {
		<-l.begin
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.done != nil {
			close(l.done)
		}
		if s.busy = s.next != nil; s.busy {
			close(s.next.begin)
			s.next = nil
		}
	}()
	l.applied, l.err = to.Apply(ctx, &bot.Change{Arrive: l.list})
}

func alone(ctx context.Context, to bot.Writer, list []bot.Arrival) ([]int64, error) {
	applied, err := to.Apply(ctx, &bot.Change{Arrive: list})
	if err != nil {
		return nil, err
	}
	return applied.Seqs, nil
}
