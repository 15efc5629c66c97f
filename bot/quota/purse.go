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
	"github.com/zephbot/zephbot/agent/llm/pay"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// purse is what a turn under way may spend, and has spent. Safe for concurrent use.
type purse struct {
	meter *Meter
	turn  string
	msg   *bot.Message
	house bool // of the service itself: the bot alone pays

	mu      sync.Mutex
	closed  bool            // nobody stores its charges any more: it stores them itself
	open    map[string]hold // by key: what is set aside
	charges []bot.Charge    // spent and not stored yet
	aside   turn.Aside      // spent besides the answers of the turn's model
	told    [2]int          // calls of it that were asked for to be stored, and that are stored
	run     string          // names what is stored of it, made when it is needed: a turn can be run again, in another process
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
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.meter.mu.Lock()
	defer p.meter.mu.Unlock()
	if p.meter.purses[p.turn] == p {
		delete(p.meter.purses, p.turn)
	}
}

// House pays for what the service does for itself, such as the embeddings of its tools: the bot's limits apply to it.
// What it has spent is stored at once.
func (m *Meter) House(channel, name string) pay.Payer {
	place := bot.Place{Channel: channel, Bot: name}
	return &purse{meter: m, turn: "house", msg: &bot.Message{Place: place}, house: true, closed: true, open: map[string]hold{}}
}

// levels are those that pay.
func (p *purse) levels() []level {
	if p.house {
		return []level{p.meter.botLevel(p.msg.Place)}
	}
	return p.meter.levels(p.msg)
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
	return p.Reserve(ctx, key, pay.Amount{Tokens: estimate, USD: pay.Unknown, Unpriced: m.opts.Unpriced(t.Model)})
}

// Payer implements agent.Budget.
func (m *Meter) Payer(t *agent.Turn) pay.Payer { return m.PayerOf(t.ID) }

// PayerOf returns the payer of a turn by its id. It refuses everything if the turn is not under way in this process.
func (m *Meter) PayerOf(turn string) pay.Payer {
	p, err := m.purse(turn)
	if err != nil {
		return nobody{err}
	}
	return p
}

// nobody is the payer of a turn that is not under way.
type nobody struct{ err error }

// Reserve implements pay.Payer.
func (n nobody) Reserve(context.Context, string, pay.Amount) error { return n.err }

// Settle implements pay.Payer.
func (nobody) Settle(context.Context, string, pay.Amount) error { return nil }

// most fills in what a caller leaves open: the longest answer and the highest cost.
func (m *Meter) most(a pay.Amount) pay.Amount {
	if a.USD < 0 {
		a.Tokens.Output, a.USD = m.opts.Most(a.Tokens)
	}
	return a
}

// ask fills in what is asked of each slot.
func ask(slots []slot, a pay.Amount) {
	for i := range slots {
		if slots[i].n = int64(a.Tokens.Total()); slots[i].unit == USD {
			slots[i].n = Micro(a.USD)
		}
	}
}

// limitOfUSD returns the first counter of USD that has a limit.
func limitOfUSD(slots []slot) (s slot, limited bool) {
	for _, s := range slots {
		if s.unit == USD && s.limit > 0 {
			return s, true
		}
	}
	return slot{}, false
}

// LimitsUSD implements pay.Thrifty.
func (p *purse) LimitsUSD() bool {
	_, limited := limitOfUSD(p.meter.slots(p.levels(), p.meter.now(), false, USD))
	return limited
}

// Reserve implements pay.Payer. What nobody knows the price of is refused where USD are limited: counted as nothing the
// limit would be none, and counted as the dearest of all models it would be used up by one question.
func (p *purse) Reserve(ctx context.Context, key string, most pay.Amount) error {
	m := p.meter
	h := hold{at: m.now(), levels: p.levels()}
	h.slots = m.slots(h.levels, h.at, false, Tokens, USD)
	if s, limited := limitOfUSD(h.slots); limited && most.Unpriced != "" {
		m.denied(string(s.scope))
		admin := !p.house && m.opts.Admin(ctx, p.msg.Place, p.msg.Caller)
		return &agent.Denied{Scope: string(s.scope), Text: m.words.QuotaUnpriced(p.msg.Language, most.Unpriced, admin)}
	}
	ask(h.slots, m.most(most))
	p.mu.Lock()
	p.open[key] = h
	p.mu.Unlock()
	if len(h.slots) == 0 {
		return nil
	}
	waited, pause := time.Duration(0), 100*time.Millisecond
	for ; ; waited, pause = waited+pause, min(2*pause, time.Second) {
		room, err := m.reserve(ctx, m.held(key), h.slots)
		switch {
		case err != nil:
			m.Forget()
			return p.unsure(ctx, err)
		case room.Denied < 0:
			return nil
		case room.Full:
			s := h.slots[room.Denied]
			m.denied(string(s.scope))
			return &agent.Denied{Scope: string(s.scope), Text: m.words.At(p.msg.Place).UsedUp(p.msg.Language, s.usage(room.Counts[room.Denied]))}
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

// held is the id of a reservation of this process.
func (m *Meter) held(key string) string { return key + "/" + m.id }

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
	return p.settle(ctx, key, pay.Amount{Tokens: used, USD: usd}, false)
}

// Settle implements pay.Payer.
func (p *purse) Settle(ctx context.Context, key string, used pay.Amount) error {
	return p.settle(ctx, key, used, true)
}

// settle counts what a call has cost. What is spent aside is not in the entries of the journal.
func (p *purse) settle(ctx context.Context, key string, used pay.Amount, aside bool) error {
	m := p.meter
	if used.USD < 0 {
		used.USD = m.opts.Price(used.Tokens)
	}
	if aside {
		p.besides(used)
	}
	p.mu.Lock()
	h, ok := p.open[key]
	delete(p.open, key)
	p.mu.Unlock()
	if !ok {
		h = hold{at: m.now(), levels: p.levels()}
		h.slots = m.slots(h.levels, h.at, false, Tokens, USD)
	}
	name := key + "/" + rand.Text()
	stored := p.book(ctx, name, h, used)
	if len(h.slots) == 0 {
		return stored
	}
	ask(h.slots, used)
	counts, err := m.counter.Settle(ctx, m.held(key), name, takes(h.slots), markEnd(m.now()))
	if err != nil { // the charges have it: the counters are filled from them
		m.Forget()
		return errors.Join(stored, fmt.Errorf("settle: %w", err))
	}
	if note, ok := m.near(p.msg, h.slots, counts); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.notices = append(p.notices, note)
	}
	return stored
}

// besides notes what was spent besides the answers of the turn's model.
func (p *purse) besides(used pay.Amount) {
	if used.Tokens.Total() == 0 && used.USD <= 0 {
		return // it was not made
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.aside.Calls++
	p.aside.Input, p.aside.Output = p.aside.Input+used.Tokens.Input, p.aside.Output+used.Tokens.Output
	p.aside.USD += used.USD
}

// Facts implements turn.Purse.
func (p *purse) Facts() []bot.Fact {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told[0] = p.aside.Calls
	if p.house || p.told[0] == p.told[1] {
		return nil
	}
	if p.run == "" {
		p.run = rand.Text()
	}
	return []bot.Fact{p.aside.Fact(p.turn, p.run, p.meter.now())}
}

// book notes what is to be stored of a call. After the turn has ended it is stored here: a call of the model that a
// server has asked for can outlive the turn.
func (p *purse) book(ctx context.Context, name string, h hold, used pay.Amount) error {
	day := p.meter.window(Day, h.at).label
	var list []bot.Charge
	for _, amount := range []struct {
		unit string
		n    int64
	}{{Tokens, int64(used.Tokens.Total())}, {USD, Micro(used.USD)}} {
		for _, l := range h.levels {
			if amount.n > 0 {
				list = append(list, bot.Charge{Key: name + "/" + amount.unit + "/" + l.name, Scope: l.name, Unit: amount.unit, Day: day, N: amount.n})
			}
		}
	}
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.charges = append(p.charges, list...)
	}
	p.mu.Unlock()
	if !closed || len(list) == 0 {
		return nil
	}
	if _, err := p.meter.mirror.Apply(ctx, &bot.Change{Charges: list, Facts: p.Facts()}); err != nil {
		return fmt.Errorf("store what was spent: %w", err)
	}
	return nil
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
	p.told[1] = p.told[0]
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
