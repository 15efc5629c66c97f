package dispatch

// A message that waits for the store shows that it has come: "typing" needs nothing that is stored.

import (
	"context"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot"
)

const (
	// lifeAfter is how long a message waits until something is shown, as for a turn that runs; lifeEvery how often it is
	// looked for such messages while there are any.
	lifeAfter, lifeEvery = 400 * time.Millisecond, 50 * time.Millisecond
	// lifeAtOnce limits the requests at once, lifeMost those of one look, and lifeLimit the messages that are waited for.
	lifeAtOnce, lifeMost, lifeLimit = 16, 64, 8192
)

// life holds the messages of which nothing was seen yet. The zero value is ready. Safe for concurrent use.
type life struct {
	mu    sync.Mutex
	list  []*lifeSign // in the order in which they came; those that are over stay until their time
	of    map[bot.SessionKey]*lifeSign
	first chan struct{} // signals that the list is not empty any more; nil = nobody looks
}

// lifeSign is one message. Guarded by life.mu.
type lifeSign struct {
	session bot.SessionKey
	place   bot.Place
	since   time.Time
	over    bool          // its turn has begun, or it needs none
	showing chan struct{} // closed when the request has ended; nil = there was none
}

// expectLife has a sign shown for the messages of a batch whose turns have not begun by then. Only people whom this
// process has answered before get one: of others it is not known yet whether they may talk here.
func (d *Dispatcher) expectLife(batch []incoming, now time.Time) {
	if d.parts.Typing == nil {
		return
	}
	for i := range batch {
		in := &batch[i]
		if in.arrival.Express || d.askerOf(&in.msg, &in.arrival) == nil || d.isBusy(in.arrival.Session) {
			continue
		}
		if _, known := d.kept.lane(in.arrival.Session); known {
			d.life.add(&lifeSign{session: in.arrival.Session, place: in.msg.Place, since: now})
		}
	}
}

// isBusy reports whether a worker of this process is busy with a session: what it does is shown already.
func (d *Dispatcher) isBusy(session bot.SessionKey) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.jobs[session] != nil
}

func (l *life) add(s *lifeSign) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil || len(l.list) >= lifeLimit || l.of[s.session] != nil {
		return
	}
	l.of[s.session] = s
	if l.list = append(l.list, s); len(l.list) > 1 {
		return
	}
	select {
	case l.first <- struct{}{}:
	default: // the loop looks anyway
	}
}

// open has messages be waited for, or no longer.
func (l *life) open(yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list, l.of, l.first = nil, map[bot.SessionKey]*lifeSign{}, nil
	if yes {
		l.first = make(chan struct{}, 1)
	}
}

// shown ends the wait for a message by its sign.
func (l *life) shown(s *lifeSign) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(s.showing)
	if l.of[s.session] == s {
		delete(l.of, s.session)
	}
}

// begun ends the wait of a session: what its turn does is shown from now on. The channel is closed when nothing is
// being shown any more; nil = nothing is.
func (l *life) begun(session bot.SessionKey) (showing <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.of[session]
	if s == nil {
		return nil
	}
	delete(l.of, session)
	s.over = true
	return s.showing
}

// due takes the messages that have waited long enough. wait is when to look again; 0 = when there is a message.
func (l *life) due(now time.Time) (list []*lifeSign, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for ; n < len(l.list) && len(list) < lifeMost && now.Sub(l.list[n].since) >= lifeAfter; n++ {
		if s := l.list[n]; !s.over {
			s.showing = make(chan struct{})
			list = append(list, s)
		}
	}
	if l.list = l.list[n:]; len(l.list) == 0 {
		l.list = nil
		return list, 0
	}
	return list, lifeEvery
}

// lifeLoop shows signs until ctx ends.
func (d *Dispatcher) lifeLoop(ctx context.Context) {
	if d.parts.Typing == nil {
		return
	}
	l := &d.life
	l.open(true)
	defer l.open(false)
	first := l.first
	places, wg := make(chan struct{}, lifeAtOnce), sync.WaitGroup{}
	defer wg.Wait()
	for ctx.Err() == nil {
		list, wait := l.due(d.parts.Now())
		for _, s := range list {
			places <- struct{}{}
			wg.Go(func() {
				defer func() { <-places }()
				defer l.shown(s)
				if l.waits(s) {
					d.parts.Typing(ctx, s.place)
				}
			})
		}
		timer := time.NewTimer(wait)
		if wait == 0 {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-first:
		}
		timer.Stop()
	}
}

// waits reports whether nothing was seen of a message yet.
func (l *life) waits(s *lifeSign) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !s.over
}
