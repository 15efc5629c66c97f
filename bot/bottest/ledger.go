package bottest

import (
	"slices"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
)

// asides are what a holder has set aside.
type asides struct {
	owner string
	list  []bot.Aside
}

// balances returns the accounts that a Change needs.
func (s *Store) balances(needs *state.Needs) map[state.Account]state.Balance {
	all := map[state.Account]state.Balance{}
	for _, account := range needs.Accounts {
		var b state.Balance
		for _, c := range s.charges {
			if account.Has(c.Scope, c.Unit, c.Day) {
				b.Taken += c.N
			}
		}
		for holder, aside := range s.asides {
			for _, a := range aside.list {
				if holder != needs.Holder && account.Has(a.Scope, a.Unit, a.Day) {
					b.Held += a.N
				}
			}
		}
		all[account] = b
	}
	return all
}

func (s *Store) setAside(l *bot.Ledger, list []bot.Aside) {
	list = slices.DeleteFunc(slices.Clone(list), func(a bot.Aside) bool { return a.N == 0 })
	if len(list) == 0 {
		delete(s.asides, l.Holder)
		return
	}
	s.asides[l.Holder] = asides{owner: l.Owner, list: list}
}

// book charges what dead processes had set aside.
func (s *Store) book(dead func(owner string) bool) {
	for holder, aside := range s.asides {
		if !dead(aside.owner) {
			continue
		}
		for _, a := range aside.list {
			key := bot.Lost + holder + "/" + a.Unit + "/" + a.Scope + "/" + a.Day
			s.charges[key] = bot.Charge{Key: key, Scope: a.Scope, Unit: a.Unit, Day: a.Day, N: a.N}
		}
		delete(s.asides, holder)
	}
}

// Aside returns the sum of what is set aside of a unit of a scope.
func (s *Store) Aside(scope, unit string) (n int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, aside := range s.asides {
		for _, a := range aside.list {
			if a.Scope == scope && a.Unit == unit {
				n += a.N
			}
		}
	}
	return n
}
