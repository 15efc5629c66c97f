package quota

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// purse is what a turn under way may spend, and has spent. Safe for concurrent use.
type purse struct {
	meter *Meter
	turn  string
	msg   *bot.Message

	mu      sync.Mutex
	open    map[string]hold // by key: what is set aside
	charges []bot.Charge    // spent and not stored yet
	notices []turn.Notice
}

// hold is what is set aside for one call of the model.
type hold struct {
	at     time.Time
	levels []level
	slots  []slot
}

// Micro is an amount of USD in millionths, rounded up: what is spent is never counted as nothing.
func Micro(usd float64) int64 {
	if !(usd > 0) { // also when it is no number
		return 0
	}
	return int64(math.Ceil(min(usd, 1e9)*1e6 - 1e-6)) // what binary fractions add is no millionth
}

// Open implements turn.Meter.
func (m *Meter) Open(msg *bot.Message, id string) turn.Purse {
	p := &purse{meter: m, turn: id, msg: msg, open: map[string]hold{}}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.purses[id] = p
	return p
}

// Close implements turn.Purse.
func (p *purse) Close() {
	p.meter.mu.Lock()
	defer p.meter.mu.Unlock()
	if p.meter.purses[p.turn] == p {
		delete(p.meter.purses, p.turn)
	}
}

// errNoPurse is a programmer's mistake: the money of a turn is asked for that nobody has opened.
var errNoPurse = errors.New("nothing is open to pay for this turn")

func (m *Meter) purse(id string) (*purse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.purses[id]
	if p == nil {
		return nil, fmt.Errorf("%w: %s", errNoPurse, id)
	}
	return p, nil
}

// Reserve implements agent.Budget. A call that others' reservations leave no room for waits for them, but not for long.
func (m *Meter) Reserve(ctx context.Context, t *agent.Turn, key string, estimate llm.Usage) error {
	p, err := m.purse(t.ID)
	if err != nil {
		return err
	}
	return p.reserve(ctx, key, estimate)
}

func (p *purse) reserve(ctx context.Context, key string, estimate llm.Usage) error {
	m := p.meter
	if estimate.Output <= 0 {
		estimate.Output = m.opts.Output
	}
	h := hold{at: m.now(), levels: m.levels(p.msg)}
	h.slots = m.slots(h.levels, h.at, false, Tokens, USD)
	price := Micro(m.opts.Price(estimate))
	for i := range h.slots {
		if h.slots[i].n = int64(estimate.Total()); h.slots[i].unit == USD {
			h.slots[i].n = price
		}
	}
	p.mu.Lock()
	p.open[key] = h
	p.mu.Unlock()
	if len(h.slots) == 0 {
		return nil
	}
	waited, pause := time.Duration(0), 100*time.Millisecond
	for ; ; waited, pause = waited+pause, min(2*pause, time.Second) {
		room, err := m.reserve(ctx, key, h.slots)
		switch {
		case err != nil:
			m.Forget()
			return p.unsure(ctx, err)
		case room.Denied < 0:
			return nil
		case room.Full:
			s := h.slots[room.Denied]
			m.denied(string(s.scope))
			return &agent.Denied{Scope: string(s.scope), Text: m.words.UsedUp(p.msg.Language, s.usage(room.Counts[room.Denied]))}
		case waited >= m.opts.Patience:
			s := h.slots[room.Denied]
			m.denied(string(s.scope))
			return &agent.Denied{Scope: string(s.scope), Text: m.words.QuotaBusy(p.msg.Language)}
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// unsure decides for when the counters cannot be reached.
func (p *purse) unsure(ctx context.Context, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	zerolog.Ctx(ctx).Error().Err(cause).Bool("allowed", p.meter.opts.AllowOnDown).Msg("quota counters are away")
	if p.meter.opts.AllowOnDown {
		return nil
	}
	p.meter.denied("down")
	return &agent.Denied{Scope: "down", Text: p.meter.words.QuotaAway(p.msg.Language)}
}

// reserve sets aside what slots ask for, on counters that are filled.
func (m *Meter) reserve(ctx context.Context, key string, slots []slot) (room Room, err error) {
	list := takes(slots)
	err = m.steady(ctx, slots, func(mark Take) (int64, error) {
		now := m.now()
		room, err = m.counter.Reserve(ctx, key, append(list, mark), Hold{Now: now, Until: now.Add(m.opts.Hold)}, mark.Expire)
		if err != nil {
			return 0, fmt.Errorf("reserve: %w", err)
		}
		return room.Counts[len(slots)], nil
	}, func(Take) error { return nil }) // on the counters that are there now it is set aside again
	return room, err
}

// Settle implements agent.Budget. A price below 0 is one that nobody knows: the most that it may be is counted.
func (m *Meter) Settle(ctx context.Context, t *agent.Turn, key string, used llm.Usage, usd float64) error {
	p, err := m.purse(t.ID)
	if err != nil {
		return err
	}
	return p.settle(ctx, key, used, usd)
}

func (p *purse) settle(ctx context.Context, key string, used llm.Usage, usd float64) error {
	m := p.meter
	if usd < 0 {
		usd = m.opts.Price(used)
	}
	p.mu.Lock()
	h, ok := p.open[key]
	delete(p.open, key)
	p.mu.Unlock()
	if !ok {
		h = hold{at: m.now(), levels: m.levels(p.msg)}
		h.slots = m.slots(h.levels, h.at, false, Tokens, USD)
	}
	name := key + "/" + rand.Text()
	p.book(name, h, used, usd)
	if len(h.slots) == 0 {
		return nil
	}
	for i := range h.slots {
		if h.slots[i].n = int64(used.Total()); h.slots[i].unit == USD {
			h.slots[i].n = Micro(usd)
		}
	}
	counts, err := m.counter.Settle(ctx, key, name, takes(h.slots), markEnd(m.now()))
	if err != nil { // the charges have it: the counters are filled from them
		m.Forget()
		return fmt.Errorf("settle: %w", err)
	}
	if note, ok := m.near(p.msg, h.slots, counts); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.notices = append(p.notices, note)
	}
	return nil
}

// book notes what is to be stored of a call.
func (p *purse) book(name string, h hold, used llm.Usage, usd float64) {
	day := p.meter.window(Day, h.at).label
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, amount := range []struct {
		unit string
		n    int64
	}{{Tokens, int64(used.Total())}, {USD, Micro(usd)}} {
		for _, l := range h.levels {
			if amount.n > 0 {
				p.charges = append(p.charges, bot.Charge{Key: name + "/" + amount.unit + "/" + l.name, Scope: l.name, Unit: amount.unit, Day: day, N: amount.n})
			}
		}
	}
}

// Charges implements turn.Purse.
func (p *purse) Charges() []bot.Charge {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]bot.Charge(nil), p.charges...)
}

// Stored implements turn.Purse.
func (p *purse) Stored(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.charges = p.charges[min(n, len(p.charges)):]
}

// Notices implements turn.Purse.
func (p *purse) Notices() []turn.Notice {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]turn.Notice(nil), p.notices...)
}

// Usage is what /quota shows: what has a limit, and besides what the person and the chat have used today.
func (m *Meter) Usage(ctx context.Context, msg *bot.Message) ([]texts.Usage, error) {
	levels, now := m.levels(msg), m.now()
	slots := m.slots(levels, now, true, Turns)
	slots = append(slots, m.slots(levels, now, false, Tokens, USD)...)
	counts, err := m.read(ctx, slots)
	if err != nil {
		m.Forget()
		return nil, err
	}
	var usage []texts.Usage
	for i, s := range slots {
		if s.scope != texts.Bot || s.limit > 0 {
			usage = append(usage, s.usage(counts[i]))
		}
	}
	return usage, nil
}

var _ agent.Budget = (*Meter)(nil)
