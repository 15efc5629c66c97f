package postgres

import (
	"sync"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
)

// Limits of what is remembered: several times as many sessions as can be active at once, and their rows. A lane takes
// some 500 bytes.
const (
	lanesKept = 16384
	rowsKept  = 16384
)

// known is a lane as stored in the database. Its times are by the database's clock.
type known struct {
	lane    bot.Lane
	version int64 // of the row; 0 = there is no row
}

// memory holds the lanes and the open outbox rows that were last read and written. They may be out of date, so each use
// is guarded by a check. Safe for concurrent use.
type memory struct {
	mu    sync.Mutex
	lanes map[bot.SessionKey]known
	rows  map[int64]state.Delivery
}

func newMemory() *memory {
	return &memory{lanes: map[bot.SessionKey]known{}, rows: map[int64]state.Delivery{}}
}

func (m *memory) lane(session bot.SessionKey) (known, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.lanes[session]
	return k, ok
}

func (m *memory) row(id int64) (state.Delivery, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok := m.rows[id]
	return d, ok
}

// learn remembers a lane as it was read or written, unless a newer version is known.
func (m *memory) learn(k known) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.lanes[k.lane.Session]; !ok || old.version <= k.version {
		put(m.lanes, k.lane.Session, k, lanesKept)
	}
}

// learnRow remembers a row as it was read or written. A finished row is not needed again.
func (m *memory) learnRow(id int64, d state.Delivery) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d.State == bot.Sent || d.State == bot.Dead {
		delete(m.rows, id)
		return
	}
	put(m.rows, id, d, rowsKept)
}

// put bounds a map. Any entry can be forgotten without harm.
func put[K comparable, V any](in map[K]V, key K, value V, most int) {
	for other := range in {
		if len(in) < most {
			break
		}
		delete(in, other)
	}
	in[key] = value
}

// forget drops what turned out to be out of date.
func (m *memory) forget(needs *state.Needs) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, session := range needs.Lanes {
		delete(m.lanes, session)
	}
	for _, id := range needs.Rows {
		delete(m.rows, id)
	}
}

// drop forgets everything.
func (m *memory) drop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.lanes)
	clear(m.rows)
}
