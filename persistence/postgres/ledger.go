package postgres

import (
	"github.com/zephbot/zephbot/bot/state"
)

const (
	// lockBalances locks accounts in their order and reads them.
	lockBalances = `SELECT at_scope, at_unit, at_span, taken, held FROM balances($1, $2::text[], $3::text[], $4::text[])`
	chargedQuery = `SELECT key FROM charge WHERE key = ANY($1::text[])`

	// bookHolds charges what a dead process had set aside; "" = all that no longer exist.
	bookHolds = `SELECT charge_holds($1)`
)

// loadAccounts adds the statements that lock and read the accounts that a Change is held to, after all other locks.
func (w *write) loadAccounts(b *batch) {
	n := w.needs
	if len(n.Accounts) == 0 {
		return
	}
	var scopes, units, spans []string
	for _, a := range n.Accounts {
		scopes, units, spans = append(scopes, a.Scope), append(units, a.Unit), append(spans, a.Window)
	}
	b.read(func(r row) error {
		var a state.Account
		var balance state.Balance
		err := r.Scan(&a.Scope, &a.Unit, &a.Window, &balance.Taken, &balance.Held)
		w.world.Accounts[a] = balance
		return err
	}, lockBalances, n.Holder, scopes, units, spans)
	if len(n.Charged) > 0 {
		b.read(func(r row) error {
			var key string
			err := r.Scan(&key)
			w.world.Charged[key] = true
			return err
		}, chargedQuery, n.Charged)
	}
}

// setAside stores what the holder of the Change has set aside, after the charges. Without locks it was assumed that the
// accounts have room, which is checked here.
func (w *write) setAside() {
	l := w.change.Ledger
	if l == nil {
		return
	}
	var scopes, units, days []string
	ns := []int64{}
	if l.Owner != "" {
		for _, a := range w.result.Asides {
			scopes, units, days, ns = append(scopes, a.Scope), append(units, a.Unit), append(days, a.Day), append(ns, a.N)
		}
	}
	var accounts [3][]string
	limits, charged := []int64{}, []int64{}
	if w.guess {
		for _, a := range w.needs.Accounts {
			for i, text := range []string{a.Scope, a.Unit, a.Window} {
				accounts[i] = append(accounts[i], text)
			}
			limits = append(limits, state.Limit(w.result.Asides, a))
			n := int64(0)
			for i := range w.change.Charges {
				if c := &w.change.Charges[i]; a.Has(c.Scope, c.Unit, c.Day) {
					n += c.N
				}
			}
			charged = append(charged, n)
		}
	}
	if l.Owner == "" && len(limits) == 0 {
		return
	}
	w.do(setAside, l.Holder, l.Owner, l.Turn, scopes, units, days, ns, accounts[0], accounts[1], accounts[2], limits, charged)
}
