package postgres

import (
	"slices"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
	"github.com/zephbot/zephbot/persistence/reading"
)

// guessed builds the world of a Change from memory. It returns false if too little is known, and the rows have to be
// read.
func (w *write) guessed(m *memory) bool {
	c, n := w.change, w.needs
	reads := c.Move != nil || len(c.Replace) > 0 || len(c.Retry) > 0 || len(c.Dead) > 0 || len(c.Decide) > 0
	if reads || len(n.Facts) > 0 || len(n.Asked) > len(c.Ask) {
		return false
	}
	w.guess = true
	w.world = w.newWorld()
	for _, session := range n.Lanes {
		k, ok := m.lane(session)
		if !ok {
			return false
		}
		w.know(k)
	}
	for _, seq := range n.Arrivals {
		w.world.Arrivals[seq] = state.Arrival{State: state.Waiting}
	}
	for _, id := range n.Rows {
		d, ok := m.row(id)
		if !ok {
			return false
		}
		w.world.Rows[id] = d
	}
	return true
}

// checked reports whether the statements check everything that was assumed. A row or an arrival is checked where it is
// written.
func (w *write) checked() bool {
	arrivals := len(w.needs.Arrivals)
	c := w.change.Claim
	if c != nil && c.Arrival != 0 && !slices.Contains(w.change.Done, c.Arrival) && w.change.Handles != c.Arrival {
		arrivals-- // it has a guard of its own
	}
	return !w.guess || (len(w.result.Rows) == len(w.needs.Rows) && len(w.result.Arrivals) == arrivals)
}

func (w *write) newWorld() *state.World {
	return &state.World{
		Lanes:     map[bot.SessionKey]bot.Lane{},
		Arrivals:  map[int64]state.Arrival{},
		Arrived:   map[state.ArrivalKey]int64{},
		Questions: map[string]state.Question{},
		Rows:      map[int64]state.Delivery{},
		Keys:      map[string]int64{},
		Facts:     map[state.FactKey]bot.Fact{},
		Numbers:   numbers(w.needs),
		Accounts:  map[state.Account]state.Balance{},
		Charged:   map[string]bool{},
		Self:      w.me.id,
		Senders:   map[string]string{},
	}
}

// know adds a lane to the world.
func (w *write) know(k known) {
	w.lanes[k.lane.Session] = k
	if k.version > 0 {
		w.world.Lanes[k.lane.Session] = k.lane
	}
}

// The queries that read and lock the rows that a Change depends on, in the order of state.Needs.
const (
	beginWrite    = `BEGIN`
	commitWrite   = `COMMIT`
	rollbackWrite = `ROLLBACK`

	lockLanes = `SELECT ` + reading.LaneColumns + `, version FROM lane WHERE session = ANY($1::text[])
		ORDER BY session FOR UPDATE`
	anyQueued = `SELECT seq FROM inbox WHERE state = 'waiting' AND NOT express AND session <> '' AND session = $1
		LIMIT 1`
	lockSeqs = `SELECT seq, state, attempts, problem, finished FROM inbox WHERE seq = ANY($1::bigint[])
		ORDER BY seq FOR UPDATE`
	arrived = `SELECT inbox.channel, inbox.bot, inbox.id, inbox.seq FROM inbox
		JOIN unnest($1::text[], $2::text[], $3::text[]) AS key (channel, bot, id)
	ON inbox.channel = key.channel AND inbox.bot = key.bot AND inbox.id = key.id`
	lockAsked = `SELECT n, ` + reading.ApprovalColumns + ` FROM approval WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE`
	lockOpen  = `SELECT n, ` + reading.ApprovalColumns + ` FROM approval WHERE state = 'pending' AND session = $1
		ORDER BY id FOR UPDATE`
	named = `SELECT n, ` + reading.ApprovalColumns + ` FROM approval WHERE state = 'pending' AND short = $1
	AND channel = $2 AND bot = $3 AND surface = $4 AND chat = $5`
	lockRows = `SELECT id, state, message, not_before, attempts, unconfirmed, resent, problem, finished FROM outbox
	WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE`
	keyed     = `SELECT key, id FROM outbox WHERE key = ANY($1::text[]) AND key <> ''`
	lockFacts = `SELECT fact.bucket, fact.key, fact.value, fact.expires FROM fact
		JOIN unnest($1::text[], $2::text[]) AS f (bucket, key)
	ON fact.bucket = f.bucket AND fact.key = f.key ORDER BY fact.bucket, fact.key FOR UPDATE OF fact`
)
