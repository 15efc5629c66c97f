package sql

import (
	"context"
	"fmt"
	"slices"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
	"github.com/zephbot/zephbot/persistence/reading"
)

// kept bounds how many rows of each kind the writer remembers: several times as many sessions as can be active at once.
const kept = 4096

const (
	insertLane = `INSERT INTO lane (` + reading.LaneColumns + `)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	// updateLane does not write the place, and so avoids an index, nor the workspace, which does not change.
	updateLane = `UPDATE lane SET state = ?, fence = ?, owner = ?,
		until = ?, turn = ?, arrival = ?, since = ?, not_before = ?, failing = ?,
stop = ?, last = ?, live = ?, notice = ?, caller = ? WHERE session = ?`
	placeLane = `UPDATE lane SET channel = ?, bot = ?, surface = ?, chat = ?, thread = ?, grp = ?, workspace = ?
		WHERE session = ?`
	holdLane = `UPDATE lane SET fence = ?, owner = ?, until = ? WHERE session = ?`

	arrivalQuery  = `SELECT state, attempts, problem, finished FROM inbox WHERE seq = ?`
	deliveryQuery = `SELECT state, message, not_before, attempts, unconfirmed, resent, problem, finished FROM outbox ` +
		`WHERE id = ?`

	// numbersQuery reads what increases with each commit: the number of commits that inserted nothing, and the last
	// numbers given.
	numbersQuery = `SELECT COALESCE((SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'commits'), 0),
COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'inbox'), 0), COALESCE((SELECT seq FROM sqlite_sequence
	WHERE name = 'approval'), 0),
COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'outbox'), 0)`
)

// memory holds the rows that the writer read and wrote, so that it does not have to read them again. Lanes are also
// written only once per group of Changes, although several may change the same one. Only the writer goroutine uses it.
// It is dropped when a transaction is rolled back, and when another connection has written.
type memory struct {
	lanes    map[bot.SessionKey]*knownLane
	dirty    []bot.SessionKey         // lanes to write, in the order in which they were changed
	arrivals map[int64]state.Arrival  // waiting ones
	rows     map[int64]state.Delivery // rows still to be delivered
	accounts map[state.Account]*account
	numbers  numbers
	version  uint32 // of the database as seen by this connection
	valid    bool   // version and numbers are valid
}

type knownLane struct {
	lane   bot.Lane
	stored bot.Lane // as stored in the database
	exists bool     // in the database
	dirty  bool
}

// numbers are the last numbers given.
type numbers struct{ commits, arrival, question, row int64 }

// sumOfNumbers increases with every commit.
func (n *numbers) sumOfNumbers() int64 { return n.commits + n.arrival + n.question + n.row }

func readNumbers(ctx context.Context, q *queries) (n numbers, err error) {
	see := func(scan reading.Scan) error { return scan(&n.commits, &n.arrival, &n.question, &n.row) }
	_, err = q.queryOne(ctx, see, numbersQuery)
	if err != nil {
		return n, fmt.Errorf("read the last numbers: %w", err)
	}
	return n, nil
}

func newMemory() *memory {
	return &memory{
		lanes:    map[bot.SessionKey]*knownLane{},
		arrivals: map[int64]state.Arrival{}, rows: map[int64]state.Delivery{},
		accounts: map[state.Account]*account{},
	}
}

// dropAll forgets everything.
func (m *memory) dropAll() {
	m.forgetRows()
	m.valid = false
}

// forgetRows drops the rows but keeps the numbers.
func (m *memory) forgetRows() {
	clear(m.lanes)
	clear(m.arrivals)
	clear(m.rows)
	clear(m.accounts)
	m.dirty = m.dirty[:0]
}

// beginTx prepares for a transaction that has just begun; version is the database's.
func (m *memory) beginTx(ctx context.Context, q *queries, version uint32) (err error) {
	if len(m.lanes) > kept || len(m.arrivals) > kept || len(m.rows) > kept || len(m.accounts) > kept {
		m.forgetRows()
	}
	if m.valid && version == m.version {
		return nil
	}
	m.dropAll()
	if m.numbers, err = readNumbers(ctx, q); err != nil {
		return err
	}
	m.version, m.valid = version, true
	return nil
}

// laneOf returns a lane with all changes so far; found is false for one that has never been seen.
func (m *memory) laneOf(
	ctx context.Context, q *queries, session bot.SessionKey,
) (lane bot.Lane, found bool, err error) {
	if k, ok := m.lanes[session]; ok {
		return k.lane, k.exists || k.dirty, nil
	}
	lane, found, err = findLane(ctx, q, session)
	if err != nil {
		return lane, false, fmt.Errorf("read lane: %w", err)
	}
	m.lanes[session] = &knownLane{lane: lane, stored: lane, exists: found}
	return lane, found, nil
}

// putLane stores a lane that was read before. flush writes it.
func (m *memory) putLane(lane *bot.Lane) {
	k := m.lanes[lane.Session]
	k.lane = *lane
	if !k.dirty {
		k.dirty = true
		m.dirty = append(m.dirty, lane.Session)
	}
}

// flushLanes writes the lanes that were put.
func (m *memory) flushLanes(ctx context.Context, q *queries) error {
	for _, session := range m.dirty {
		k := m.lanes[session]
		if err := k.writeColumns(ctx, q); err != nil {
			return fmt.Errorf("write lane: %w", err)
		}
		k.stored, k.exists, k.dirty = k.lane, true, false
	}
	m.dirty = m.dirty[:0]
	return nil
}

// writeColumns writes the columns that changed: those of the place, those of the lease, or all but the place.
func (k *knownLane) writeColumns(ctx context.Context, q *queries) error {
	values := reading.LaneValues(&k.lane)
	if !k.exists {
		return q.execOne(ctx, insertLane, values...)
	}
	place, rest := values[1:2+reading.PlaceWidth], values[2+reading.PlaceWidth:] // the workspace belongs to the place here
	if k.lane.Place != k.stored.Place || k.lane.Workspace != k.stored.Workspace {
		if err := q.execOne(ctx, placeLane, append(slices.Clip(place), string(k.lane.Session))...); err != nil {
			return err
		}
	}
	held := k.stored
	held.Place, held.Workspace = k.lane.Place, k.lane.Workspace
	held.Fence = k.lane.Fence
	held.Owner = k.lane.Owner
	held.Until = k.lane.Until
	if held == k.lane {
		return q.execOne(ctx, holdLane, k.lane.Fence, k.lane.Owner, reading.Nanos(k.lane.Until), string(k.lane.Session))
	}
	return q.execOne(ctx, updateLane, append(rest, string(k.lane.Session))...)
}

// arrivalOf returns the mutable fields of an arrival.
func (m *memory) arrivalOf(ctx context.Context, q *queries, seq int64) (a state.Arrival, found bool, err error) {
	if a, ok := m.arrivals[seq]; ok {
		return a, true, nil
	}
	found, err = q.queryOne(ctx, func(scan reading.Scan) error {
		return scan((*string)(&a.State), &a.Attempts, &a.Problem, reading.Stamp{To: &a.Finished})
	}, arrivalQuery, seq)
	if err != nil {
		return a, false, fmt.Errorf("find arrival: %w", err)
	}
	return a, found, nil
}

// keepArrival remembers an arrival as it was written.
func (m *memory) keepArrival(seq int64, a state.Arrival) {
	if a.State == state.Waiting {
		m.arrivals[seq] = a
	} else {
		delete(m.arrivals, seq)
	}
}

// rowOf returns the mutable fields of an outbox row.
func (m *memory) rowOf(ctx context.Context, q *queries, id int64) (d state.Delivery, found bool, err error) {
	if d, ok := m.rows[id]; ok {
		return d, true, nil
	}
	found, err = q.queryOne(ctx, func(scan reading.Scan) error {
		return scan((*string)(&d.State), &d.Message, reading.Stamp{To: &d.NotBefore}, &d.Attempts, &d.Unconfirmed, reading.Stamp{To: &d.Doubt},
			&d.Problem, reading.Stamp{To: &d.Finished})
	}, deliveryQuery, id)
	if err != nil {
		return d, false, fmt.Errorf("find row: %w", err)
	}
	return d, found, nil
}

// keepRow remembers a row as it was written.
func (m *memory) keepRow(id int64, d state.Delivery) {
	if d.Finished.IsZero() {
		m.rows[id] = d
	} else {
		delete(m.rows, id)
	}
}
