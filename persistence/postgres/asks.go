package postgres

import (
	"context"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/zephbot/zephbot/persistence/reading"
)

// This file sends the short reads of a process together, as group.go does with its Changes: what waits while others are
// on their way takes one round trip. Most of what such a read costs the server and this process is waking up for it.

const (
	// asksTogether bounds the reads of one round trip, asksAtOnce how many trips are under way.
	asksTogether = 64
	asksAtOnce   = 2
)

// askedTogether are the reads that find some rows of one session, or one value, by an index. Others may return much,
// for which these would wait.
var askedTogether = map[string]bool{
	laneQuery: true, nextQuery: true, queuedQuery: true, tailQuery: true, entryQuery: true,
	openQuery: true, approvalQuery: true, approvalOfQuery: true, grantedQuery: true,
	rowQuery: true, rowOfQuery: true, factQuery: true, factsQuery: true,
}

// ask is a read that is sent with others. err and alone are final when done is closed.
type ask struct {
	query string
	args  []any
	see   func(reading.Scan) error
	taken bool // guarded by asks.mu
	err   error
	alone bool // it was not answered because of another one
	done  chan struct{}
}

// asks is the queue of reads that are sent together. Safe for concurrent use.
type asks struct {
	reader  *reader
	senders sync.WaitGroup

	mu      sync.Mutex
	wake    sync.Cond
	waiting []*ask
	closed  bool
	flight
}

// startAsks starts the goroutines that send reads; stop ends them. ctx gives its values only.
func startAsks(ctx context.Context, r *reader) *asks {
	a := &asks{reader: r}
	a.wake.L = &a.mu
	for range asksAtOnce {
		a.senders.Go(func() { a.run(context.WithoutCancel(ctx)) })
	}
	return a
}

// stop waits until what is in the queue was sent. Later reads are sent alone.
func (a *asks) stop() {
	a.mu.Lock()
	a.closed = true
	a.wake.Broadcast()
	a.mu.Unlock()
	a.senders.Wait()
}

// read makes a read together with others. It returns when see is not called any more. sent is false if it has to be
// made alone; then see was not called.
func (a *asks) read(ctx context.Context, see func(reading.Scan) error, query string, args []any) (sent bool, err error) {
	one := &ask{query: query, args: args, see: see, done: make(chan struct{})}
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return false, nil
	}
	a.waiting = append(a.waiting, one)
	a.wake.Signal()
	a.mu.Unlock()
	select {
	case <-one.done:
	case <-ctx.Done():
		if a.withdraw(one) {
			return true, ctx.Err()
		}
		<-one.done // it is on its way, which takes as long as answering at most
	}
	return !one.alone, one.err
}

// withdraw takes a read out of the queue. It returns false if it is on its way.
func (a *asks) withdraw(one *ask) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one.taken {
		return false
	}
	a.waiting = slices.DeleteFunc(a.waiting, func(other *ask) bool { return other == one })
	return true
}

func (a *asks) run(ctx context.Context) {
	for {
		list := a.take()
		if len(list) == 0 {
			return
		}
		a.send(ctx, list)
		a.arrived(list)
	}
}

// arrived lets those go that wait for the end of a trip.
func (a *asks) arrived(list []*ask) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.landed(len(list))
	if len(a.waiting) > 0 {
		a.wake.Signal()
	}
}

// take waits for reads and returns those that go together; none = the queue is closed and empty.
func (a *asks) take() []*ask {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.waiting) == 0 && !a.closed || len(a.waiting) > 0 && !a.mayStart() {
		a.wake.Wait()
	}
	n := min(len(a.waiting), asksTogether)
	if n > 0 {
		a.started(n, &a.wake)
	}
	list := slices.Clone(a.waiting[:n])
	for _, one := range list {
		one.taken = true
	}
	a.waiting = slices.Delete(a.waiting, 0, n)
	return list
}

// send sends reads in one round trip. Each sees what was committed before it began. The first one that fails keeps the
// server from answering those behind it.
func (a *asks) send(ctx context.Context, list []*ask) {
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	together := &pgx.Batch{}
	for _, one := range list {
		together.Queue(one.query, one.args...)
	}
	results := a.reader.pool.SendBatch(ctx, together)
	broken := false
	for _, one := range list {
		if one.alone = broken; broken {
			continue
		}
		rows, err := results.Query()
		if one.err = err; err == nil {
			one.err = eachRow(rows, one.see)
			err = rows.Err() // not that of see
		}
		broken = err != nil
	}
	_ = results.Close() // nothing was changed, and each read has its error
	for _, one := range list {
		close(one.done)
	}
}
