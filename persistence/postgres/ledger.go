package postgres

import (
	"maps"
	"slices"

	"github.com/zephbot/zephbot/bot/state"
)

const (
	// lockBalances locks accounts in their order and reads them.
	lockBalances = `SELECT at_scope, at_unit, at_span, taken, held FROM balances($1, $2::text[], ` +
		`$3::text[], $4::text[])`
	chargedQuery = `SELECT key FROM charge WHERE key = ANY($1::text[])`

	// chargeHolds charges what a dead process had set aside.
	chargeHolds = `SELECT charge_owners(ARRAY[$1])`
	// chargeLost charges what processes that no longer exist had set aside. It reads one row of each owner, however
	// many there are.
	chargeLost = `WITH RECURSIVE owners (id) AS (
	SELECT '' COLLATE "C"
	UNION ALL SELECT next.owner FROM owners, LATERAL (SELECT owner FROM hold WHERE owner > owners.id ORDER BY owner LIMIT 1) AS next
) SELECT charge_owners(ARRAY(SELECT id FROM owners WHERE id NOT IN (SELECT id FROM process)))`

	// lockSpent locks accounts, shared if the transaction asks for little of much; see put_aside.
	lockSpent = `SELECT lock_accounts($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])`
)

// lockTogether adds a statement that locks the accounts to which several decided Changes are held, in their order and
// by what these ask for together: each of them alone may ask for so little that it shares a lock.
func lockTogether(b *batch, group []*member) {
	asked := map[state.Account]int64{}
	for _, m := range group {
		w := m.write
		for _, a := range w.needs.Accounts {
			asked[a] += w.chargedTo(a)
			for _, aside := range w.result.Asides {
				if a.Has(aside.Scope, aside.Unit, aside.Day) {
					asked[a] += aside.N
				}
			}
		}
	}
	lockAccounts(b, group, asked)
}

// lockAccounts adds a statement that locks the accounts of several Changes in their order; without asked, each for this
// transaction alone. For one Change it adds nothing: its own statements lock them in this order.
func lockAccounts(b *batch, group []*member, asked map[state.Account]int64) {
	limits, changes := map[state.Account]int64{}, 0
	for _, m := range group {
		if len(m.write.needs.Accounts) > 0 {
			changes++
		}
		for _, a := range m.write.needs.Accounts {
			limit := int64(0)
			if asked != nil {
				if limit = state.Limit(m.write.result.Asides, a); limit == 0 {
					continue
				}
			}
			if before, known := limits[a]; !known || limit < before {
				limits[a] = limit
			}
		}
	}
	if changes < 2 {
		return
	}
	var columns [3][]string
	var most, sums []int64
	for _, a := range slices.SortedFunc(maps.Keys(limits), state.CompareAccounts) {
		for i, text := range []string{a.Scope, a.Unit, a.Window} {
			columns[i] = append(columns[i], text)
		}
		most, sums = append(most, limits[a]), append(sums, max(1, asked[a]))
	}
	b.do(lockSpent, columns[0], columns[1], columns[2], most, sums)
}

// chargedTo adds up what the Change charges to an account.
func (w *write) chargedTo(a state.Account) (n int64) {
	for i := range w.change.Charges {
		if c := &w.change.Charges[i]; a.Has(c.Scope, c.Unit, c.Day) {
			n += c.N
		}
	}
	return n
}

// setAside stores what the holder of the Change has set aside, after the charges, and checks that the accounts have
// room: without locks that was assumed, and other Changes of the transaction may have used it.
func (w *write) setAside() {
	l := w.change.Ledger
	if l == nil {
		return
	}
	var scopes, units, days []string
	ns := []int64{}
	if l.Owner != "" {
		for _, a := range w.result.Asides {
			scopes = append(scopes, a.Scope)
			units = append(units, a.Unit)
			days = append(days, a.Day)
			ns = append(ns, a.N)
		}
	}
	accounts := [3][]string{{}, {}, {}}
	limits, charged := []int64{}, []int64{}
	for _, a := range w.needs.Accounts {
		most := state.Limit(w.result.Asides, a)
		if most == 0 {
			continue
		}
		for i, text := range []string{a.Scope, a.Unit, a.Window} {
			accounts[i] = append(accounts[i], text)
		}
		limits = append(limits, most)
		charged = append(charged, w.chargedTo(a))
	}
	if l.Owner == "" && len(limits) == 0 {
		return
	}
	w.money.do(
		setAside, l.Holder, l.Owner, l.Turn, scopes, units, days,
		ns, accounts[0], accounts[1], accounts[2], limits, charged,
	)
}
