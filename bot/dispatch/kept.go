package dispatch

// What is remembered of sessions between their turns.

import (
	"container/list"
	"context"
	"slices"
	"sync"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// Limits for what is remembered of sessions between their turns, in bytes as estimated by journal.Entry.Size and
// journal.ConversationState.Size. Their lanes may take keptLanes besides. One session may have the history that fills a
// window of 128 000 tokens, and a turn.
const (
	keptLeast, keptMost = 8 << 20, 64 << 20
	keptShare           = 32 // of what turns may hold: a 128th of the memory of the process
	keptSession         = 1 << 20
	keptLane            = 512 // what a lane takes, and a tail besides its entries
	keptLanes           = 8 << 20
)

// keptBytes returns how much may be remembered where concurrent turns may hold so many bytes; 0 = not known.
func keptBytes(turns int64) int { return int(min(max(turns/keptShare, keptLeast), keptMost)) }

// kept remembers sessions from turn to turn, so that a turn need not read what the previous one wrote: their lanes, and
// apart from them the ends of their journals, which take more. It may be out of date: the store refuses a turn that
// begins with it if the lane's fence or the end of the journal has changed. Safe for concurrent use.
type kept struct {
	mu     sync.Mutex
	lanes  latest[bot.Lane]
	tails  latest[keptTail]
	doubts int // how many more sessions are compared with the store
}

// keptTail is the end of a journal up to the last entry of its lane.
type keptTail struct {
	fence, last int64 // of the lane
	tail        journal.Tail
}

// mistrusted is how many sessions are compared with the store after one that was out of date.
const mistrusted = 64

// mistrust has the next sessions be compared with the store before a turn begins with them: another process works on
// the same sessions. That costs a read of the lane; a turn that begins with what is out of date costs a refused Change,
// and one more to store its message.
func (k *kept) mistrust() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.doubts = mistrusted
}

// Forget drops what is remembered of all sessions: something was erased from their journals, and the model must not be
// asked with it. Safe for concurrent use.
func (d *Dispatcher) Forget() {
	d.kept.mu.Lock()
	defer d.kept.mu.Unlock()
	d.kept.lanes.clear()
	d.kept.tails.clear()
	d.kept.doubts = mistrusted
}

// trusted reports whether what is remembered need not be compared.
func (k *kept) trusted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.doubts == 0
}

// confirm compares a session with its lane in the store, and forgets it if it is out of date.
func (k *kept) confirm(known, lane *bot.Lane) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known.Fence == lane.Fence && known.Last == lane.Last && lane.Turn == "" {
		k.doubts = max(0, k.doubts-1)
		return
	}
	k.doubts = mistrusted
	k.remove(known.Session)
}

// laneOf returns the lane of a session: as it is remembered, while that is to be trusted, else as the store has it.
func (d *Dispatcher) laneOf(ctx context.Context, session bot.SessionKey) (bot.Lane, error) {
	known, ok := d.kept.lane(session)
	if ok && d.kept.trusted() {
		return known, nil
	}
	lane, err := d.parts.Store.Lane(ctx, session)
	if err == nil && ok {
		d.kept.confirm(&known, &lane)
	}
	return lane, err
}

func newKept(limit int) *kept {
	return &kept{lanes: newLatest[bot.Lane](keptLanes), tails: newLatest[keptTail](limit)}
}

// lane returns the lane of a session as its last turn left it.
func (k *kept) lane(session bot.SessionKey) (bot.Lane, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lanes.get(session)
}

// tail returns the end of the journal up to the lane's last entry, if that is what is remembered. The caller must not
// write to its entries.
func (k *kept) tail(lane *bot.Lane) (journal.Tail, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	one, ok := k.tails.get(lane.Session)
	if !ok || one.fence != lane.Fence || one.last != lane.Last {
		return journal.Tail{}, false
	}
	return one.tail, true
}

// put remembers a session, and forgets others to make room. An entry that the journal would return differently from how
// it was written is not kept.
func (k *kept) put(lane bot.Lane, tail journal.Tail) {
	size := keptLane
	for i := range tail.Entries {
		size += tail.Entries[i].Size() + tail.Entries[i].State.Size()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lanes.put(lane.Session, lane, keptLane)
	if size > keptSession {
		k.tails.remove(lane.Session)
		return
	}
	k.tails.put(lane.Session, keptTail{lane.Fence, lane.Last, tail}, size)
}

// drop forgets a session.
func (k *kept) drop(session bot.SessionKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(session)
}

// remove forgets a session. k.mu must be held.
func (k *kept) remove(session bot.SessionKey) {
	k.lanes.remove(session)
	k.tails.remove(session)
}

// latest remembers a value of each of the sessions that were used latest, within a limit of bytes.
type latest[V any] struct {
	limit, size int
	sessions    map[bot.SessionKey]*list.Element
	order       *list.List // of *latestOne[V], the latest first
}

type latestOne[V any] struct {
	session bot.SessionKey
	value   V
	size    int
}

func newLatest[V any](limit int) latest[V] {
	return latest[V]{limit: limit, sessions: map[bot.SessionKey]*list.Element{}, order: list.New()}
}

func (r *latest[V]) get(session bot.SessionKey) (value V, ok bool) {
	at, ok := r.sessions[session]
	if !ok {
		return value, false
	}
	r.order.MoveToFront(at)
	return at.Value.(*latestOne[V]).value, true //nolint:forcetypeassert // only such are in the list
}

func (r *latest[V]) put(session bot.SessionKey, value V, size int) {
	r.remove(session)
	r.sessions[session] = r.order.PushFront(&latestOne[V]{session, value, size})
	for r.size += size; r.size > r.limit; {
		r.remove(r.order.Back().Value.(*latestOne[V]).session) //nolint:forcetypeassert // only such are in the list
	}
}

func (r *latest[V]) remove(session bot.SessionKey) {
	at, ok := r.sessions[session]
	if !ok {
		return
	}
	delete(r.sessions, session)
	r.order.Remove(at)
	r.size -= at.Value.(*latestOne[V]).size //nolint:forcetypeassert // only such are in the list
}

func (r *latest[V]) clear() {
	clear(r.sessions)
	r.order.Init()
	r.size = 0
}

// keep remembers the session of a turn that has ended.
func (w *work) keep(out agent.Outcome) {
	over := out.Kind == agent.Answered || out.Kind == agent.Ended
	j := w.journal
	if over && j.known {
		entries := slices.Clone(out.Entries)
		for i := range entries {
			j.last++
			entries[i].N = j.last
		}
		j.learn(entries...)
	}
	if !over || !j.known || j.odd {
		w.d.kept.drop(w.lane.Session)
		return
	}
	w.d.kept.put(bot.Lane{
		Session: w.lane.Session, Place: w.lane.Place, State: bot.Idle, Fence: w.lease.Fence, Last: j.last,
	}, j.tail)
}
