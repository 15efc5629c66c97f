package dispatch

// Sessions wait for a worker in a queue that is fair to people and chats: they wait by party and by chat, and both take
// turns. A party is the person who wrote, where that is known, so that neither somebody with thousands of waiting chats
// nor a group of thousands delays another person's first message.

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm/fair"
	"github.com/zephbot/zephbot/bot"
)

// line holds the sessions that wait for a worker. Guarded by Dispatcher.mu.
type line struct {
	// sessions to look at, by party and chat; it also counts the busy sessions of each party
	queue   fair.Crowd[bot.SessionKey]
	urgent  []bot.SessionKey             // sessions to look at before them: their turns have begun already
	queued  map[bot.SessionKey]*waiter   // members of queue and urgent
	party   map[bot.SessionKey]string    // of queued sessions whose key does not contain it
	came    int64                        // how many have been queued
	turnout turnout                      // of queue and urgent
	weight  int64                        // estimated bytes that the running turns hold
	average int64                        // estimated bytes that the next turn will hold
	over    map[bot.SessionKey]time.Time // when the turn ended that the waiting messages of a session were behind
	retry   map[bot.SessionKey]bool      // sessions to look at again in the next sweep, because the store failed
}

// job is a session that a worker is busy with.
type job struct {
	again bool // the session was woken while it was busy: look again afterwards
	// it has a place among those that begin, until its turn is stored
	starting bool
	since    time.Time // it has it
	// closed when nothing is being shown any more that says that it waits; nil = nothing was
	told   <-chan struct{}
	alone  bool                    // when the turn began, no other arrival was waiting; later arrivals set again
	cancel context.CancelCauseFunc // cancels the turn; nil between turns
	held   bool                    // the turn holds its lane; before that, its beginning is still being stored
	broken bool                    // a command that may stop the turn has arrived
	// closed when it is known whether the last turn that began has been stored
	beginning <-chan struct{}
	// the arrival whose files are being read, before its turn begins; 0 = none
	reading  int64
	followed bool // a message was stored for the session while the turn ran
	party    string
	weight   int64
	lease    bot.Lease
	turn     string
}

// Wake asks the dispatcher to look at a session.
func (d *Dispatcher) Wake(session bot.SessionKey) { d.enqueue(session) }

func (d *Dispatcher) enqueue(session bot.SessionKey) {
	d.mu.Lock()
	switch j := d.jobs[session]; {
	case j != nil:
		j.again = true
	default:
		d.push(session)
	}
	d.mu.Unlock()
	d.nudge(d.work)
}

// enqueueFor queues a session in which a person has written; that person becomes its party.
func (d *Dispatcher) enqueueFor(session bot.SessionKey, person string) {
	if person != "" && person != partyOf(session) {
		d.mu.Lock()
		if d.queued[session] == nil && d.jobs[session] == nil {
			d.party[session] = person
		}
		d.mu.Unlock()
	}
	d.enqueue(session)
}

// push queues a session under its party. d.mu must be held.
func (d *Dispatcher) push(session bot.SessionKey) {
	if d.queued[session] == nil {
		d.line.add(session, d.decided[session], d.parts.Now())
	}
}

// add puts a session that is not queued yet at the end of the line, or before all that begin if its turn goes on.
func (l *line) add(session bot.SessionKey, goesOn bool, now time.Time) {
	if len(l.queued) == 0 {
		l.turnout.since = now
	}
	l.came++
	l.queued[session] = &waiter{n: l.came, since: now}
	if goesOn {
		l.urgent = append(l.urgent, session)
		return
	}
	l.queue.Push(l.partyOf(session), chatOf(session), session)
}

// partyOf returns the party of a queued session.
func (l *line) partyOf(session bot.SessionKey) string {
	if party, known := l.party[session]; known {
		return party
	}
	return partyOf(session)
}

// partyOf returns the party of a session by its key: the person if the session belongs to one, else the chat.
func partyOf(session bot.SessionKey) string {
	return cmp.Or(session.Person(), session.Chat(), string(session))
}

// chatOf returns what sessions of one chat have in common.
func chatOf(session bot.SessionKey) string { return cmp.Or(session.Chat(), string(session)) }

func (d *Dispatcher) nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// decide records that a parked session has a decision to act on, and wakes it.
func (d *Dispatcher) decide(session bot.SessionKey) {
	d.mu.Lock()
	d.decided[session] = true
	d.mu.Unlock()
	d.enqueue(session)
}

// later schedules a session for the next sweep, after a failure that may be temporary.
func (d *Dispatcher) later(session bot.SessionKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.retry[session] = true
}

// strangeFor is how long a session is left to the process that accepted its message, in addition to twice the time that
// one waits here.
const strangeFor = 2 * time.Second

// strangeSessions returns which of the sessions with work this process looks at that it is neither busy with nor has
// queued. Where others share the store they are mostly in the queue of another process, and two that work through the
// same queue keep each other from it: so they are left to that process, for longer than it will take if it is as busy
// as this one. A process that has nothing to do takes the younger half, which the other one comes to last.
func (d *Dispatcher) strangeSessions(ready []bot.SessionKey, now time.Time) []bot.SessionKey {
	d.mu.Lock()
	defer d.mu.Unlock()
	ready = slices.DeleteFunc(ready, func(s bot.SessionKey) bool { return d.jobs[s] != nil || d.queued[s] != nil })
	if !d.opts.Shared {
		return ready
	}
	if len(d.queued) == 0 {
		clear(d.strangers)
		return ready[len(ready)-min(len(ready), max(d.limit, len(ready)/2)):]
	}
	since := d.strangers
	d.strangers = make(map[bot.SessionKey]time.Time, len(ready))
	patience := strangeFor + 2*d.turnout.wait(now, len(d.queued))
	return slices.DeleteFunc(ready, func(s bot.SessionKey) bool {
		at, known := since[s]
		if !known {
			at = now
		}
		d.strangers[s] = at
		return now.Sub(at) < patience
	})
}

// start gives queued sessions to workers, party by party, up to the limit.
func (d *Dispatcher) start(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.jobs) < d.opts.Concurrency && d.canStart() && d.hasMemory() {
		party, session, ok := d.pop()
		if !ok {
			return
		}
		w := d.queued[session]
		delete(d.queued, session)
		delete(d.party, session)
		d.turnout.note(d.parts.Now())
		if d.jobs[session] != nil {
			d.jobs[session].again = true
			d.queue.Done(party)
			continue
		}
		j := &job{party: party, weight: d.average, told: w.telling}
		d.weight += j.weight
		d.jobs[session] = j
		d.startOf(j)
		d.wg.Go(func() { d.serveSession(ctx, session, j) })
	}
}

// pop returns the next session: one whose turn was decided about goes on with it before others begin.
func (l *line) pop() (party string, session bot.SessionKey, ok bool) {
	for len(l.urgent) > 0 {
		session, l.urgent = l.urgent[0], l.urgent[1:]
		party = l.partyOf(session)
		if l.queue.Begin(party) {
			return party, session, true
		}
		l.queue.Push(party, chatOf(session), session)
	}
	return l.queue.Pop()
}

// serveSession works on one session until it has nothing to do, then frees its worker for
// the next session in the queue.
func (d *Dispatcher) serveSession(ctx context.Context, session bot.SessionKey, j *job) {
	d.release(session, j, d.lookAtSession(ctx, session, j))
}

// release ends the work on a session. If there is more to do, the session is queued behind the waiting ones of its
// party.
func (d *Dispatcher) release(session bot.SessionKey, j *job, more bool) {
	d.mu.Lock()
	delete(d.jobs, session)
	d.endStart(j)
	d.queue.Done(j.party)
	d.weight -= j.weight
	more = more || j.again
	if more {
		d.push(session)
	}
	d.mu.Unlock()
	if !more {
		d.life.begun(session) // it needed no turn
	}
	d.nudge(d.work)
}

// countForPerson counts the work on a session for the person whose turn it is. It returns false if that person has too
// many turns already; the session then waits among that person's others.
func (d *Dispatcher) countForPerson(session bot.SessionKey, person string, j *job) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if person == "" || d.queue.Move(j.party, person) {
		if person != "" {
			j.party = person
		}
		return true
	}
	d.party[session] = person
	j.again = true
	return false
}

// Working returns the number of sessions that workers of this process are busy with.
func (d *Dispatcher) Working() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.jobs)
}

// Queued returns the number of sessions that wait for a worker of this process.
func (d *Dispatcher) Queued() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.queued)
}

// hasMemory reports whether there is memory for one more turn. The first turn always has it. d.mu must be held.
func (d *Dispatcher) hasMemory() bool {
	return d.opts.Memory <= 0 || len(d.jobs) == 0 || d.weight+d.average <= d.opts.Memory
}

// What a turn holds in memory, in bytes: a fixed part, and a multiple of its history (entries, messages, the request).
const (
	turnBytes    = 128 << 10
	historyTimes = 4
	firstGuess   = 256 << 10
)

// recordHistorySize records how many bytes of history a turn has read. The turns to come are
// expected to be like the latest ones.
func (d *Dispatcher) recordHistorySize(session bot.SessionKey, history int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	j := d.jobs[session]
	if j == nil {
		return
	}
	now := turnBytes + historyTimes*history
	d.weight += now - j.weight
	j.weight = now
	d.average += (now - d.average) / 8
}

// historyBytes returns the size of the entries of a conversation.
func historyBytes(entries []journal.Entry) int64 {
	n := 0
	for i := range entries {
		n += len(entries[i].Text)
		for k := range entries[i].Talk {
			n += len(entries[i].Talk[k].Text)
		}
		for k := range entries[i].Uses {
			n += len(entries[i].Uses[k].Args)
		}
	}
	return int64(n)
}
