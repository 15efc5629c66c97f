package postgres

import (
	"slices"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
	"github.com/zephbot/zephbot/persistence/reading"
)

// loading collects what the Changes of a group depend on. Each row is needed by one of them, except open rows of chats.
type loading struct {
	batch
	group []*member
	owner map[any]*write // by the keys of keysOf
}

// loadGroup returns the statements that begin a transaction, and read and lock what Changes depend on, in one round
// trip. All processes lock in the same order.
func loadGroup(group []*member, h *hold) *batch {
	l := &loading{group: group, owner: map[any]*write{}}
	for _, m := range group {
		w := m.write
		w.guess, w.world = false, w.newWorld()
		for _, key := range keysOf(w.needs) {
			l.owner[key] = w
		}
		for _, session := range w.needs.Lanes {
			w.lanes[session] = known{lane: state.Idle(session)}
		}
	}
	l.do(beginWrite)
	h.guard(&l.batch) // before any row is locked: a process that buries this one holds the guard and waits for rows
	for _, name := range union(group, func(n *state.Needs) []string {
		var chats []string
		for _, short := range n.Shorts {
			chats = append(chats, short.Place.ChatKey())
		}
		return chats
	}) {
		l.do(lockNames, name)
	}
	l.loadLanes()
	l.loadArrivals()
	l.loadQuestions()
	l.loadRows(group[0].write.me.shared)
	l.loadFacts()
	l.loadAccounts()
	return &l.batch
}

// union returns what Changes need, in order and once.
func union[K interface{ ~string | ~int64 }](group []*member, of func(*state.Needs) []K) []K {
	var all []K
	for _, m := range group {
		all = append(all, of(m.write.needs)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (l *loading) loadLanes() {
	if lanes := union(l.group, func(n *state.Needs) []bot.SessionKey { return n.Lanes }); len(lanes) > 0 {
		l.read(func(scan reading.Scan) error {
			k, err := scanKnown(scan)
			if err == nil {
				l.owner[k.lane.Session].know(k)
			}
			return err
		}, lockLanes, lanes)
	}
	for _, m := range l.group {
		if w := m.write; w.needs.Waiting != "" {
			l.read(func(reading.Scan) error { w.world.Waiting = true; return nil }, anyQueued, w.needs.Waiting)
		}
	}
}

func (l *loading) loadArrivals() {
	if seqs := union(l.group, func(n *state.Needs) []int64 { return n.Arrivals }); len(seqs) > 0 {
		l.read(func(scan reading.Scan) error {
			var seq int64
			var a state.Arrival
			if err := scan(&seq, &a.State, &a.Attempts, &a.Problem, reading.Stamp{To: &a.Finished}); err != nil {
				return err
			}
			l.owner[arrivalKey(seq)].world.Arrivals[seq] = a
			return nil
		}, lockSeqs, seqs)
	}
	var keys []state.ArrivalKey
	for _, m := range l.group {
		keys = append(keys, m.write.needs.Arrived...)
	}
	if len(keys) == 0 {
		return
	}
	channels, bots, ids := keyColumns(keys)
	l.read(func(scan reading.Scan) error {
		var key state.ArrivalKey
		var seq int64
		if err := scan(&key.Channel, &key.Bot, &key.ID, &seq); err != nil {
			return err
		}
		l.owner[key].world.Arrived[key] = seq
		return nil
	}, arrived, channels, bots, ids)
}

func (l *loading) loadQuestions() {
	see := func(w *write) func(reading.Scan) error {
		return func(scan reading.Scan) error {
			q, err := reading.ScanQuestion(scan)
			if err != nil {
				return err
			}
			if w == nil {
				w = l.owner[questionKey(q.ID)]
			}
			w.world.Questions[q.ID] = q
			return nil
		}
	}
	if asked := union(l.group, func(n *state.Needs) []string { return n.Asked }); len(asked) > 0 {
		l.read(func(scan reading.Scan) error { return see(nil)(scan) }, lockAsked, asked)
	}
	for _, m := range l.group {
		n := m.write.needs
		if n.OpenOf != "" {
			l.read(see(m.write), lockOpen, n.OpenOf)
		}
		for _, name := range n.Shorts {
			l.read(
				see(m.write),
				named,
				name.Short,
				name.Place.Channel,
				name.Place.Bot,
				name.Place.Surface,
				name.Place.Chat,
			)
		}
	}
}

func (l *loading) loadRows(shared bool) {
	if ids := union(l.group, func(n *state.Needs) []int64 { return n.Rows }); len(ids) > 0 {
		l.read(func(scan reading.Scan) error {
			var id int64
			var d state.Delivery
			err := scan(&id, &d.State, &d.Message, reading.Stamp{To: &d.NotBefore}, &d.Attempts, &d.Unconfirmed, reading.Stamp{To: &d.Doubt},
				&d.Problem, reading.Stamp{To: &d.Finished})
			if err == nil {
				l.owner[rowKey(id)].world.Rows[id] = d
			}
			return err
		}, lockRows, ids)
	}
	if keys := union(l.group, func(n *state.Needs) []string { return n.Keys }); len(keys) > 0 {
		l.read(func(scan reading.Scan) error {
			var key string
			var id int64
			err := scan(&key, &id)
			if err == nil {
				l.owner[nameKey(key)].world.Keys[key] = id
			}
			return err
		}, keyed, keys)
	}
	if shared {
		l.loadSenders()
	}
}

func (l *loading) loadFacts() {
	var buckets, keys []string
	for _, m := range l.group {
		for _, f := range m.write.needs.Facts {
			buckets, keys = append(buckets, f.Bucket), append(keys, f.Key)
		}
	}
	if len(keys) == 0 {
		return
	}
	l.read(func(scan reading.Scan) error {
		f, err := reading.ScanFact(scan)
		if err == nil {
			key := state.FactKey{Bucket: f.Bucket, Key: f.Key}
			l.owner[key].world.Facts[key] = f
		}
		return err
	}, lockFacts, buckets, keys)
}

// loadAccounts locks and reads the accounts that Changes are held to, after all other locks.
func (l *loading) loadAccounts() {
	lockAccounts(&l.batch, l.group, nil)
	for _, m := range l.group {
		w, n := m.write, m.write.needs
		if len(n.Accounts) == 0 {
			continue
		}
		var columns [3][]string
		for _, a := range n.Accounts {
			for i, text := range []string{a.Scope, a.Unit, a.Window} {
				columns[i] = append(columns[i], text)
			}
		}
		l.read(func(scan reading.Scan) error {
			var a state.Account
			var balance state.Balance
			err := scan(&a.Scope, &a.Unit, &a.Window, &balance.Taken, &balance.Held)
			w.world.Accounts[a] = balance
			return err
		}, lockBalances, n.Holder, columns[0], columns[1], columns[2])
	}
	if charged := union(l.group, func(n *state.Needs) []string { return n.Charged }); len(charged) > 0 {
		l.read(func(scan reading.Scan) error {
			var key string
			err := scan(&key)
			if err == nil {
				l.owner[chargeKey(key)].world.Charged[key] = true
			}
			return err
		}, chargedQuery, charged)
	}
}
