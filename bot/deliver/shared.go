package deliver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
)

// Ask is a request that waits to be sent, with its limits. 0 = no limit.
type Ask struct {
	ID   string // unique among all requests of all processes
	Chat string
	Low  bool
	// PerSecond is the bot's limit, and LowPerSecond what modest requests may use of it. PerMinute and LowPerMinute are
	// the same for a group.
	PerSecond, LowPerSecond int
	PerMinute, LowPerMinute int
	// Rate is how many tokens a chat gains per second, Burst how many it holds at most, Need how many it must hold. A
	// request takes one.
	Rate, Burst, Need int
}

// Ask returns the request with an id and these limits.
func (l Limits) Ask(id string, place bot.Place, priority bot.Priority) Ask {
	a := Ask{
		ID: id, Chat: place.ChatKey(), Low: priority >= bot.Low, PerSecond: l.PerSecond, Rate: l.PerChatPerSecond,
		Burst: l.burst(place), Need: 1,
	}
	if a.PerSecond > 0 {
		a.LowPerSecond = fifths(a.PerSecond, 4)
	}
	if place.Group && l.PerGroupPerMinute > 0 {
		a.PerMinute, a.LowPerMinute = l.PerGroupPerMinute, fifths(l.PerGroupPerMinute, 3)
	}
	if a.Low && a.Burst >= 2 {
		a.Need = 2 // the last one is reserved for an answer
	}
	return a
}

// burst returns how many requests may be sent to a chat at once.
func (l Limits) burst(place bot.Place) int {
	if place.Group {
		return l.PerChatPerSecond
	}
	return l.PerChatPerSecond * privateBurst
}

// Over is a request that has ended, and how long ago.
type Over struct {
	Ask Ask
	Ago time.Duration
}

// Verdict reports whether a request may be sent. If not, it says how long to wait at least before asking again.
type Verdict struct {
	Granted bool
	Chat    time.Duration // because of the chat
	All     time.Duration // because of the bot
	Frozen  time.Duration // for how long a 429 stops the chat or the bot
}

// Budget is a send budget that several processes share; redis.Store has one. It enforces the limits like Pacer, by its
// own clock. Safe for concurrent use.
type Budget interface {
	// Spend books what has ended, and then a request if it may be sent now. After an error it is unknown whether it
	// did; a booked request that never ends counts as long as one that hangs.
	Spend(ctx context.Context, ask Ask, over []Over) (Verdict, error)
	// End books what has ended.
	End(ctx context.Context, over []Over) error
	// Freeze stops a chat for wait and more; three or more chats within 2 s stop the bot, as in a Pacer.
	Freeze(ctx context.Context, chat string, wait, more time.Duration) error
}

const (
	// askPatience is the default of SharedOptions.Patience. A budget that took longer is left alone for askAgain.
	askPatience = 600 * time.Millisecond
	askAgain    = time.Second
	// tellEvery limits how long other processes regard a request as in progress after it has ended. Most ended requests
	// are reported along with the next request.
	tellEvery = 100 * time.Millisecond
	// tellMost is how many ended requests are reported at once.
	tellMost = 64
	// leastWait is the shortest pause before the budget is asked again for the same request.
	leastWait = 10 * time.Millisecond
	// partingPatience limits how long a process that ends reports to the others.
	partingPatience = time.Second
)

// SharedOptions configure a SharedPacer.
type SharedOptions struct {
	PacerOptions
	// Patience limits how long the budget may take to answer, before this process sends its part for a while; 0 = 600
	// ms.
	Patience time.Duration
	// Living returns how many processes share the budget; nil = 2. While the budget does not respond, each sends its
	// share.
	Living func() int
	Log    zerolog.Logger
}

// SharedPacer keeps one send budget together with other processes and implements bot.Pacer. It asks the budget once for
// a request that may go. While the budget does not answer, this process goes on with its share: where it answers others
// meanwhile, all of them together may send that share more than the limits say. Safe for concurrent use; Run has to run
// for anybody to be let go by Wait.
type SharedPacer struct {
	budget Budget
	opts   SharedOptions
	limits Limits
	own    *Pacer // what this process has sent, for when the budget does not respond

	mu      sync.Mutex
	waiting []*sharedWaiter // by priority, first come first served
	over    []ended
	freezes []sharedFreeze
	chats   map[string]verdictUntil
	all     [2]time.Time // until when the bot may send nothing; [1] nothing modest
	alone   bool         // the budget does not respond
	rest    time.Time    // it is not asked until then
	swept   time.Time
	nudge   chan struct{}
}

var _ bot.Pacer = (*SharedPacer)(nil)

// sharedWaiter is one call of Wait.
type sharedWaiter struct {
	ask      Ask
	place    bot.Place
	priority bot.Priority
	granted  chan struct{}
	done     func() // of a granted one
	gone     bool   // its caller has stopped waiting
}

// ended is a request that has ended and was not reported yet.
type ended struct {
	ask Ask
	at  time.Time
}

// sharedFreeze is a 429 that was not reported yet.
type sharedFreeze struct {
	chat       string
	wait, more time.Duration
	at         time.Time
}

// verdictUntil is what the budget said about a chat.
type verdictUntil struct{ wait, frozen time.Time }

// NewSharedPacer returns a SharedPacer. Every process has to use the same limits.
func NewSharedPacer(budget Budget, limits Limits, opts SharedOptions) *SharedPacer {
	own := NewPacer(limits, opts.PacerOptions)
	opts.Now, opts.Jitter = own.now, own.jitter
	if opts.Patience == 0 {
		opts.Patience = askPatience
	}
	if opts.Living == nil {
		opts.Living = func() int { return 2 }
	}
	return &SharedPacer{
		budget: budget, opts: opts, limits: limits, own: own, chats: map[string]verdictUntil{},
		nudge: make(chan struct{}, 1),
	}
}

// Wait implements bot.Pacer.
func (p *SharedPacer) Wait(ctx context.Context, place bot.Place, priority bot.Priority) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &sharedWaiter{
		ask: p.limits.Ask(uuid.NewString(), place, priority), place: place, priority: priority,
		granted: make(chan struct{}),
	}
	p.mu.Lock()
	at := len(p.waiting)
	for at > 0 && p.waiting[at-1].priority > priority {
		at--
	}
	p.waiting = slices.Insert(p.waiting, at, w)
	p.mu.Unlock()
	p.wake()
	select {
	case <-w.granted:
		return w.done, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.done != nil {
		return w.done, nil // granted just now
	}
	w.gone = true
	p.waiting = slices.DeleteFunc(p.waiting, func(other *sharedWaiter) bool { return other == w })
	return nil, ctx.Err()
}

// Try implements bot.Pacer. It asks the budget.
func (p *SharedPacer) Try(ctx context.Context, place bot.Place, priority bot.Priority) (done func(), ok bool) {
	if !p.Likely(place, priority) {
		return nil, false
	}
	return p.spend(ctx, p.limits.Ask(uuid.NewString(), place, priority), place, priority)
}

// Likely reports, without asking the budget, whether a request may be sent as far as this process knows. It takes
// nothing.
func (p *SharedPacer) Likely(place bot.Place, priority bot.Priority) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.waiting {
		if w.place.ChatKey() == place.ChatKey() && w.priority <= priority {
			return false
		}
	}
	return p.delay(place.ChatKey(), priority, p.opts.Now()) <= 0
}

// Freeze implements bot.Pacer. It is reported to the other processes a moment later.
func (p *SharedPacer) Freeze(place bot.Place, wait time.Duration) {
	wait = max(wait, leastFreeze)
	p.own.Freeze(place, wait)
	now, more := p.opts.Now(), p.opts.Jitter(wait)
	p.mu.Lock()
	p.freezes = append(p.freezes, sharedFreeze{chat: place.ChatKey(), wait: wait, more: more, at: now})
	known := p.chats[place.ChatKey()]
	known.wait, known.frozen = latest(known.wait, now.Add(wait+more)), latest(known.frozen, now.Add(wait+more))
	p.chats[place.ChatKey()] = known
	p.mu.Unlock()
	p.wake()
}

// Frozen reports whether a 429 stops all requests to the place at the moment, as far as this process knows.
func (p *SharedPacer) Frozen(place bot.Place) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.own.Frozen(place) || p.chats[place.ChatKey()].frozen.After(p.opts.Now())
}

// spend asks the budget for a request, or this process's share while the budget does not respond.
func (p *SharedPacer) spend(
	outer context.Context, ask Ask, place bot.Place, priority bot.Priority,
) (done func(), ok bool) {
	if p.resting() {
		return p.spendOwn(ask, place, priority, nil)
	}
	ctx, cancel := context.WithTimeout(outer, p.opts.Patience)
	defer cancel()
	over := p.untold()
	verdict, err := p.budget.Spend(ctx, ask, told(over, p.opts.Now()))
	if err != nil {
		p.tellLater(over)
		if outer.Err() != nil {
			return nil, false
		}
		return p.spendOwn(ask, place, priority, err)
	}
	now := p.opts.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.alone {
		p.alone = false
		p.opts.Log.Info().Msg("the send budget is shared again")
	}
	p.heed(ask, verdict, now)
	if !verdict.Granted {
		return nil, false
	}
	return p.booked(ask, place, priority), true
}

// spendOwn asks this process's share.
func (p *SharedPacer) spendOwn(ask Ask, place bot.Place, priority bot.Priority, why error) (done func(), ok bool) {
	living := max(1, p.opts.Living())
	done, wait := p.own.part(place, priority, living)
	p.mu.Lock()
	defer p.mu.Unlock()
	if why != nil {
		p.rest = p.opts.Now().Add(askAgain)
	}
	if !p.alone {
		p.alone = true
		p.opts.Log.Warn().Err(why).Int("processes", living).
			Msg("the send budget is not shared for now; this process sends its part of it")
	}
	if done == nil {
		known := p.chats[ask.Chat]
		known.wait = latest(known.wait, p.opts.Now().Add(min(wait, tellEvery))) // the budget may respond again sooner
		p.chats[ask.Chat] = known
		return nil, false
	}
	return done, true
}

// booked returns the function that ends a request that the budget has booked. p.mu must be held.
func (p *SharedPacer) booked(ask Ask, place bot.Place, priority bot.Priority) func() {
	own := p.own.book(place, priority)
	return sync.OnceFunc(func() {
		own()
		p.mu.Lock()
		p.over = append(p.over, ended{ask: ask, at: p.opts.Now()})
		first := len(p.over) == 1
		p.mu.Unlock()
		if first {
			p.wake()
		}
	})
}

// heed remembers what the budget said. p.mu must be held.
func (p *SharedPacer) heed(ask Ask, v Verdict, now time.Time) {
	if v.Frozen > 0 || v.Chat > 0 {
		known := p.chats[ask.Chat]
		known.frozen = latest(known.frozen, now.Add(v.Frozen))
		known.wait = latest(known.wait, now.Add(max(v.Chat, leastWait)))
		p.chats[ask.Chat] = known
	}
	if v.All > 0 {
		low := 0
		if ask.Low {
			low = 1
		}
		p.all[low] = latest(p.all[low], now.Add(max(v.All, leastWait)))
	}
	if !v.Granted && v.Chat <= 0 && v.All <= 0 {
		p.opts.Log.Error().Str("verdict", fmt.Sprintf("%+v", v)).Msg("the send budget refuses without a reason")
		p.all[0] = latest(p.all[0], now.Add(tellEvery))
	}
}

// delay returns for how long the budget need not be asked. p.mu must be held.
func (p *SharedPacer) delay(chat string, priority bot.Priority, now time.Time) time.Duration {
	until := latest(p.all[0], p.chats[chat].wait)
	if priority >= bot.Low {
		until = latest(until, p.all[1])
	}
	return until.Sub(now)
}

// resting reports whether the budget recently failed to respond.
func (p *SharedPacer) resting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rest.After(p.opts.Now())
}

// wake makes Run look again.
func (p *SharedPacer) wake() {
	select {
	case p.nudge <- struct{}{}:
	default: // it will anyway
	}
}
