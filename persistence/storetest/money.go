package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/bot"
)

// Fleet runs processes on one database.
type Fleet interface {
	// Start starts a process.
	Start(t *testing.T, owner string) bot.Store
	// Bury ends a process that has things set aside, as others do with a dead one.
	Bury(t *testing.T, owner string)
	// Most is how many processes can live at once.
	Most() int
	// Crash has the server of the database die at once and recover, while its processes live. It
	// reports whether there is a server.
	Crash(t *testing.T) bool
}

// Money plays random orders of turns that begin, calls that are reserved, settled and repeated, and processes and
// servers that die, with the money of one person and the turns of a bot, on some processes of a database. After
// each step the sums are those of a model that knows nothing of stores: what is there is given to whom it is
// enough for, and to nobody else.
func Money(t *testing.T, fleet Fleet) {
	t.Helper()
	run, living := 0, map[string]bot.Store{}
	rapid.Check(t, func(r *rapid.T) {
		run++
		m := &money{
			T:       t,
			r:       r,
			fleet:   fleet,
			name:    fmt.Sprint("money", run),
			living:  living,
			held:    map[string]int64{},
			holders: map[string]string{},
		}
		m.most, m.turnsMost = rapid.Int64Range(1, 200).Draw(r, "limit"), rapid.Int64Range(0, 8).Draw(r, "turns")+1
		for len(living) < fleet.Most() {
			m.start()
		}
		ops := []func(){m.begin, m.reserve, m.reserve, m.reserve, m.settle, m.settle, m.again, m.die, m.crash}
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			ops[rapid.IntRange(0, len(ops)-1).Draw(r, "step")]()
			m.check()
		}
	})
}

// money is the model.
type money struct {
	*testing.T
	r     *rapid.T
	fleet Fleet
	name  string

	most, turnsMost int64 // the limits
	taken, turns    int64
	held            map[string]int64  // by holder
	holders         map[string]string // their processes
	living          map[string]bot.Store
	last            *bot.Change // that was made
	lastBy          string
	n               int
	crashed         bool // the server has died once
}

func (m *money) next(what string) string {
	m.n++
	return fmt.Sprint(m.name, "/", what, m.n)
}

func (m *money) start() {
	owner := m.next("process")
	m.living[owner] = m.fleet.Start(m.T, owner)
}

// process chooses one that lives.
func (m *money) process() string {
	return rapid.SampledFrom(slices.Sorted(maps.Keys(m.living))).Draw(m.r, "process")
}

func (m *money) sum() (sum int64) {
	for _, n := range m.held {
		sum += n
	}
	return sum
}

// apply makes a Change that has to be refused exactly if full is set.
func (m *money) apply(owner string, change *bot.Change, full bool) *bot.Applied {
	applied, err := m.living[owner].Apply(context.Background(), change)
	// perhaps it was made
	for until := time.Now().Add(recovery); m.crashed && storeAway(err) && time.Now().Before(until); {
		applied, err = m.living[owner].Apply(context.Background(), change)
	}
	_, refused := errors.AsType[*bot.NoRoom](err)
	if err != nil && !refused || refused != full {
		m.r.Fatalf(
			"%s: %+v: %v; taken %d, held %v of %d; %d of %d turns",
			owner, change.Ledger, err, m.taken, m.held, m.most, m.turns, m.turnsMost,
		)
	}
	if refused {
		return nil
	}
	m.last, m.lastBy = change, owner
	return applied
}

func (m *money) aside(n, ahead int64) bot.Aside {
	return bot.Aside{
		Scope:   "user/" + m.name,
		Unit:    "microusd",
		Day:     today,
		N:       n,
		Ahead:   ahead,
		OfDay:   m.most,
		OfMonth: 3 * m.most,
	}
}

// begin begins a turn, with its first call ahead.
func (m *money) begin() {
	owner, turn := m.process(), m.next("turn")
	ahead := rapid.Int64Range(0, 60).Draw(m.r, "ahead")
	full := m.turns >= m.turnsMost
	applied := m.apply(owner, &bot.Change{
		Charges: []bot.Charge{{Key: turn, Scope: "bot/" + m.name, Unit: "turns", Day: today, N: 1}},
		Ledger: &bot.Ledger{Holder: turn, Turn: turn, Owner: owner, Checked: true, Asides: []bot.Aside{
			{Scope: "bot/" + m.name, Unit: "turns", Day: today, OfDay: m.turnsMost}, m.aside(0, ahead),
		}},
	}, full)
	if full {
		return
	}
	m.turns++
	m.ahead(owner, turn, 0, ahead, applied)
}

// ahead notes what a Change has set aside.
func (m *money) ahead(owner, holder string, n, ahead int64, applied *bot.Applied) {
	m.held[holder] = n
	room := ahead > 0 && m.taken+m.sum()+ahead <= m.most
	if applied.Ahead != room {
		m.r.Fatalf("ahead %d: %t; taken %d, held %v of %d", ahead, applied.Ahead, m.taken, m.held, m.most)
	}
	if room {
		m.held[holder] += ahead
	}
	m.holders[holder] = owner
	if m.held[holder] == 0 {
		delete(m.held, holder)
	}
}

// holder chooses one whose process lives, or a new one.
func (m *money) holder() (owner, holder string) {
	known := slices.DeleteFunc(slices.Sorted(maps.Keys(m.held)), func(h string) bool {
		return m.living[m.holders[h]] == nil
	})
	if len(known) == 0 || rapid.Bool().Draw(m.r, "new") {
		return m.process(), m.next("holder")
	}
	holder = rapid.SampledFrom(known).Draw(m.r, "holder")
	return m.holders[holder], holder
}

func (m *money) reserve() {
	owner, holder := m.holder()
	n := rapid.Int64Range(1, 80).Draw(m.r, "n")
	full := m.taken+m.sum()-m.held[holder]+n > m.most
	applied := m.apply(owner, &bot.Change{Ledger: &bot.Ledger{
		Holder:  holder,
		Turn:    holder,
		Owner:   owner,
		Checked: true,
		Asides:  []bot.Aside{m.aside(n, 0)},
	}}, full)
	if !full {
		m.ahead(owner, holder, n, 0, applied)
	}
}

// settle charges what a call has cost, which is no more than what was set aside, and sets the next one aside.
func (m *money) settle() {
	owner, holder := m.holder()
	cost := rapid.Int64Range(0, m.held[holder]).Draw(m.r, "cost")
	ahead := rapid.Int64Range(0, 60).Draw(m.r, "ahead")
	applied := m.apply(owner, &bot.Change{
		Charges: []bot.Charge{{Key: m.next("charge"), Scope: "user/" + m.name, Unit: "microusd", Day: today, N: cost}},
		Ledger:  &bot.Ledger{Holder: holder, Turn: holder, Owner: owner, Asides: []bot.Aside{m.aside(0, ahead)}},
	}, false)
	m.taken += cost
	m.ahead(owner, holder, 0, ahead, applied)
}

// again repeats the last Change, whose answer was lost.
func (m *money) again() {
	if m.last == nil || m.living[m.lastBy] == nil {
		return
	}
	change, n := m.last, int64(0)
	for i := range change.Ledger.Asides {
		if a := &change.Ledger.Asides[i]; a.Unit != "turns" {
			n = a.N
		}
	}
	applied := m.apply(m.lastBy, change, false)
	m.held[change.Ledger.Holder] = n
	for i := range change.Ledger.Asides {
		if a := &change.Ledger.Asides[i]; a.Unit != "turns" {
			m.ahead(m.lastBy, change.Ledger.Holder, n, a.Ahead, applied)
		}
	}
}

// recovery is how long a server may take that has died.
const recovery = 20 * time.Second

// storeAway reports whether a Change may have been made or not, since the server died.
func storeAway(err error) bool {
	_, refused := errors.AsType[*bot.NoRoom](err)
	return err != nil && !refused
}

func (m *money) crash() {
	if rapid.IntRange(0, 11).Draw(m.r, "stays") == 0 { // a server takes long to recover
		m.crashed = m.fleet.Crash(m.T) || m.crashed
	}
}

func (m *money) die() {
	if rapid.IntRange(0, 3).Draw(m.r, "lives") > 0 { // a process takes long to start
		return
	}
	m.bury(m.process())
	m.start()
}

// bury ends a process: nobody knows what it has spent of what it had set aside, so all of it is charged.
func (m *money) bury(owner string) {
	m.fleet.Bury(m.T, owner)
	for holder, n := range m.held {
		if m.holders[holder] == owner {
			m.taken += n
			delete(m.held, holder)
		}
	}
	delete(m.living, owner)
}

func (m *money) check() {
	for _, store := range m.living {
		for _, want := range []struct {
			scope, unit string
			n           int64
		}{{"user/" + m.name, "microusd", m.taken}, {"bot/" + m.name, "turns", m.turns}} {
			got, err := store.Used(context.Background(), want.scope, want.unit, today)
			for until := time.Now().Add(recovery); m.crashed && err != nil && time.Now().Before(until); {
				got, err = store.Used(context.Background(), want.scope, want.unit, today)
			}
			if err != nil || got != want.n {
				m.r.Fatalf("%s of %s: %d, want %d; %v", want.unit, want.scope, got, want.n, err)
			}
		}
	}
	if m.taken+m.sum() > m.most || m.turns > m.turnsMost {
		m.r.Fatalf("taken %d, held %v of %d; %d of %d turns", m.taken, m.held, m.most, m.turns, m.turnsMost)
	}
}
