package dispatch

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// This file decides which session is next. Sessions wait by party and by chat, and both take turns. A party is the person
// who wrote, where that is known, so that neither somebody with thousands of waiting chats nor a group of thousands
// delays another person's first message.

// partyOf returns the party of a session by its key: the person if the session belongs to one, else the chat.
func partyOf(session bot.SessionKey) string {
	return cmp.Or(session.Person(), session.Chat(), string(session))
}

// push queues a session under its party. d.mu must be held.
func (d *Dispatcher) push(session bot.SessionKey) {
	if d.queued[session] != nil {
		return
	}
	d.wait(session)
	if d.decided[session] {
		d.urgent = append(d.urgent, session)
		return
	}
	d.queue.Push(d.partyOf(session), chatOf(session), session)
}

// strangeFor is how long a session is left to the process that accepted its message, in addition to twice the time that
// one waits here.
const strangeFor = 2 * time.Second

// strange returns which of the sessions with work this process looks at that it is neither busy with nor has queued.
// Where others share the store they are mostly in the queue of another process, and two that work through the same queue
// keep each other from it: so they are left to that process, for longer than it will take if it is as busy as this one.
// A process that has nothing to do takes the younger half, which the other one comes to last.
func (d *Dispatcher) strange(ready []bot.SessionKey, now time.Time) []bot.SessionKey {
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

// chatOf returns what sessions of one chat have in common.
func chatOf(session bot.SessionKey) string { return cmp.Or(session.Chat(), string(session)) }

// partyOf returns the party of a queued session. d.mu must be held.
func (d *Dispatcher) partyOf(session bot.SessionKey) string {
	if party, known := d.party[session]; known {
		return party
	}
	return partyOf(session)
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

// start gives queued sessions to workers, party by party, up to the limit.
func (d *Dispatcher) start(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.jobs) < d.opts.Concurrency && d.canStart() && d.room() {
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
		d.wg.Go(func() { d.serve(ctx, session, j) })
	}
}

// pop returns the next session: one whose turn was decided about goes on with it before others begin. d.mu must be held.
func (d *Dispatcher) pop() (party string, session bot.SessionKey, ok bool) {
	for len(d.urgent) > 0 {
		session, d.urgent = d.urgent[0], d.urgent[1:]
		party = d.partyOf(session)
		if d.queue.Begin(party) {
			return party, session, true
		}
		d.queue.Push(party, chatOf(session), session)
	}
	return d.queue.Pop()
}

// serve works on one session until it has nothing to do, then frees its worker for the next session in the queue.
func (d *Dispatcher) serve(ctx context.Context, session bot.SessionKey, j *job) {
	d.release(session, j, d.look(ctx, session, j))
}

// release ends the work on a session. If there is more to do, the session is queued behind the waiting ones of its
// party.
func (d *Dispatcher) release(session bot.SessionKey, j *job, more bool) {
	d.mu.Lock()
	delete(d.jobs, session)
	d.endStart(j)
	d.queue.Done(j.party)
	d.weight -= j.weight
	if more || j.again {
		d.push(session)
	}
	d.mu.Unlock()
	d.nudge(d.work)
}

// take counts the work on a session for the person whose turn it is. It returns false if that person has too many turns
// already; the session then waits among that person's others.
func (d *Dispatcher) take(session bot.SessionKey, person string, j *job) bool {
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

// room reports whether there is memory for one more turn. The first turn always has it. d.mu must be held.
func (d *Dispatcher) room() bool {
	return d.opts.Memory <= 0 || len(d.jobs) == 0 || d.weight+d.average <= d.opts.Memory
}

// What a turn holds in memory, in bytes: a fixed part, and a multiple of its history (entries, messages, the request).
const (
	turnBytes    = 128 << 10
	historyTimes = 4
	firstGuess   = 256 << 10
)

// weigh records how many bytes of history a turn has read. The turns to come are expected to be like the latest ones.
func (d *Dispatcher) weigh(session bot.SessionKey, history int64) {
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
		for k := range entries[i].Uses {
			n += len(entries[i].Uses[k].Args)
		}
	}
	return int64(n)
}
