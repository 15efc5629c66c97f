package dispatch

import (
	"cmp"
	"context"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// This file decides whose session comes next. Sessions wait party by party: a party is the person who wrote, as far as
// that is known, and takes turns with the others, so that whoever waits in thousands of chats does not stand before
// somebody's first message.

// partyOf is the party of a session by its key: the person where the session belongs to one, else the chat.
func partyOf(session bot.SessionKey) string {
	return cmp.Or(session.Person(), session.Chat(), string(session))
}

// push makes a session wait for its party's turn. d.mu is held.
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

// enqueueFor is enqueue for a session in which a person has written, who is then its party.
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

// start gives queued sessions to workers, as many as may run, party by party.
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

// serve works on one session until it has nothing to do, then gives its place to the next one in the queue.
func (d *Dispatcher) serve(ctx context.Context, session bot.SessionKey, j *job) {
	d.release(session, j, d.look(ctx, session, j))
}

// release ends the work on a session; where there is more to do, the session stands behind those of its party that
// wait.
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

// take counts the work on a session for the person whose turn it is; false when that person has enough turns already:
// the session then waits among the person's others.
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

// room says whether the memory for one more turn is there. The first one always has it. d.mu is held.
func (d *Dispatcher) room() bool {
	return d.opts.Memory <= 0 || len(d.jobs) == 0 || d.weight+d.average <= d.opts.Memory
}

// What a turn holds in memory, in bytes: something for itself, and its history some times over (entries, messages, the
// request).
const (
	turnBytes    = 128 << 10
	historyTimes = 4
	firstGuess   = 256 << 10
)

// weigh notes how much history a turn has read, in bytes. The turns to come are expected to be like the latest ones.
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

// historyBytes is what the entries of a conversation say.
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
