package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/zephbot/zephbot/bot"
)

const (
	payer = "user/telegram:42"
	today = "2026-03-01"
)

// aside is what a holder sets aside of the USD of a person with limits.
func aside(n, ofDay, ofMonth int64) bot.Aside {
	return bot.Aside{Scope: payer, Unit: "microusd", Day: today, N: n, OfDay: ofDay, OfMonth: ofMonth}
}

// keep is a Ledger that is checked.
func keep(holder string, asides ...bot.Aside) *bot.Ledger {
	return &bot.Ledger{Holder: holder, Turn: holder, Owner: owner, Checked: true, Asides: asides}
}

func cost(key string, n int64) bot.Charge {
	return bot.Charge{Key: key, Scope: payer, Unit: "microusd", Day: today, N: n}
}

// full applies a Change that must be refused for want of room, and returns the reason.
func (h *harness) full(change *bot.Change) bot.NoRoom {
	h.Helper()
	applied, err := h.Apply(h.Context(), change)
	refused, ok := errors.AsType[*bot.NoRoom](err)
	if !ok {
		h.Fatalf("apply: got %+v and error %v, want a refusal", applied, err)
	}
	return *refused
}

func (h *harness) used() int64 {
	h.Helper()
	n, err := h.Used(h.Context(), payer, "microusd", today)
	h.ok(err)
	return n
}

func ledgerTests() map[string]func(*harness) {
	return map[string]func(*harness){
		"ledger: what is set aside is nobody else's": func(h *harness) {
			h.do(&bot.Change{Ledger: keep("a", aside(60, 100, 0))})
			same(h, "refusal", h.full(&bot.Change{Ledger: keep("b", aside(41, 100, 0))}),
				bot.NoRoom{Scope: payer, Unit: "microusd", Window: today, Held: 60, N: 41, Limit: 100})
			h.do(&bot.Change{Ledger: keep("b", aside(40, 100, 0))})
			h.do(&bot.Change{Ledger: keep("a", aside(60, 100, 0))}) // once more
			h.do(&bot.Change{Ledger: keep("a", aside(10, 100, 0)), Charges: []bot.Charge{cost("a/1", 30)}})
			same(h, "refusal", h.full(&bot.Change{Ledger: keep("c", aside(21, 100, 0))}),
				bot.NoRoom{Scope: payer, Unit: "microusd", Window: today, Taken: 30, Held: 50, N: 21, Limit: 100})
			h.do(&bot.Change{Ledger: keep("a", aside(0, 100, 0))})
			h.do(&bot.Change{Ledger: keep("c", aside(30, 100, 0))})
			if full := h.full(&bot.Change{Ledger: keep("d", aside(71, 100, 0))}); !full.Full() {
				h.Errorf("%+v: what is spent leaves no room", full)
			}
		},
		"ledger: months, and days of the sums": func(h *harness) {
			before := cost("x", 50)
			before.Day = "2026-02-28"
			h.do(&bot.Change{Charges: []bot.Charge{before, cost("y", 50)}})
			later := aside(50, 60, 100)
			later.Day = "2026-03-31"
			h.do(&bot.Change{Ledger: keep("a", later)})
			same(h, "refusal", h.full(&bot.Change{Ledger: keep("b", aside(1, 100, 100))}),
				bot.NoRoom{Scope: payer, Unit: "microusd", Window: "2026-03", Taken: 50, Held: 50, N: 1, Limit: 100})
			later.Day, later.N = "2026-04-01", 60
			h.do(&bot.Change{Ledger: keep("b", later)})
		},
		"ledger: a refused change changes nothing": func(h *harness) {
			h.do(&bot.Change{Charges: []bot.Charge{cost("x", 100)}})
			h.full(&bot.Change{
				Arrive:  []bot.Arrival{{Channel: channel, Bot: botID, ID: "1", Session: session, At: start}},
				Charges: []bot.Charge{cost("z", 1)},
				Ledger:  &bot.Ledger{Holder: "turn", Checked: true, Asides: []bot.Aside{aside(0, 100, 0)}},
			})
			if waiting, err := h.Next(h.Context(), session, 0); err != nil || len(waiting) > 0 || h.used() != 100 {
				h.Errorf("%+v, %v; %d used", waiting, err, h.used())
			}
			h.do(&bot.Change{
				// the charge is there already
				Charges: []bot.Charge{cost("x", 100)},
				Ledger:  &bot.Ledger{Holder: "turn", Checked: true, Asides: []bot.Aside{aside(0, 100, 0)}},
			})
			h.do(&bot.Change{
				Charges: []bot.Charge{cost("w", 5)},
				Ledger:  &bot.Ledger{Holder: "turn", Owner: owner, Asides: []bot.Aside{aside(0, 100, 0)}},
			})
		},
		"ledger: ahead is set aside where there is room": func(h *harness) {
			ahead := aside(10, 100, 0)
			ahead.Ahead = 80
			if !h.do(&bot.Change{Ledger: keep("a", ahead)}).Ahead {
				h.Error("there was room ahead")
			}
			h.full(&bot.Change{Ledger: keep("b", aside(11, 100, 0))})
			ahead.Ahead = 91
			if h.do(&bot.Change{Ledger: keep("a", ahead)}).Ahead {
				h.Error("there was no room ahead")
			}
			h.do(&bot.Change{Ledger: keep("b", aside(80, 100, 0))})
			ahead.Ahead = 11
			if h.do(&bot.Change{Ledger: keep("a", ahead)}).Ahead {
				h.Error("there was no room ahead beside others")
			}
			ahead.Ahead = 10
			if !h.do(&bot.Change{Ledger: keep("a", ahead)}).Ahead {
				h.Error("there was room ahead beside others")
			}
		},
		"ledger: a limit that was passed holds up nothing that adds nothing": func(h *harness) {
			h.do(&bot.Change{Charges: []bot.Charge{cost("x", 130)}}) // a call has cost more than was set aside for it
			ahead := aside(0, 100, 100)
			ahead.Ahead = 10
			checked := func(charges ...bot.Charge) *bot.Change {
				return &bot.Change{
					Charges: charges,
					Ledger:  &bot.Ledger{Holder: "a", Owner: owner, Checked: true, Asides: []bot.Aside{ahead}},
				}
			}
			if h.do(checked()).Ahead || h.do(checked(cost("x", 130))).Ahead { // the charge is there already
				h.Error("there was no room ahead")
			}
			h.full(checked(cost("z", 1)))
			h.do(&bot.Change{Ledger: keep("b", aside(0, 100, 100))})
			if h.used() != 130 {
				h.Errorf("%d used", h.used())
			}
		},
		"ledger: exactly fifty of a hundred at once": func(h *harness) {
			var through, refused atomic.Int64
			var wg sync.WaitGroup
			for n := range 100 {
				wg.Go(func() {
					name := fmt.Sprint("t", n)
					_, err := h.Apply(h.Context(), &bot.Change{
						Arrive: []bot.Arrival{{
							Channel: channel,
							Bot:     botID,
							ID:      name,
							Session: bot.SessionKey(name),
							At:      start,
						}},
						Charges: []bot.Charge{cost(name, 1)},
						Ledger:  &bot.Ledger{Holder: name, Checked: true, Asides: []bot.Aside{aside(0, 50, 50)}},
					})
					if _, full := errors.AsType[*bot.NoRoom](err); full {
						refused.Add(1)
						return
					}
					h.ok(err)
					through.Add(1)
				})
			}
			wg.Wait()
			if through.Load() != 50 || refused.Load() != 50 || h.used() != 50 {
				h.Errorf("%d through, %d refused, %d used", through.Load(), refused.Load(), h.used())
			}
		},
	}
}
