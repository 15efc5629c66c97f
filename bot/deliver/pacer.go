package deliver

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot"
)

const (
	// overdue is how long an unfinished request keeps its place in the budget as if it were sent just now: one that
	// hangs must not delay the bot.
	overdue = 10 * time.Second
	// privateBurst is how many seconds' worth of messages may be sent to a private chat at once ("short bursts
	// allowed").
	privateBurst = 3
	// together is the time within which the freezes of several chats count as one of the whole bot.
	together = 2 * time.Second
	// lengthens is how much longer a wait becomes by a request that ignores it.
	lengthens = time.Second
	// manyChats is how many chats frozen together freeze the bot.
	manyChats = 3
	// sweepEvery is how often idle chats are forgotten.
	sweepEvery = time.Minute
	// leastFreeze is used for a 429 that names no time.
	leastFreeze = time.Second
)

// Limits are our own send budget (contract: telegram.limits). 0 = none. A 429 is obeyed whatever the limits are.
type Limits struct {
	PerSecond         int // requests of the bot in any second
	PerChatPerSecond  int // average for one chat; a private chat may receive 3 s' worth at once
	PerGroupPerMinute int // requests to one group in any minute; Low takes at most three fifths of them
}

// PacerOptions configure a Pacer. Zero values mean the documented default.
type PacerOptions struct {
	Now func() time.Time // default time.Now
	// Added to a freeze; default random, at most a tenth of wait and 1 s.
	Jitter func(wait time.Duration) (more time.Duration)
	// Throttled is called with every 429 before it takes effect. It must be fast. May be nil.
	Throttled func(place bot.Place, wait time.Duration)
}

// Pacer keeps the send budget of one bot in this process and implements bot.Pacer. Chats that nothing is sent to are
// forgotten. Safe for concurrent use.
type Pacer struct {
	limits Limits
	now    func() time.Time
	jitter func(time.Duration) time.Duration
	told   func(bot.Place, time.Duration)

	mu      sync.Mutex
	all     window // of the bot, per second
	frozen  time.Time
	freezes []freeze
	chats   map[string]*budget
	waiting []*waiter // by priority, first come first served
	timer   *time.Timer
	swept   time.Time
}

var _ bot.Pacer = (*Pacer)(nil)

// freeze is one 429.
type freeze struct {
	chat      string
	at, until time.Time
}

// budget is what may still be sent to one chat.
type budget struct {
	tokens  float64
	filled  time.Time // the time at which tokens was computed
	open    int       // requests in progress: tokens do not grow in the meantime
	minute  window
	frozen  time.Time
	waiting int
}

// waiter is one call of Wait.
type waiter struct {
	place    bot.Place
	priority bot.Priority
	granted  chan struct{}
	done     func()
}

// NewPacer returns a Pacer.
func NewPacer(limits Limits, opts PacerOptions) *Pacer {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Jitter == nil {
		opts.Jitter = func(wait time.Duration) time.Duration {
			return rand.N(min(wait/10, time.Second) + 1)
		}
	}
	if opts.Throttled == nil {
		opts.Throttled = func(bot.Place, time.Duration) {}
	}
	return &Pacer{
		limits: limits, now: opts.Now, jitter: opts.Jitter, told: opts.Throttled, all: window{per: time.Second},
		chats: map[string]*budget{},
	}
}

// Wait implements bot.Pacer.
func (p *Pacer) Wait(ctx context.Context, place bot.Place, priority bot.Priority) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &waiter{place: place, priority: priority, granted: make(chan struct{})}
	p.mu.Lock()
	at := len(p.waiting)
	for at > 0 && p.waiting[at-1].priority > priority {
		at--
	}
	p.waiting = slices.Insert(p.waiting, at, w)
	p.chat(place).waiting++
	p.grant()
	p.mu.Unlock()
	select {
	case <-w.granted:
		return w.done, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, w); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.chat(place).waiting--
		p.grant() // sets the timer for the remaining ones
		return nil, ctx.Err()
	}
	return w.done, nil // granted just now
}

// Try implements bot.Pacer.
func (p *Pacer) Try(_ context.Context, place bot.Place, priority bot.Priority) (done func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.sweep(now)
	for _, w := range p.waiting {
		if w.place.ChatKey() == place.ChatKey() && w.priority <= priority {
			return nil, false
		}
	}
	if p.delay(place, priority, now) > 0 {
		return nil, false
	}
	return p.take(place, priority, now), true
}

// Freeze implements bot.Pacer. Three or more chats frozen within 2 s freeze the bot: until the first of them may be
// written to again, and one second more for every other one, limited by their own waits. While the bot as a whole sends
// too fast, each refusal lengthens the wait, so that the time of the first 429 is no longer true; a bot that relied on
// it would be refused forever. The jitter is only added to the waits of the chats.
func (p *Pacer) Freeze(place bot.Place, wait time.Duration) {
	p.told(place, wait)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	wait = max(wait, leastFreeze)
	until := now.Add(wait)
	key := place.ChatKey()
	chat := p.chat(place)
	chat.frozen = latest(chat.frozen, until.Add(p.jitter(wait)))
	p.freezes = slices.DeleteFunc(p.freezes, func(f freeze) bool { return f.chat == key || now.Sub(f.at) > together })
	p.freezes = append(p.freezes, freeze{key, now, until})
	if len(p.freezes) < manyChats {
		return
	}
	first, last := until, until
	for _, f := range p.freezes {
		if f.until.Before(first) {
			first = f.until
		}
		last = latest(last, f.until)
	}
	if stop := first.Add(time.Duration(len(p.freezes)-1) * lengthens); stop.Before(last) {
		last = stop
	}
	p.frozen = latest(p.frozen, last)
}

// Frozen reports whether a 429 stops all requests to the place at the moment. It takes nothing from the budget.
func (p *Pacer) Frozen(place bot.Place) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	chat := p.chats[place.ChatKey()]
	return p.frozen.After(now) || (chat != nil && chat.frozen.After(now))
}

// Chats returns the number of chats remembered.
func (p *Pacer) Chats() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.chats)
}

// grant admits waiting requests in order, and sets the timer for the next one. If the bot as a whole has to wait, it
// does not look at the rest.
func (p *Pacer) grant() {
	now := p.now()
	p.sweep(now)
	next := time.Duration(-1)
	left := p.waiting[:0]
	for i, w := range p.waiting {
		all := p.common(w.priority, now)
		delay := max(all, p.own(w.place, w.priority, now))
		if delay == 0 {
			w.done = p.take(w.place, w.priority, now)
			p.chat(w.place).waiting--
			close(w.granted)
			continue
		}
		if next < 0 || delay < next {
			next = delay
		}
		if all > 0 { // those behind have to wait at least as long
			next = min(next, all)
			left = append(left, p.waiting[i:]...)
			break
		}
		left = append(left, w)
	}
	clear(p.waiting[len(left):])
	p.waiting = left
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	if next >= 0 {
		p.timer = time.AfterFunc(next, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.grant()
		})
	}
}

// delay returns how long a request has to wait at least; 0 = it may be sent.
func (p *Pacer) delay(place bot.Place, priority bot.Priority, now time.Time) time.Duration {
	return max(p.common(priority, now), p.own(place, priority, now))
}

// common returns the part of delay that all chats share.
func (p *Pacer) common(priority bot.Priority, now time.Time) time.Duration {
	limit := p.limits.PerSecond
	return max(p.frozen.Sub(now), p.all.delay(limit, fifths(limit, 4), priority >= bot.Low, now), 0)
}

// own returns the part of delay that is specific to the chat.
func (p *Pacer) own(place bot.Place, priority bot.Priority, now time.Time) time.Duration {
	chat := p.chat(place)
	wait := max(chat.frozen.Sub(now), 0)
	low := priority >= bot.Low
	if place.Group {
		wait = max(wait, chat.minute.delay(p.limits.PerGroupPerMinute, fifths(p.limits.PerGroupPerMinute, 3), low, now))
	}
	if rate := float64(p.limits.PerChatPerSecond); rate > 0 {
		need := 1.0
		if low && p.burst(place) >= 2 {
			need = 2 // the last one is reserved for an answer
		}
		if missing := need - p.fill(chat, place, now); missing > 1e-9 {
			wait = max(wait, time.Duration(missing/rate*float64(time.Second))+time.Nanosecond)
		}
	}
	return wait
}

// take books a request; the returned function ends it.
func (p *Pacer) take(place bot.Place, priority bot.Priority, now time.Time) (done func()) {
	chat := p.chat(place)
	d := &departure{at: now, open: true, low: priority >= bot.Low}
	if p.limits.PerSecond > 0 {
		p.all.gone = append(p.all.gone, d)
	}
	if place.Group && p.limits.PerGroupPerMinute > 0 {
		chat.minute.gone = append(chat.minute.gone, d)
	}
	chat.tokens = p.fill(chat, place, now) - 1
	chat.filled = now
	chat.open++
	return sync.OnceFunc(func() { p.over(chat, place, d) })
}

// over ends a departure: from now on, its place in the budget becomes free.
func (p *Pacer) over(chat *budget, place bot.Place, d *departure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	chat.tokens, chat.filled = p.fill(chat, place, now), now
	chat.open--
	d.open = false
	if late := d.at.Add(overdue); late.Before(now) {
		now = late
	}
	d.at = now
	p.grant()
}

// burst returns how many requests may be sent to a chat at once.
func (p *Pacer) burst(place bot.Place) float64 { return float64(p.limits.burst(place)) }

// fill returns the number of tokens of a chat at now.
func (p *Pacer) fill(chat *budget, place bot.Place, now time.Time) float64 {
	if chat.open > 0 {
		return chat.tokens
	}
	gained := now.Sub(chat.filled).Seconds() * float64(p.limits.PerChatPerSecond)
	return min(p.burst(place), chat.tokens+gained)
}

// chat returns the budget of a chat; a new one is full.
func (p *Pacer) chat(place bot.Place) *budget {
	key := place.ChatKey()
	chat := p.chats[key]
	if chat == nil {
		chat = &budget{tokens: p.burst(place), filled: p.now(), minute: window{per: time.Minute}}
		p.chats[key] = chat
	}
	return chat
}

// sweep forgets chats whose budget is full again.
func (p *Pacer) sweep(now time.Time) {
	if now.Sub(p.swept) < sweepEvery {
		return
	}
	p.swept = now
	for key, chat := range p.chats {
		chat.minute.forget(now)
		rested := now.Sub(chat.filled) > privateBurst*time.Second
		if rested && chat.waiting == 0 && chat.open == 0 && len(chat.minute.gone) == 0 && !chat.frozen.After(now) {
			delete(p.chats, key)
		}
	}
}
