package dispatch

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// first is a message that finds its session idle: the Change that stores it also begins its turn.
type first struct {
	arrival *bot.Arrival
	msg     bot.Message
	stored  chan bool // receives whether message and turn are stored; if not, the message is stored without a turn
	begun   bool      // what stored received, for Accept
	// One of the two takes the message: the worker, whose Change stores it with its turn, or Accept, which stores it
	// without. Both at once would be two Changes, of which one is refused and begins again: a store that is late
	// because it has too much to do would get more.
	taken atomic.Bool
}

// firstTime is how long Accept waits until the Change that begins a turn is on its way to the store. After that the
// message is stored without its turn. A Change that is on its way is waited for.
const firstTime = 500 * time.Millisecond

// take claims the message for the Change that stores it. It returns false if the other side was faster.
func (f *first) take() bool { return f.taken.CompareAndSwap(false, true) }

// awaitFirsts waits until it is known for which messages the turn has begun, or will not begin before the message is
// stored.
func awaitFirsts(batch []incoming) {
	timer := time.NewTimer(firstTime)
	defer timer.Stop()
	late := false
	for i := range batch {
		f := batch[i].first
		if f == nil {
			continue
		}
		if !late {
			select {
			case f.begun = <-f.stored:
				continue
			case <-timer.C:
				late = true
			}
		}
		if !f.take() {
			f.begun = <-f.stored
		}
	}
}

// beginFirsts begins the turns of messages whose sessions are idle. It does not wait: first.stored receives the outcome
// of each.
func (d *Dispatcher) beginFirsts(batch []incoming) {
	chats := map[string]int{}
	for i := range batch {
		chats[batch[i].msg.Place.ChatKey()]++
	}
	for i := range batch {
		in := &batch[i]
		// Several messages of one chat are handled in the order in which they are stored.
		if !in.plain || chats[in.msg.Place.ChatKey()] > 1 {
			continue
		}
		arrival := in.arrival
		f := &first{arrival: &arrival, msg: in.msg, stored: make(chan bool, 1)}
		if d.startFirst(arrival.Session, f) {
			in.first = f
		}
	}
}

// startFirst gives the session of a message to a worker at once. It returns false if the session is busy or queued.
func (d *Dispatcher) startFirst(session bot.SessionKey, f *first) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.turns == nil || d.paused[session] != nil || len(d.queued) > 0 || len(d.back) > 2*d.limit || len(d.jobs) >= d.opts.Concurrency || d.jobs[session] != nil || !d.room() {
		return false
	}
	party := cmp.Or(f.msg.Person, partyOf(session))
	if !d.queue.Begin(party) {
		return false
	}
	ctx, j := d.turns, &job{alone: true, party: party, weight: d.average}
	d.weight += j.weight
	d.jobs[session] = j
	d.wg.Go(func() { d.serveFirst(ctx, session, j, f) })
	return true
}

// serveFirst is serve for a session whose message is not stored yet.
func (d *Dispatcher) serveFirst(ctx context.Context, session bot.SessionKey, j *job, f *first) {
	more := d.guarded(ctx, session, j, func(arrival **bot.Arrival) bool {
		defer f.refuse() // also after a panic
		patience, cancel := context.WithTimeout(ctx, startPatience)
		defer cancel()
		if !d.stepBack(patience, j) {
			return false
		}
		return d.lookFirst(ctx, session, j, f, arrival)
	})
	d.release(session, j, more)
}

// recentIDs is how many updates are remembered; it exceeds what a channel delivers at once.
const recentIDs = 1024

// recent remembers which updates this process accepted lately. Safe for concurrent use; the zero value is ready.
type recent struct {
	mu    sync.Mutex
	known map[string]bool
	ring  []string // the ids in known, in order of arrival, from next on
	next  int
}

// note remembers the updates of a batch.
func (r *recent) note(batch []incoming) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known, r.ring = map[string]bool{}, make([]string, recentIDs)
	}
	for i := range batch {
		id := batch[i].raw.ID
		if r.known[id] {
			continue
		}
		delete(r.known, r.ring[r.next])
		r.known[id], r.ring[r.next] = true, id
		r.next = (r.next + 1) % recentIDs
	}
}

// has reports whether this process accepted an update recently.
func (r *recent) has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[id]
}

// refuse reports that the message has to be stored without its turn, unless it is stored already.
func (f *first) refuse() {
	select {
	case f.stored <- false:
	default:
	}
}

// lookFirst begins the turn of a message, unless anything requires that the message is stored first.
func (d *Dispatcher) lookFirst(
	ctx context.Context, session bot.SessionKey, j *job, f *first, arrival **bot.Arrival,
) bool {
	t, err := d.taskOf(ctx, f.arrival, f.msg)
	if err != nil || !t.verdict.OK {
		return false
	}
	if empty(t.msg) {
		return false
	}
	lane, err := d.laneOf(ctx, session)
	if err != nil {
		return false
	}
	if lane.Turn != "" || !d.take(session, t.msg.Person, j) {
		return false
	}
	*arrival = f.arrival // it has no number until it is stored
	return d.beginTurn(ctx, lane, t, j, f)
}
