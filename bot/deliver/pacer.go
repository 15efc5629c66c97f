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
	// groupWindow is the minute of a group's budget with a second more, because requests reach the server later than they are let go.
	groupWindow = 61 * time.Second
	// privateBurst is how many seconds' worth of messages may go to a private chat at once ("short bursts allowed").
	privateBurst = 3
	// together is how close the freezes of several chats must lie to count as one of the whole bot.
	together = 2 * time.Second
	// manyChats is how many chats frozen together freeze the bot.
	manyChats = 3
	// sweepEvery is how often idle chats are forgotten.
	sweepEvery = time.Minute
	// leastFreeze stands for a 429 that names no time.
	leastFreeze = time.Second
)

// Limits is the own send budget (contract: telegram.limits). 0 = none. A 429 is obeyed whatever stands here.
type Limits struct {
	PerSecond         int // requests of the bot in any second
	PerChatPerSecond  int // average of one chat; a private chat may take 3 s' worth at once
	PerGroupPerMinute int // requests to one group in any minute; Low takes at most three fifths of them
}

// PacerOptions tune a Pacer. Zero values mean the documented default.
type PacerOptions struct {
	Now    func() time.Time                              // default time.Now
	Jitter func(wait time.Duration) (more time.Duration) // added to a freeze; default random, at most a tenth of wait and 1 s
}

// Pacer keeps the send budget of one bot in this process and implements bot.Pacer. Chats that are not written to are forgotten. Safe for concurrent use.
type Pacer struct {
	limits Limits
	now    func() time.Time
	jitter func(time.Duration) time.Duration

	mu      sync.Mutex
	all     window // the bot's last second
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

// budget is what one chat may still be sent.
type budget struct {
	tokens  float64
	filled  time.Time // when tokens was right
	minute  window
	frozen  time.Time
	waiting int
}

// window is the requests let go within the last per.
type window struct {
	per   time.Duration
	times []stamp
}

type stamp struct {
	at  time.Time
	low bool
}

// waiter is one Wait.
type waiter struct {
	place    bot.Place
	priority bot.Priority
	granted  chan struct{}
}

// NewPacer makes a Pacer.
func NewPacer(limits Limits, opts PacerOptions) *Pacer {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Jitter == nil {
		opts.Jitter = func(wait time.Duration) time.Duration {
			return rand.N(min(wait/10, time.Second) + 1)
		}
	}
	return &Pacer{limits: limits, now: opts.Now, jitter: opts.Jitter, all: window{per: time.Second}, chats: map[string]*budget{}}
}

// Wait implements bot.Pacer.
func (p *Pacer) Wait(ctx context.Context, place bot.Place, priority bot.Priority) error {
	if err := ctx.Err(); err != nil {
		return err
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
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, w); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.chat(place).waiting--
		p.grant() // sets the timer for those who are left
		return ctx.Err()
	}
	return nil // granted just now: the budget is spent
}

// Try implements bot.Pacer.
func (p *Pacer) Try(place bot.Place, priority bot.Priority) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.sweep(now)
	for _, w := range p.waiting {
		if w.place.ChatKey() == place.ChatKey() && w.priority <= priority {
			return false
		}
	}
	if p.delay(place, priority, now) > 0 {
		return false
	}
	p.take(place, priority, now)
	return true
}

// Freeze implements bot.Pacer. Three or more chats frozen within 2 s freeze the bot for the shortest of their times.
func (p *Pacer) Freeze(place bot.Place, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	wait = max(wait, leastFreeze)
	until := now.Add(wait + p.jitter(wait))
	key := place.ChatKey()
	chat := p.chat(place)
	chat.frozen = latest(chat.frozen, until)
	p.freezes = slices.DeleteFunc(p.freezes, func(f freeze) bool { return f.chat == key || now.Sub(f.at) > together })
	p.freezes = append(p.freezes, freeze{key, now, until})
	if len(p.freezes) < manyChats {
		return
	}
	shortest := until
	for _, f := range p.freezes {
		if f.until.Before(shortest) {
			shortest = f.until
		}
	}
	p.frozen = latest(p.frozen, shortest)
}

// Frozen says whether a 429 stops all requests to the place at the moment. It takes nothing from the budget.
func (p *Pacer) Frozen(place bot.Place) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	chat := p.chats[place.ChatKey()]
	return p.frozen.After(now) || (chat != nil && chat.frozen.After(now))
}

// Chats is the number of chats remembered.
func (p *Pacer) Chats() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.chats)
}

// grant lets go whoever may, in order, and sets the timer for the next.
func (p *Pacer) grant() {
	now := p.now()
	p.sweep(now)
	next := time.Duration(-1)
	p.waiting = slices.DeleteFunc(p.waiting, func(w *waiter) bool {
		delay := p.delay(w.place, w.priority, now)
		if delay > 0 {
			if next < 0 || delay < next {
				next = delay
			}
			return false
		}
		p.take(w.place, w.priority, now)
		p.chat(w.place).waiting--
		close(w.granted)
		return true
	})
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

// delay is how long a request has to wait at least; 0 = it may go.
func (p *Pacer) delay(place bot.Place, priority bot.Priority, now time.Time) time.Duration {
	chat := p.chat(place)
	wait := max(p.frozen.Sub(now), chat.frozen.Sub(now), 0)
	low := priority >= bot.Low
	wait = max(wait, p.all.delay(p.limits.PerSecond, share(p.limits.PerSecond, 4, 5), low, now))
	if place.Group {
		wait = max(wait, chat.minute.delay(p.limits.PerGroupPerMinute, share(p.limits.PerGroupPerMinute, 3, 5), low, now))
	}
	if rate := float64(p.limits.PerChatPerSecond); rate > 0 {
		need := 1.0
		if low && p.burst(place) >= 2 {
			need = 2 // the last one is kept for an answer
		}
		if missing := need - p.fill(chat, place, now); missing > 1e-9 {
			wait = max(wait, time.Duration(missing/rate*float64(time.Second))+time.Nanosecond)
		}
	}
	return wait
}

// take books a request.
func (p *Pacer) take(place bot.Place, priority bot.Priority, now time.Time) {
	chat := p.chat(place)
	low := priority >= bot.Low
	if p.limits.PerSecond > 0 {
		p.all.times = append(p.all.times, stamp{now, low})
	}
	if place.Group && p.limits.PerGroupPerMinute > 0 {
		chat.minute.times = append(chat.minute.times, stamp{now, low})
	}
	chat.tokens = p.fill(chat, place, now) - 1
	chat.filled = now
}

// burst is how many requests may go to a chat at once.
func (p *Pacer) burst(place bot.Place) float64 {
	if place.Group {
		return float64(p.limits.PerChatPerSecond)
	}
	return float64(p.limits.PerChatPerSecond * privateBurst)
}

// fill is the number of tokens of a chat at now.
func (p *Pacer) fill(chat *budget, place bot.Place, now time.Time) float64 {
	gained := now.Sub(chat.filled).Seconds() * float64(p.limits.PerChatPerSecond)
	return min(p.burst(place), chat.tokens+gained)
}

// chat finds the budget of a chat; a new one is full.
func (p *Pacer) chat(place bot.Place) *budget {
	key := place.ChatKey()
	chat := p.chats[key]
	if chat == nil {
		chat = &budget{tokens: p.burst(place), filled: p.now(), minute: window{per: groupWindow}}
		p.chats[key] = chat
	}
	return chat
}

// sweep forgets chats whose budget is as good as new.
func (p *Pacer) sweep(now time.Time) {
	if now.Sub(p.swept) < sweepEvery {
		return
	}
	p.swept = now
	for key, chat := range p.chats {
		chat.minute.forget(now)
		rested := now.Sub(chat.filled) > privateBurst*time.Second
		if rested && chat.waiting == 0 && len(chat.minute.times) == 0 && !chat.frozen.After(now) {
			delete(p.chats, key)
		}
	}
}

// share is the part of a limit that Low may use, at least one.
func share(limit, part, of int) int { return max(1, limit*part/of) }

// forget drops what lies too far back to count.
func (w *window) forget(now time.Time) {
	old := 0
	for old < len(w.times) && now.Sub(w.times[old].at) >= w.per {
		old++
	}
	w.times = slices.Delete(w.times, 0, old)
}

// delay is how long to wait until one more request fits; limit 0 = no limit.
func (w *window) delay(limit, lowLimit int, low bool, now time.Time) time.Duration {
	if limit <= 0 {
		return 0
	}
	w.forget(now)
	wait := time.Duration(0)
	if over := len(w.times) - limit; over >= 0 {
		wait = w.times[over].at.Add(w.per).Sub(now)
	}
	if !low {
		return wait
	}
	lows := 0
	for _, v := range slices.Backward(w.times) {
		if !v.low {
			continue
		}
		if lows++; lows == lowLimit {
			return max(wait, v.at.Add(w.per).Sub(now))
		}
	}
	return wait
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
