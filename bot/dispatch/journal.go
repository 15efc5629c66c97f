package dispatch

import (
	"context"
	"slices"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// laneJournal is the session's journal as the holder of its lane writes it.
type laneJournal struct {
	store bot.Store
	lease bot.Lease
	last  int64
	tail  journal.Tail // known of the conversation, up to last, as it is stored
	known bool         // tail is filled
	// nobody else appends to where the entries of tail lie; what was given out of it is clipped
	own     bool
	odd     bool                            // tail is not quite what is stored
	opening *opening                        // of a turn that begins; nil = its beginning was stored before
	notices func([]journal.Entry) []bot.Row // go out in the commit of the entries they stand in
	wake    func()
	weigh   func(history int64) // takes how many bytes were read
}

// Load implements agent.Journal.
func (j *laneJournal) Load(ctx context.Context, room int) (journal.Tail, error) {
	if !j.known {
		tail, err := j.store.Tail(ctx, j.lease.Session, room)
		if err != nil {
			return journal.Tail{}, err
		}
		j.tail, j.known = tail, true
		if j.opening != nil {
			first := j.opening.entry.N
			at := slices.IndexFunc(tail.Entries, func(e journal.Entry) bool { return e.N >= first })
			if at < 0 || tail.Entries[at].N != first { // the commit that adds it is not over yet
				j.learn(j.opening.entry)
			}
		}
	}
	j.tail = j.tail.Cut(room) // what was kept has grown since
	if len(j.tail.Entries) > 0 {
		j.last = j.tail.Last()
	}
	if j.weigh != nil {
		j.weigh(historyBytes(j.tail.Entries))
	}
	return journal.Tail{Before: j.tail.Before, Entries: slices.Clip(j.tail.Entries)}, nil
}

// Stored implements agent.Pending.
func (j *laneJournal) Stored() error {
	if j.opening == nil {
		return nil
	}
	return j.opening.wait()
}

// Append implements agent.Journal. A Change that has been taken up is decided by its commit: the caller learns the
// truth even when its context ends.
func (j *laneJournal) Append(ctx context.Context, entries ...journal.Entry) ([]journal.Entry, error) {
	if err := j.Stored(); err != nil {
		return nil, err
	}
	rows := j.notices(entries)
	_, err := j.store.Apply(ctx, &bot.Change{
		Lease: &j.lease, Append: &bot.Append{Session: j.lease.Session, After: j.last, Entries: entries}, Send: rows,
	})
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		j.wake()
	}
	for i := range entries {
		j.last++
		entries[i].N = j.last
	}
	if j.known {
		j.learn(entries...)
	}
	return entries, nil
}

// learn adds numbered entries to what is known.
func (j *laneJournal) learn(list ...journal.Entry) {
	// others hold the list, which stays as it is. A turn copies it once, with room for its question and its answer
	if !j.own {
		entries := j.tail.Entries
		j.tail.Entries, j.own = append(make([]journal.Entry, 0, len(entries)+max(2, len(list))), entries...), true
	}
	for _, e := range list {
		stored, ok := asStored(e)
		j.odd = j.odd || !ok
		j.tail.Entries = append(j.tail.Entries, stored)
	}
}
