package sql

import (
	"context"
	"fmt"

	"github.com/zephbot/zephbot/bot"
)

// lanesKept bounds what the writer remembers: as many sessions as may be at work at once, some times over.
const lanesKept = 4096

// versionQuery changes its answer when another connection has written.
const versionQuery = `PRAGMA data_version`

const (
	insertLane = `INSERT INTO lane (` + laneColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	// updateLane leaves the place alone, and with it an index.
	updateLane = `UPDATE lane SET state = ?, fence = ?, owner = ?, until = ?, turn = ?, arrival = ?, since = ?, not_before = ?, failing = ?,
stop = ?, last = ?, live = ?, notice = ?, caller = ? WHERE session = ?`
	placeLane = `UPDATE lane SET channel = ?, bot = ?, surface = ?, chat = ?, thread = ?, grp = ? WHERE session = ?`
)

// lanes are what the writer remembers of the lanes that it read and wrote, so that it need not read them again, and writes each once a group of Changes
// though many of them touch it. Only the writer goroutine uses it. It is dropped when a transaction is undone, and when somebody else has written.
type lanes struct {
	known   map[string]*known
	dirty   []string // sessions to write, in the order in which they were touched
	version int64    // of the database, as versionQuery says it
}

type known struct {
	lane   bot.Lane
	stored bot.Lane // as the database has it
	exists bool     // in the database
	dirty  bool
}

func newLanes() *lanes { return &lanes{known: map[string]*known{}} }

func (l *lanes) drop() {
	clear(l.known)
	l.dirty = l.dirty[:0]
}

// begin is for a transaction that has just begun.
func (l *lanes) begin(ctx context.Context, q *queries) error {
	var version int64
	if _, err := q.one(ctx, func(scan scanner) error { return scan(&version) }, versionQuery); err != nil {
		return fmt.Errorf("look for other writers: %w", err)
	}
	if version != l.version || len(l.known) > lanesKept {
		l.drop()
	}
	l.version = version
	return nil
}

// get gives a lane as it is with all that was done so far; one never seen is idle.
func (l *lanes) get(ctx context.Context, q *queries, session string) (bot.Lane, error) {
	if k, ok := l.known[session]; ok {
		return k.lane, nil
	}
	lane, exists, err := findLane(ctx, q, session)
	if err != nil {
		return bot.Lane{}, fmt.Errorf("read lane: %w", err)
	}
	l.known[session] = &known{lane: lane, stored: lane, exists: exists}
	return lane, nil
}

// put takes a lane that get gave before. It is written by flush.
func (l *lanes) put(lane *bot.Lane) {
	k := l.known[lane.Session]
	k.lane = *lane
	if !k.dirty {
		k.dirty = true
		l.dirty = append(l.dirty, lane.Session)
	}
}

// flush writes what was put.
func (l *lanes) flush(ctx context.Context, q *queries) error {
	for _, session := range l.dirty {
		k := l.known[session]
		if err := k.write(ctx, q); err != nil {
			return fmt.Errorf("write lane: %w", err)
		}
		k.stored, k.exists, k.dirty = k.lane, true, false
	}
	l.dirty = l.dirty[:0]
	return nil
}

func (k *known) write(ctx context.Context, q *queries) error {
	values := laneValues(&k.lane)
	if !k.exists {
		return q.exec(ctx, insertLane, values...)
	}
	place, rest := values[1:1+placeWidth], values[1+placeWidth:]
	if k.lane.Place != k.stored.Place {
		if err := q.exec(ctx, placeLane, append(place[:placeWidth:placeWidth], k.lane.Session)...); err != nil {
			return err
		}
	}
	return q.exec(ctx, updateLane, append(rest, k.lane.Session)...)
}
