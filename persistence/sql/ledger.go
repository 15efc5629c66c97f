package sql

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
	"github.com/zephbot/zephbot/persistence/reading"
)

const (
	// takenQuery adds up what is charged to an account: its scope, its unit and its days in JSON.
	takenQuery = `SELECT (SELECT COALESCE(SUM(n), 0) FROM json_each(?1) AS days CROSS JOIN charge
	ON day = days.value AND scope = ?2 AND unit = ?3)
+ (SELECT COALESCE(SUM(n), 0) FROM json_each(?1) AS days CROSS JOIN usage ON day = days.value AND scope = ?2 AND unit = ?3)`
	heldQuery = `SELECT holder, SUM(hold.n) FROM json_each(?1) AS days CROSS JOIN hold
	ON day = days.value AND scope = ?2 AND unit = ?3 GROUP BY holder`
	chargedQuery = `SELECT key FROM charge WHERE key = ?`

	// setHolds replaces what a holder has set aside; its last parameter is a list of rows in JSON. What it does not
	// list, the holder has never had.
	setHolds = `INSERT INTO hold (holder, owner, turn, scope, unit, day, n)
SELECT ?1, ?2, ?3, value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?4) WHERE true
ON CONFLICT (holder, scope, unit, day) DO UPDATE SET n = excluded.n`
	deleteHold = `DELETE FROM hold WHERE holder = ?`

	bookHolds = `INSERT INTO charge (key, scope, unit, day, n)
SELECT 'lost/' || holder || '/' || unit || '/' || scope || '/' || day, scope, unit, day, n FROM hold
WHERE (owner < ?1 OR owner > ?1) AND n > 0 ON CONFLICT (key) DO NOTHING`
	deleteHolds = `DELETE FROM hold WHERE owner < ?1 OR owner > ?1`
)

// account is an account as the writer remembers it.
type account struct {
	taken int64
	held  map[string]int64 // by holder
}

// loadAccounts reads the accounts that the step is held to, and which of its charges are stored. Unless the step is
// sure, its charges are assumed to be new: the insert tells.
func (t *step) loadAccounts(ctx context.Context) error {
	for _, of := range t.needs.Accounts {
		a, err := t.memory.accountOf(ctx, t.q, of)
		if err != nil {
			return err
		}
		b := state.Balance{Taken: a.taken}
		for holder, n := range a.held {
			if holder != t.needs.Holder {
				b.Held += n
			}
		}
		t.world.Accounts[of] = b
	}
	if !t.sure {
		return nil
	}
	for _, key := range t.needs.Charged {
		found, err := t.q.queryOne(ctx, func(scan reading.Scan) error { return scan(&key) }, chargedQuery, key)
		if err != nil {
			return fmt.Errorf("find charge: %w", err)
		}
		t.world.Charged[key] = found
	}
	return nil
}

// accountOf returns an account with all changes so far.
func (m *memory) accountOf(ctx context.Context, q *queries, of state.Account) (*account, error) {
	if a, ok := m.accounts[of]; ok {
		return a, nil
	}
	days, err := json.Marshal(of.Days())
	if err != nil {
		return nil, fmt.Errorf("name days: %w", err)
	}
	a := &account{held: map[string]int64{}}
	if _, err := q.queryOne(
		ctx, func(scan reading.Scan) error { return scan(&a.taken) }, takenQuery, string(days), of.Scope, of.Unit,
	); err != nil {
		return nil, fmt.Errorf("add charges up: %w", err)
	}
	err = q.EachRow(ctx, func(scan reading.Scan) error {
		var holder string
		var n int64
		err := scan(&holder, &n)
		a.held[holder] = n
		return err
	}, heldQuery, string(days), of.Scope, of.Unit)
	if err != nil {
		return nil, fmt.Errorf("add up what is set aside: %w", err)
	}
	m.accounts[of] = a
	return a, nil
}

// addCharges adds new charges to the accounts that are remembered.
func (m *memory) addCharges(charges []bot.Charge) {
	if len(m.accounts) == 0 {
		return
	}
	for _, c := range charges {
		for _, window := range []string{c.Day, bot.Month(c.Day)} {
			if a, ok := m.accounts[state.Account{Scope: c.Scope, Unit: c.Unit, Window: window}]; ok {
				a.taken += c.N
			}
		}
	}
}

func (m *memory) forgetAccounts() { clear(m.accounts) }

func (t *step) saveAsides(ctx context.Context, r *state.Result) error {
	l := t.change.Ledger
	if l == nil || l.Owner == "" {
		return nil
	}
	rows, sum := make([][4]any, len(r.Asides)), int64(0)
	for i, a := range r.Asides {
		rows[i], sum = [4]any{a.Scope, a.Unit, a.Day, a.N}, sum+a.N
	}
	list, err := json.Marshal(rows)
	switch {
	case err != nil:
	case sum == 0:
		err = t.q.execOne(ctx, deleteHold, l.Holder)
	default:
		err = t.q.execOne(ctx, setHolds, l.Holder, l.Owner, l.Turn, string(list))
	}
	if err != nil {
		return fmt.Errorf("set aside: %w", err)
	}
	t.memory.replaceAsides(l.Holder, r.Asides)
	return nil
}

// replaceAsides replaces what a holder has set aside of the accounts that are remembered.
func (m *memory) replaceAsides(holder string, asides []bot.Aside) {
	for i := range asides {
		for _, window := range []string{asides[i].Day, bot.Month(asides[i].Day)} {
			of := state.Account{Scope: asides[i].Scope, Unit: asides[i].Unit, Window: window}
			a, ok := m.accounts[of]
			if !ok {
				continue
			}
			sum := int64(0)
			for j := range asides {
				if of.Has(asides[j].Scope, asides[j].Unit, asides[j].Day) {
					sum += asides[j].N
				}
			}
			if a.held[holder] = sum; sum == 0 {
				delete(a.held, holder)
			}
		}
	}
}
