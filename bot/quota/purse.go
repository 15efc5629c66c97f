package quota

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// lateEvery is how often what could not be stored is tried again.
const lateEvery = 3 * time.Second

// purse is what a turn under way may spend, and has spent. Safe for concurrent use.
type purse struct {
	meter  *Meter
	turn   string
	msg    *bot.Message
	house  bool       // of the service itself: the bot alone pays
	holder string     // names in the ledger what this run of the turn has set aside
	store  sync.Mutex // held while something of the purse is being stored: the amounts of a holder are absolute

	mu      sync.Mutex
	closed  bool            // nobody stores its charges any more: it stores them itself
	open    map[string]hold // by key: calls that are under way
	charges []bot.Charge    // spent and not stored yet
	kept    map[item]int64  // what the store has set aside at least; of all that it has ever been asked to
	unsure  bool            // it is not known whether the store has set aside what it was asked to last
	aside   turn.Aside      // spent besides the answers of the turn's model
	told    [2]int          // calls of it that were asked for to be stored, and that are stored
	next    forecast
	used    time.Time // when something of it was last set aside or settled
	run     string    // names what is stored of it, made when it is needed: a turn can be run again, in another process
	notices []turn.Notice
}

// hold is what one call of the model may cost at most.
type hold struct {
	at     time.Time
	day    string
	levels []level
	slots  []slot // the counters that have limits; none = nothing is set aside
	ns     [2]int64
}

// units are those of hold.ns.
var units = [2]string{Tokens, USD} //nolint:gochecknoglobals // a constant list

// item names what is set aside.
type item struct{ scope, unit, day string }

// each visits what a call asks for.
func (h *hold) each(see func(it item, level *level, n int64)) {
	for i := range h.levels {
		for j, n := range h.ns {
			if n > 0 {
				see(item{h.levels[i].name, units[j], h.day}, &h.levels[i], n)
			}
		}
	}
}

// Micro is an amount of USD in millionths, rounded up: what is spent is never counted as nothing.
func Micro(usd float64) int64 {
	if !(usd > 0) { // also when it is no number
		return 0
	}
	return int64(math.Ceil(min(usd, 1e9)*1e6 - 1e-6)) // what binary fractions add is no millionth
}

// Open implements turn.Meter.
func (m *Meter) Open(msg *bot.Message, id string) turn.Budget {
	p := &purse{
		meter:  m,
		turn:   id,
		msg:    msg,
		holder: id + "/" + rand.Text(),
		open:   map[string]hold{},
		kept:   map[item]int64{},
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.purses[id] = p
	return p
}

// Close implements turn.Budget.
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
func (m *Meter) House(channel, name string) cost.Payer {
	place := bot.Place{Channel: channel, Bot: name}
	return &purse{
		meter: m, turn: "house", msg: &bot.Message{Place: place}, house: true, closed: true,
		holder: "house/" + rand.Text(), open: map[string]hold{}, kept: map[item]int64{},
	}
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
	most := cost.Amount{Tokens: estimate, USD: cost.UnknownUSD, Unpriced: m.opts.Unpriced(t.Model)}
	if err := p.reserve(ctx, key, most, ofModel(t, key)); err != nil {
		return err
	}
	if ofModel(t, key) {
		m.learnSize(p.session(), estimate.Input, estimate.Output, 0)
	}
	return nil
}

// Payer implements agent.Budget.
func (m *Meter) Payer(t *agent.Turn) cost.Payer { return m.PayerOf(t.ID) }

// PayerOf returns the payer of a turn by its id. It refuses everything if the turn is not under way in this process.
func (m *Meter) PayerOf(turn string) cost.Payer {
	p, err := m.purse(turn)
	if err != nil {
		return nobody{err}
	}
	return p
}

// nobody is the payer of a turn that is not under way.
type nobody struct{ err error }

// Reserve implements pay.Payer.
func (n nobody) Reserve(context.Context, string, cost.Amount) error { return n.err }

// Settle implements pay.Payer.
func (nobody) Settle(context.Context, string, cost.Amount) error { return nil }

// most fills in what a caller leaves open: the longest answer and the highest cost.
func (m *Meter) most(a cost.Amount) cost.Amount {
	if a.USD < 0 {
		a.Tokens.Output, a.USD = m.opts.Most(a.Tokens)
	}
	return a
}

// fillSlots fills in what is asked of each slot.
func fillSlots(slots []slot, a cost.Amount) {
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
// limit would be none, and counted as the dearest of all models it would be used up by one question. When it returns,
// what the call may cost is set aside in the store.
func (p *purse) Reserve(ctx context.Context, key string, most cost.Amount) error {
	err := p.reserve(ctx, key, most, false)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		for i, n := range p.open[key].ns {
			p.next.side[i] += n
		}
	}
	return err
}

// reserve sets aside what a call may cost. own: it is one of the turn's own model, for which something was set aside
// ahead.
func (p *purse) reserve(ctx context.Context, key string, most cost.Amount, own bool) error {
	m := p.meter
	h := p.limited()
	if s, limited := limitOfUSD(h.slots); limited && most.Unpriced != "" {
		m.denied(string(s.scope))
		admin := !p.house && m.opts.Admin(ctx, p.msg.Place, p.msg.Caller)
		return &agent.Denied{Scope: string(s.scope), Text: m.words.QuotaUnpriced(p.msg.Language, most.Unpriced, admin)}
	}
	most = m.most(most)
	fillSlots(h.slots, most)
	h.ns = [2]int64{int64(most.Tokens.Total()), Micro(most.USD)}
	if own {
		p.mu.Lock()
		p.next.ahead, p.next.most, p.next.input = hold{}, h.ns, most.Tokens.Input
		p.mu.Unlock()
	}
	waited, pause := time.Duration(0), 100*time.Millisecond
	for ; ; waited, pause = waited+pause, min(2*pause, time.Second) {
		err := p.setAside(ctx, key, h)
		if err == nil {
			return nil
		}
		full, ok := errors.AsType[*bot.NoRoom](err)
		if !ok {
			return err
		}
		s := slotOf(h.slots, full)
		switch {
		case full.Taken+full.N-p.besidesOf(full) > full.Limit: // also when nobody has anything set aside
			m.denied(string(s.scope))
			return &agent.Denied{
				Scope: string(s.scope),
				Text:  m.words.At(p.msg.Place).UsedUp(p.msg.Language, s.usage(full.Taken)),
			}
		case waited >= m.opts.Patience:
			m.denied(string(s.scope))
			return &agent.Denied{Scope: string(s.scope), Text: m.words.QuotaBusy(p.msg.Language)}
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// besidesOf is what the other calls of the purse that are under way have set aside of an account.
func (p *purse) besidesOf(full *bot.NoRoom) (sum int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for it, n := range p.needs() {
		if it.scope == full.Scope && it.unit == full.Unit &&
			(it.day == full.Window || bot.Month(it.day) == full.Window) {
			sum += n
		}
	}
	return sum
}

// slotOf returns the counter that a refusal is about.
func slotOf(slots []slot, full *bot.NoRoom) slot {
	for _, s := range slots {
		if s.name == full.Scope && s.unit == full.Unit && s.label == full.Window {
			return s
		}
	}
	return slot{} // unreachable: nothing else is checked
}

// setAside makes sure that the store has set aside what a call may cost. That needs no Change if what is set aside is
// enough. A refusal is a *bot.NoRoom.
func (p *purse) setAside(ctx context.Context, key string, h hold) error {
	p.store.Lock()
	defer p.store.Unlock()
	p.mu.Lock()
	p.open[key], p.used = h, p.meter.now()
	enough := len(h.slots) == 0 || p.enough(&h) && !p.meter.older()
	p.mu.Unlock()
	if enough {
		return nil
	}
	err := p.meter.reserveOlder(ctx, key, h.slots)
	if err == nil {
		err = p.storeChecked(ctx)
	}
	if err != nil {
		p.mu.Lock()
		delete(p.open, key)
		p.mu.Unlock()
		return fmt.Errorf("reserve: %w", err)
	}
	return nil
}

// storeChecked has the store set aside what the calls under way may cost. Called with store held.
func (p *purse) storeChecked(ctx context.Context) error {
	spent := p.spent()
	if spent.Ledger == nil { // another call was settled meanwhile, and what it did not cost is enough
		return nil
	}
	spent.Ledger.Checked = true
	var change bot.Change
	spent.In(&change)
	applied, err := p.meter.mirror.Apply(ctx, &change)
	if _, refused := errors.AsType[*bot.NoRoom](err); !refused { // a refusal has changed nothing
		p.note(&spent, applied)
	}
	return err
}

// enough reports whether the store has set aside what a call needs that is among those under way. Called with mu held.
func (p *purse) enough(h *hold) bool {
	need, all := p.needs(), true
	for _, c := range p.charges {
		need[item{c.Scope, c.Unit, c.Day}] += c.N
	}
	h.each(func(it item, _ *level, _ int64) { all = all && need[it] <= p.kept[it] })
	return all
}

// needs adds up what the calls under way may cost, where something is limited. Called with mu held.
func (p *purse) needs() map[item]int64 {
	need := map[item]int64{}
	for _, h := range p.open {
		if len(h.slots) > 0 {
			h.each(func(it item, _ *level, n int64) { need[it] += n })
		}
	}
	return need
}

// spent returns what is to be stored. Called with store held.
func (p *purse) spent() turn.Spent {
	facts := p.facts()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := turn.Spent{Charges: slices.Clone(p.charges), Facts: facts}
	asides := map[item]bot.Aside{}
	for it := range p.kept {
		asides[it] = bot.Aside{Scope: it.scope, Unit: it.unit, Day: it.day}
	}
	for _, h := range p.open {
		if len(h.slots) == 0 {
			continue
		}
		h.each(func(it item, l *level, n int64) {
			a := asides[it]
			a.Scope, a.Unit, a.Day, a.N = it.scope, it.unit, it.day, a.N+n
			a.OfDay, a.OfMonth = max(0, l.limits[Of{it.unit, Day}]), max(0, l.limits[Of{it.unit, Month}])
			asides[it] = a
		})
	}
	p.next.ahead.each(func(it item, l *level, n int64) {
		a := asides[it]
		a.Scope, a.Unit, a.Day, a.Ahead = it.scope, it.unit, it.day, n
		a.OfDay, a.OfMonth = max(0, l.limits[Of{it.unit, Day}]), max(0, l.limits[Of{it.unit, Month}])
		asides[it] = a
	})
	same := len(s.Charges) == 0 && !p.unsure
	for it, a := range asides {
		same = same && a.N+a.Ahead == p.kept[it]
	}
	if !same && len(asides) > 0 {
		s.Ledger = &bot.Ledger{Holder: p.holder, Turn: p.turn, Owner: p.meter.opts.Owner}
		for _, a := range asides {
			s.Ledger.Asides = append(s.Ledger.Asides, a)
		}
		slices.SortFunc(s.Ledger.Asides, func(a, b bot.Aside) int {
			return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Day, b.Day))
		})
	}
	return s
}

// note remembers what was stored; applied is nil if it may not have been.
func (p *purse) note(s *turn.Spent, applied *bot.Applied) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Ledger != nil {
		p.unsure = applied == nil
		for i := range s.Ledger.Asides {
			a := &s.Ledger.Asides[i]
			if a.Unit == Turns { // nothing is set aside of them
				continue
			}
			it, n := item{a.Scope, a.Unit, a.Day}, a.N
			switch before, known := p.kept[it]; {
			case applied == nil && known:
				n = min(n, before)
			case applied == nil:
				n = 0
			case applied.Ahead:
				n += a.Ahead
			}
			p.kept[it] = n
		}
	}
	if applied != nil && s.Ledger != nil && !slices.ContainsFunc(s.Ledger.Asides, func(a bot.Aside) bool {
		return a.N > 0 || a.Ahead > 0
	}) {
		clear(p.kept) // the holder is forgotten
	}
	p.used = p.meter.now()
	if applied != nil {
		p.charges = p.charges[min(len(s.Charges), len(p.charges)):]
		p.told[1] = p.told[0]
	}
}

// Spend implements turn.Unstored.
func (p *purse) Spend(next turn.Next) turn.Spent {
	p.store.Lock()
	p.expect(next)
	return p.spent()
}

// Stored implements turn.Unstored.
func (p *purse) Stored(s *turn.Spent, applied *bot.Applied) {
	p.note(s, applied)
	p.store.Unlock()
}

// Flush implements turn.Budget.
func (p *purse) Flush(ctx context.Context) error {
	spent := p.Spend(turn.Next{})
	var applied *bot.Applied
	var err error
	if !spent.None() {
		var change bot.Change
		spent.In(&change)
		applied, err = p.meter.mirror.Apply(ctx, &change)
	}
	p.Stored(&spent, applied)
	p.meter.late(p, err != nil)
	if err != nil {
		return fmt.Errorf("store what was spent: %w", err)
	}
	return nil
}

// late remembers whether a purse holds what could not be stored.
func (m *Meter) late(p *purse, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if is {
		m.unstored[p] = struct{}{}
	} else {
		delete(m.unstored, p)
	}
}

// Run stores what was spent and could not be stored, and gives back what is set aside and idle, until ctx
// ends, and then stores once more: what stays unstored is charged in full when the process is buried. Errors
// are those of the last attempt.
func (m *Meter) Run(ctx context.Context) error {
	ticker := time.NewTicker(lateEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = m.StoreLate(ctx) // the next one follows
			m.GiveBack(ctx)
		case <-ctx.Done():
			last, done := context.WithTimeout(context.WithoutCancel(ctx), lateEvery)
			defer done()
			return m.StoreLate(last)
		}
	}
}

// StoreLate tries once to store what was spent and could not be stored.
func (m *Meter) StoreLate(ctx context.Context) error {
	m.mu.Lock()
	list := slices.Collect(maps.Keys(m.unstored))
	m.mu.Unlock()
	var errs []error
	for _, p := range list {
		errs = append(errs, p.Flush(ctx))
	}
	return errors.Join(errs...)
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

// held is the id of a reservation of this process.
func (m *Meter) held(key string) string { return key + "/" + m.id }

// reserveOlder sets aside what slots ask for on the counters too, while a process of a version lives that knows
// nothing of the ledger. What those have set aside is a *bot.NoRoom. Counters that are away, or full by what is
// counted, decide nothing: the ledger does.
func (m *Meter) reserveOlder(ctx context.Context, key string, slots []slot) error {
	if !m.older() {
		return nil
	}
	list := takes(slots)
	var room Room
	err := m.steady(ctx, slots, func(mark Take) (epoch int64, err error) {
		now := m.now()
		room, err = m.counter.Reserve(
			ctx, m.held(key), append(list, mark), Hold{Now: now, Until: now.Add(m.opts.Hold)}, mark.Expire,
		)
		if err != nil {
			return 0, fmt.Errorf("reserve: %w", err)
		}
		return room.Counts[len(slots)], nil
	}, func(Take) error { return nil }) // on the counters that are there now it is set aside again
	if err != nil {
		m.Forget()
		return nil
	}
	if room.Denied < 0 || room.Full {
		return nil
	}
	s := &slots[room.Denied]
	taken := room.Counts[room.Denied]
	return &bot.NoRoom{
		Scope:  s.name,
		Unit:   s.unit,
		Window: s.label,
		Taken:  taken,
		Held:   s.limit - taken - s.n + 1,
		N:      s.n,
		Limit:  s.limit,
	}
}

// Settle implements agent.Budget. A price below 0 is one that nobody knows: the most that it may be is counted.
func (m *Meter) Settle(ctx context.Context, t *agent.Turn, key string, used llm.Usage, usd float64) error {
	p, err := m.purse(t.ID)
	if err != nil {
		return err
	}
	if ofModel(t, key) && usd != cost.ReservedUSD {
		p.mu.Lock()
		input := p.next.input
		p.mu.Unlock()
		m.learnSize(p.session(), input, 0, used.Output)
	}
	return p.settle(ctx, key, cost.Amount{Tokens: used, USD: usd}, false)
}

// Settle implements pay.Payer.
func (p *purse) Settle(ctx context.Context, key string, used cost.Amount) error {
	return p.settle(ctx, key, used, true)
}

// settle counts what a call has cost. What is spent aside is not in the entries of the journal.
func (p *purse) settle(ctx context.Context, key string, used cost.Amount, aside bool) error {
	m := p.meter
	p.mu.Lock()
	h, ok := p.open[key]
	p.mu.Unlock()
	if used.USD == cost.ReservedUSD && ok {
		tokens := int(h.ns[0])
		read := min(used.Tokens.Input, tokens)
		used = cost.Amount{Tokens: llm.Usage{Input: read, Output: tokens - read}, USD: float64(h.ns[1]) / 1e6}
	}
	if used.USD < 0 {
		used.USD = m.opts.Price(used.Tokens)
	}
	if aside {
		p.besides(used)
	}
	if !ok && used.Tokens.Total() == 0 && used.USD <= 0 {
		return nil // it was never set aside
	}
	if !ok {
		h = p.limited()
	}
	name := key + "/" + rand.Text()
	stored := p.book(ctx, key, name, h, used)
	if len(h.slots) == 0 {
		return stored
	}
	fillSlots(h.slots, used)
	counts, err := m.counter.Settle(ctx, m.held(key), name, takes(h.slots), markEnd(m.now()))
	if err != nil { // the ledger has it; the counters are filled from it
		m.Forget()
		return stored
	}
	if note, ok := m.near(p.msg, h.slots, counts); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.notices = append(p.notices, note)
	}
	return stored
}

// besides notes what was spent besides the answers of the turn's model.
func (p *purse) besides(used cost.Amount) {
	if used.Tokens.Total() == 0 && used.USD <= 0 {
		return // it was not made
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.aside.Calls++
	p.aside.Input, p.aside.Output = p.aside.Input+used.Tokens.Input, p.aside.Output+used.Tokens.Output
	p.aside.USD += used.USD
}

// facts returns what is to be stored of what was spent besides. Called with store held.
func (p *purse) facts() []bot.Fact {
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

// book notes what is to be stored of a call, which is no longer under way: at no moment it is neither. After the turn
// has ended it is stored here: a call of the model that a server has asked for can outlive the turn.
func (p *purse) book(ctx context.Context, key, name string, h hold, used cost.Amount) error {
	var list []bot.Charge
	for _, amount := range []struct {
		unit string
		n    int64
	}{{Tokens, int64(used.Tokens.Total())}, {USD, Micro(used.USD)}} {
		for _, l := range h.levels {
			if amount.n > 0 {
				list = append(list, bot.Charge{
					Key:   name + "/" + amount.unit + "/" + l.name,
					Scope: l.name,
					Unit:  amount.unit,
					Day:   h.day,
					N:     amount.n,
				})
			}
		}
	}
	p.mu.Lock()
	delete(p.open, key)
	p.charges = append(p.charges, list...)
	closed := p.closed
	p.mu.Unlock()
	if !closed {
		return nil
	}
	return p.Flush(ctx)
}

// Notices implements turn.Budget.
func (p *purse) Notices() []turn.Notice {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]turn.Notice(nil), p.notices...)
}

// Usage is what /quota shows: what has a limit, and besides what the person and the chat have used today.
func (m *Meter) Usage(ctx context.Context, msg *bot.Message) ([]texts.Usage, error) {
	levels, now := m.levels(msg), m.now()
	slots := m.slots(levels, now, true, Turns)
	slots = append(slots, m.slots(levels, now, false, Tokens)...)
	slots = append(slots, m.slots(levels, now, true, USD)...)
	var usage []texts.Usage
	for _, s := range slots {
		if s.scope == texts.Bot && s.limit <= 0 {
			continue
		}
		used, err := m.used(ctx, &s)
		if err != nil {
			return nil, err
		}
		if s.unit != USD || s.limit > 0 || used > 0 { // what costs nothing, or has no known price, is no line
			usage = append(usage, s.usage(used))
		}
	}
	return usage, nil
}

var _ agent.Budget = (*Meter)(nil)
