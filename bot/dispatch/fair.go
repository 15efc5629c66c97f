package dispatch

import (
	"cmp"
	"context"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// This file decides which session is next. Sessions wait by party, and parties take turns. A party is the person who
// wrote, where that is known, so that somebody with thousands of waiting chats does not delay another person's first
// message.

// partyOf returns the party of a session by its key: the person if the session belongs to one, else the chat.
func partyOf(session bot.SessionKey) string {
	return cmp.Or(session.Person(), session.Chat(), string(session))
}

// push queues a session under its party. d.mu must be held.
func (d *Dispatcher) push(session bot.SessionKey) {
	if d.queued[session] {
		return
	}
	party, known := d.party[session]
	if !known {
		party = partyOf(session)
	}
	d.queued[session] = true
	d.queue.Push(party, session)
}

// enqueueFor queues a session in which a person has written; that person becomes its party.
func (d *Dispatcher) enqueueFor(session bot.SessionKey, person string) {
	if person != "" && person != partyOf(session) {
		d.mu.Lock()
		if !d.queued[session] && d.jobs[session] == nil {
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
	for len(d.jobs) < d.opts.Concurrency && d.room() {
		party, session, ok := d.queue.Pop()
		if !ok {
			return
		}
		delete(d.queued, session)
		delete(d.party, session)
		if d.jobs[session] != nil {
			d.jobs[session].again = true
			d.queue.Done(party)
			continue
		}
		j := &job{party: party, weight: d.average}
		d.weight += j.weight
		d.jobs[session] = j
		d.wg.Go(func() { d.serve(ctx, session, j) })
	}
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
