package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
	"github.com/zephbot/zephbot/persistence/reading"
)

// This file sends the Changes of a process in groups: one transaction for all that wait while the groups before them
// are on their way. The server spends most of a small transaction on its beginning, its commit and on waking up, so
// that a group costs little more than a Change.
//
// A small group is decided on what is remembered and takes one round trip. If that is out of date for one of
// its Changes, the transaction is undone. Then, and if the group is large, its rows are first locked and
// read, for all Changes at once.

const (
	// groupSize bounds the Changes of one transaction.
	groupSize = 64
	// groupsAtOnce is how many groups are on their way at most: a second one if the first is small, since there is
	// little to do then, or waits for a lock (flight).
	groupsAtOnce = 2
	// smallGroup is how many Changes are decided on what is remembered. For more, reading costs the server less than
	// checking each, and some are likely to be out of date where other processes change the same sessions.
	smallGroup = 8
)

// errWithdrawn says that a Change has left the queue because its caller gave up.
var errWithdrawn = errors.New("withdrawn")

// member is a Change that is sent in a group. err is final when done is closed.
type member struct {
	try   *try
	write *write
	lock  bool // its rows have to be read
	taken bool // guarded by groups.mu
	err   error
	done  chan struct{}
}

// answer ends the waiting of the caller.
func (m *member) answer(err error) {
	m.err = err
	close(m.done)
}

// groups is the queue of Changes that are sent in groups. Safe for concurrent use.
type groups struct {
	store   *Store
	writers sync.WaitGroup

	mu      sync.Mutex
	wake    sync.Cond
	waiting []*member
	busy    map[any]bool // what Changes on their way depend on
	closed  bool
	flight
}

// startGroups starts the goroutines that send groups; stop ends them. ctx gives its values only.
func startGroups(ctx context.Context, s *Store) *groups {
	g := &groups{store: s, busy: map[any]bool{}}
	g.wake.L = &g.mu
	for range groupsAtOnce {
		g.writers.Go(func() { g.run(context.WithoutCancel(ctx)) })
	}
	return g
}

// stop waits until what is in the queue was sent.
func (g *groups) stop() {
	g.mu.Lock()
	g.closed = true
	g.wake.Broadcast()
	g.mu.Unlock()
	g.writers.Wait()
}

// send makes the Change in a group. A Change that still waits when ctx ends is withdrawn.
func (g *groups) send(ctx context.Context, m *member) error {
	g.mu.Lock()
	g.waiting = append(g.waiting, m)
	g.wake.Signal()
	g.mu.Unlock()
	select {
	case <-m.done:
	case <-ctx.Done():
		if g.withdraw(m) {
			return errWithdrawn
		}
		<-m.done // its group is on its way and always arrives
	}
	return m.err
}

// withdraw takes a Change out of the queue. It returns false if its group is on its way.
func (g *groups) withdraw(m *member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.taken {
		return false
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(other *member) bool { return other == m })
	return true
}

func (g *groups) run(ctx context.Context) {
	for {
		group := g.take()
		if group == nil {
			return
		}
		g.makeGroup(ctx, group)
		g.release(group)
	}
}

// take waits for Changes and returns those that go together; nil = the queue is closed and empty.
func (g *groups) take() []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		if g.mayStart() {
			if group := g.pick(); len(group) > 0 {
				g.started(len(group), &g.wake)
				return group
			}
		}
		if g.closed && len(g.waiting) == 0 {
			return nil
		}
		g.wake.Wait()
	}
}

// pick takes the Changes out of the queue that can go now, the oldest first. A Change does not go while one that came
// before it depends on the same row: it would be decided on a state that is about to be out of date. g.mu must be held.
func (g *groups) pick() (group []*member) {
	behind := map[any]bool{}
	alone := false
	g.waiting = slices.DeleteFunc(g.waiting, func(m *member) bool {
		keys := keysOf(m.try.needs)
		moves := m.try.change.Move != nil
		free := len(group) < groupSize && !alone && (!moves || len(group) == 0)
		for _, key := range keys {
			free = free && !g.busy[key] && !behind[key]
		}
		for _, key := range keys {
			behind[key] = true
		}
		if m.taken = free; free {
			group, alone = append(group, m), moves
		}
		return free
	})
	for _, m := range group {
		for _, key := range keysOf(m.try.needs) {
			g.busy[key] = true
		}
	}
	return group
}

// Keys of what is known by a number or a text only, beside sessions, state.ArrivalKey and state.FactKey.
type (
	arrivalKey  int64
	rowKey      int64
	nameKey     string // of an outbox row
	questionKey string
	chatKey     string // whose short names are given
	chargeKey   string
)

// keysOf returns what a Change depends on, without what each statement checks by itself. Texts are as the database has
// them.
func keysOf(n *state.Needs) []any {
	keys := make([]any, 0, len(n.Lanes)+len(n.Rows)+len(n.Arrivals)+len(n.Facts)+4)
	addKeys(&keys, n.Lanes, func(session bot.SessionKey) any { return bot.SessionKey(cleanText(string(session))) })
	addKeys(&keys, n.Rows, func(id int64) any { return rowKey(id) })
	addKeys(&keys, n.Arrivals, func(seq int64) any { return arrivalKey(seq) })
	addKeys(&keys, n.Arrived, func(key state.ArrivalKey) any {
		return state.ArrivalKey{Channel: cleanText(key.Channel), Bot: cleanText(key.Bot), ID: cleanText(key.ID)}
	})
	addKeys(&keys, n.Facts, func(key state.FactKey) any {
		return state.FactKey{Bucket: cleanText(key.Bucket), Key: cleanText(key.Key)}
	})
	addKeys(&keys, n.Keys, func(key string) any { return nameKey(cleanText(key)) })
	addKeys(&keys, n.Asked, func(id string) any { return questionKey(cleanText(id)) })
	addKeys(&keys, n.Shorts, func(name state.ShortName) any { return chatKey(cleanText(name.Place.ChatKey())) })
	addKeys(&keys, n.Charged, func(key string) any { return chargeKey(cleanText(key)) })
	for _, session := range []bot.SessionKey{n.Waiting, n.OpenOf} {
		if session != "" && !slices.Contains(n.Lanes, session) {
			keys = append(keys, bot.SessionKey(cleanText(string(session))))
		}
	}
	return keys
}

func addKeys[K any](keys *[]any, list []K, key func(K) any) {
	for _, k := range list {
		*keys = append(*keys, key(k))
	}
}

// release lets those go that wait for Changes of a group.
func (g *groups) release(group []*member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range group {
		for _, key := range keysOf(m.try.needs) {
			delete(g.busy, key)
		}
	}
	g.landed(len(group))
	if len(g.waiting) > 0 {
		g.wake.Signal()
	}
}

// makeGroup makes the Changes of a group, or answers why it did not.
func (g *groups) makeGroup(ctx context.Context, group []*member) {
	group = slices.Clone(group) // that of the caller is released
	// All processes lock in the same order.
	slices.SortStableFunc(group, func(a, b *member) int { return cmp.Compare(firstLane(a), firstLane(b)) })
	if len(group) <= smallGroup && !slices.ContainsFunc(group, func(m *member) bool { return m.lock }) {
		var done bool
		if group, done = g.makeRemembered(ctx, group); done {
			return
		}
	}
	for len(group) > 0 {
		group = g.makeLocked(ctx, group)
	}
}

func firstLane(m *member) bot.SessionKey {
	if lanes := m.try.needs.Lanes; len(lanes) > 0 {
		return slices.Min(lanes)
	}
	return ""
}

// makeRemembered decides Changes on what is remembered and sends them. done is false if that does not suffice, or was
// out of date; then nothing was changed, and those that were not answered are returned.
func (g *groups) makeRemembered(ctx context.Context, group []*member) (left []*member, done bool) {
	s := g.store
	for _, m := range group {
		w := m.write
		// What is remembered may be out of date if it refuses the Change.
		if !w.guessed(s.memory) || w.decide(s.options.Now()) != nil || !w.checked() {
			return group, false
		}
	}
	group = buildStatements(group)
	culprit, err := g.commit(ctx, group, s.pool)
	if culprit != nil {
		return group, false
	}
	for _, m := range group {
		m.answer(err)
	}
	return nil, true
}

// buildStatements builds the statements of decided Changes and returns those that have no error.
func buildStatements(group []*member) []*member {
	return slices.DeleteFunc(group, func(m *member) bool {
		err := m.write.statements()
		if err != nil {
			m.answer(err)
		}
		return err != nil
	})
}

// makeLocked makes Changes with their rows locked. If the server undoes the transaction because of one of them, that
// one is answered, and the others are returned.
func (g *groups) makeLocked(ctx context.Context, group []*member) (left []*member) {
	s := g.store
	for _, m := range group {
		*m.write = *newWrite(m.try.change, m.try.needs, s.hold)
	}
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	conn, err := s.pool.Acquire(ctx)
	if err == nil {
		defer conn.Release() // closes the connection if a transaction is open on it
		err = loadGroup(group, s.hold).send(ctx, conn, s.told)
	}
	if err != nil {
		for _, m := range group {
			m.answer(err)
		}
		return nil
	}
	group = slices.DeleteFunc(group, func(m *member) bool {
		err := m.write.decide(s.options.Now())
		if err != nil {
			m.answer(err)
		}
		return err != nil
	})
	if len(group) > 0 && group[0].try.change.Move != nil {
		group[0].answer(group[0].try.move(ctx, group[0].write, conn))
		return nil
	}
	var culprit *member
	if group = buildStatements(group); len(group) > 0 {
		culprit, err = g.commit(ctx, group, conn)
	}
	if len(group) == 0 || culprit != nil {
		if _, undo := conn.Exec(ctx, rollbackWrite); undo != nil {
			_ = conn.Conn().Close(ctx) // it is broken
		}
	}
	for _, m := range group {
		if culprit == nil || culprit == m {
			m.answer(err)
		} else {
			left = append(left, m)
		}
	}
	return left
}

// commit sends the statements of decided Changes to a pool, or to the connection on which they have locked their rows.
// If there is no error, all of them are durable. If one of them is at fault, it is the culprit.
func (g *groups) commit(ctx context.Context, group []*member, on sender) (culprit *member, err error) {
	if len(group) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	s, b, guess := g.store, &batch{}, group[0].write.guess
	var owners []*member // of the statements
	put := func(m *member, statements []statement) {
		b.statements = append(b.statements, statements...)
		for len(owners) < len(b.statements) {
			owners = append(owners, m)
		}
	}
	if guess {
		s.hold.guard(b)
		put(nil, nil)
	}
	var changes []*bot.Change
	for _, m := range group {
		put(m, m.write.batch.statements)
		changes = append(changes, m.try.original)
	}
	if guess {
		lockTogether(b, group)
		put(nil, nil)
	}
	for _, m := range group {
		put(m, m.write.money.statements)
	}
	if !guess {
		b.do(commitWrite)
	}
	from, database, look := s.options.Now(), int64(0), guess && s.clock.due()
	if look {
		b.read(func(scan reading.Scan) error { return scan(&database) }, clockQuery)
	}
	if hook := s.options.Hooks.BeforeCommit; hook != nil {
		hook(changes)
	}
	began := time.Now()
	failed, err := b.sendUpTo(ctx, on, s.told)
	if err != nil {
		if what := fateOf(err); failed < len(owners) && (what == again || what == refused) {
			culprit = owners[failed]
		}
		return culprit, err
	}
	if hook := s.options.Hooks.Took; hook != nil {
		hook(time.Since(began))
	}
	if look {
		s.clock.compare(from, s.options.Now(), database)
	}
	for _, m := range group {
		m.write.remember(s.memory)
	}
	s.committed(changes)
	return nil, nil
}
