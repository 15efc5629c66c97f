package state

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/zephbot/zephbot/bot"
)

// limit is one that a Change is held to.
type limit struct {
	account Account
	most    int64
}

// limits lists those of an Aside.
func limits(a *bot.Aside) (list []limit) {
	if a.OfDay > 0 {
		list = append(list, limit{Account{a.Scope, a.Unit, a.Day}, a.OfDay})
	}
	if a.OfMonth > 0 {
		list = append(list, limit{Account{a.Scope, a.Unit, bot.Month(a.Day)}, a.OfMonth})
	}
	return list
}

// Has reports whether something of a scope, unit and day counts for an account.
func (a Account) Has(scope, unit, day string) bool {
	return a.Scope == scope && a.Unit == unit && (a.Window == day || a.Window == bot.Month(day))
}

// held reports whether a Change is held to the limits of an Aside: if it adds something to its accounts.
func held(c *bot.Change, a *bot.Aside) bool {
	charged := func(charge bot.Charge) bool { return charge.Scope == a.Scope && charge.Unit == a.Unit && charge.N > 0 }
	return a.Ahead > 0 || c.Ledger.Checked && (a.N > 0 || slices.ContainsFunc(c.Charges, charged))
}

// accounts lists the accounts whose limits the Change is held to.
func (n *Needs) accounts(c *bot.Change) {
	if c.Ledger == nil {
		return
	}
	n.Holder = c.Ledger.Holder
	for i := range c.Ledger.Asides {
		a := &c.Ledger.Asides[i]
		if !held(c, a) {
			continue
		}
		for _, l := range limits(a) {
			n.Accounts = append(n.Accounts, l.account)
		}
	}
	n.Accounts = unique(n.Accounts, CompareAccounts)
	for i := range c.Charges {
		charge := &c.Charges[i]
		if slices.ContainsFunc(n.Accounts, func(a Account) bool {
			return a.Has(charge.Scope, charge.Unit, charge.Day)
		}) {
			n.Charged = append(n.Charged, charge.Key)
		}
	}
	n.Charged = unique(n.Charged, cmp.Compare[string])
}

// CompareAccounts is the order in which accounts are locked.
func CompareAccounts(a, b Account) int {
	return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Window, b.Window))
}

// ledger decides whether there is room for what the Change adds, and what is set aside.
func (r *run) ledger() error {
	l := r.change.Ledger
	if l == nil {
		return nil
	}
	ahead, wanted := true, false
	for i := range l.Asides {
		a := &l.Asides[i]
		wanted = wanted || a.Ahead > 0
		for _, limit := range limits(a) {
			balance, charged, aside, further := r.asked(limit.account)
			total := balance.Taken + balance.Held + charged + aside
			if l.Checked && charged+aside > 0 && total > limit.most {
				return &bot.NoRoom{
					Scope: a.Scope, Unit: a.Unit, Window: limit.account.Window,
					Taken: balance.Taken, Held: balance.Held, N: charged + aside, Limit: limit.most,
				}
			}
			ahead = ahead && (further == 0 || total+further <= limit.most)
		}
	}
	ahead = ahead && wanted
	r.result.Applied.Ahead = ahead
	adds := func(of Account) bool {
		_, charged, aside, further := r.asked(of)
		return l.Checked && charged+aside > 0 || ahead && further > 0
	}
	for i := range l.Asides {
		a := l.Asides[i]
		if !adds(Account{a.Scope, a.Unit, a.Day}) {
			a.OfDay = 0
		}
		if !adds(Account{a.Scope, a.Unit, bot.Month(a.Day)}) {
			a.OfMonth = 0
		}
		if ahead {
			a.N += a.Ahead
		}
		a.Ahead = 0
		r.result.Asides = append(r.result.Asides, a)
	}
	slices.SortStableFunc(r.result.Asides, func(a, b bot.Aside) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Day, b.Day))
	})
	return nil
}

// asked returns the balance of an account and what the Change asks of it: what it charges for the first time, what its
// holder sets aside, and what besides ahead.
func (r *run) asked(account Account) (balance Balance, charged, aside, ahead int64) {
	for i := range r.change.Charges {
		c := &r.change.Charges[i]
		if account.Has(c.Scope, c.Unit, c.Day) && !r.world.Charged[c.Key] {
			charged += c.N
		}
	}
	for i := range r.change.Ledger.Asides {
		a := &r.change.Ledger.Asides[i]
		if account.Has(a.Scope, a.Unit, a.Day) {
			aside, ahead = aside+a.N, ahead+a.Ahead
		}
	}
	return r.world.Accounts[account], charged, aside, ahead
}

// Days lists the days of an account.
func (a Account) Days() []string {
	if a.Window != bot.Month(a.Window) {
		return []string{a.Window}
	}
	days := make([]string, 31)
	for i := range days {
		days[i] = fmt.Sprintf("%s-%02d", a.Window, i+1)
	}
	return days
}

// Limit is the limit of an account to which the Asides of a Result are held; 0 = none, as
// the Change adds nothing to it.
func Limit(asides []bot.Aside, of Account) (most int64) {
	for i := range asides {
		for _, l := range limits(&asides[i]) {
			if l.account == of {
				most = l.most
			}
		}
	}
	return most
}
