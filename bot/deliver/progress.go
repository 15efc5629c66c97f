package deliver

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/policy/act"
)

const (
	// firstSign is the time before anything is shown: a quick answer needs no sign.
	firstSign = 400 * time.Millisecond
	// draftEvery is the minimum time between two frames of a draft.
	draftEvery = 500 * time.Millisecond
	// draftAgain is when an unchanged draft is shown again; it disappears after about 30 s.
	draftAgain = 22 * time.Second
	// typingEvery is how often "typing" is renewed; it lasts 5 s.
	typingEvery = 4 * time.Second
	// typingFor is the maximum time for which "typing" is shown.
	typingFor = 10 * time.Minute
	// placeholderAfter is how long a turn takes before it gets a message that grows.
	placeholderAfter = 2 * time.Second
	// placeholderPoll is how often the placeholder's id is requested while it is being delivered.
	placeholderPoll = 250 * time.Millisecond
	// lineAfter is how long tools run before they are named.
	lineAfter = 2 * time.Second
	// budgetPoll is the delay before retrying a frame that the budget did not admit.
	budgetPoll = 250 * time.Millisecond
	// requestTime limits one request; closeTime is how long Close waits for one in flight before it is cancelled.
	requestTime = 10 * time.Second
	closeTime   = 5 * time.Second
	// never is used as the next time to look when something else will happen before.
	never = 1000 * time.Hour
)

// ProgressWords are the sentences that are shown while somebody waits.
type ProgressWords interface {
	// Line says what is being done: does is what the tool does to show; if it is "", show is the name of the tool. done
	// and total count tool calls; took is how long the tools have been running.
	Line(language string, does act.Verb, show string, done, total int, took time.Duration) string
	// Silent says that the model has said nothing for so long.
	Silent(language string, lasting time.Duration) string
	// Thinking says that the model is working.
	Thinking(language string) string
}

// ProgressDeps are the dependencies of a Progress.
type ProgressDeps struct {
	Live  bot.Live
	Pacer bot.Pacer
	Words ProgressWords
	Now   func() time.Time // default time.Now
}

// Spec says what a Progress shows, and where.
type Spec struct {
	Place    bot.Place
	Draft    int64 // id of the draft, not 0
	Language string
	// Placeholder creates the durable message that grows where drafts cannot be shown, or finds it again; "" while it
	// is being delivered.
	Placeholder func(ctx context.Context) (message string, err error)
	Buttons     [][]bot.Button // below the placeholder
	// Gone is called once if the place cannot be reached any more, with the time of the request that has shown it;
	// may be nil. It must not block.
	Gone func(asked time.Time)
}

// ProgressOptions configure a Progress. Zero values mean the documented default.
type ProgressOptions struct {
	Interval time.Duration // minimum time between two edits of a message; default 3 s
}

// Progress shows a running turn: a growing draft where there are drafts, otherwise "typing" and a message that is
// edited. It implements agent.Sink. All of it may be lost without harm. Make it with NewProgress and call Run once;
// Emit and Close are safe for concurrent use.
type Progress struct {
	deps ProgressDeps
	spec Spec
	opts ProgressOptions

	state  *state
	stir   chan struct{} // the state has changed
	closed chan struct{}

	mu      sync.Mutex
	ended   bool
	running chan struct{} // closed when the request in flight has ended; nil = none
	cut     context.CancelFunc

	// The rest is used only by Run's goroutine.
	begun time.Time
	screen
	barred
	pace
	typed   time.Time
	asked   time.Time // last call of Placeholder
	sent    time.Time // when the last request began
	message string    // id of the placeholder
	problem error
}

// screen is what the reader sees, as far as known.
type screen struct {
	shown    bot.Content
	version  uint64        // of the state that it shows
	silent   time.Duration // the silence of the model that it tells of
	showing  bool          // shown is visible
	last     time.Time     // when it was shown
	next     time.Time     // no frame is shown before this time
	failures int           // consecutive frames that could not be shown
}

// barred is what the channel does not allow to be shown.
type barred struct {
	frozen   time.Time // set by a 429: nothing is shown until then
	noDrafts bool
	noEdits  bool
	noTyping bool
	gone     bool // nobody can be reached there
}

var _ agent.Sink = (*Progress)(nil)

// NewProgress returns a Progress for one run of a turn.
func NewProgress(deps ProgressDeps, spec Spec, opts ProgressOptions) *Progress {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if opts.Interval <= 0 {
		opts.Interval = 3 * time.Second
	}
	return &Progress{
		deps: deps, spec: spec, opts: opts,
		state: newState(deps.Now), stir: make(chan struct{}, 1), closed: make(chan struct{}),
		barred: barred{noDrafts: !deps.Live.Drafts(spec.Place), noEdits: spec.Placeholder == nil},
	}
}

// Emit implements agent.Sink.
func (p *Progress) Emit(_ context.Context, event agent.Event) {
	p.state.take(event)
	select {
	case p.stir <- struct{}{}:
	default:
	}
}

// Run shows the turn until ctx ends or Close is called. The error is a persistent failure of Placeholder; a refusal of
// the channel is no error.
func (p *Progress) Run(ctx context.Context) error {
	p.begun = p.deps.Now()
	timer := time.NewTimer(firstSign)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return p.problem
		case <-p.closed:
			return p.problem
		case <-timer.C:
		case <-p.stir:
		}
		if ctx.Err() != nil {
			break
		}
		now := p.deps.Now()
		wait := p.begun.Add(firstSign).Sub(now)
		if wait <= 0 {
			wait = p.step(ctx, now)
		}
		timer.Reset(max(wait, time.Millisecond))
	}
	return p.problem
}

// Close stops showing the turn. When it returns, nothing is in flight and nothing more is shown; a request that takes
// too long is cancelled.
func (p *Progress) Close() {
	p.mu.Lock()
	if !p.ended {
		p.ended = true
		close(p.closed)
	}
	running, cut := p.running, p.cut
	p.mu.Unlock()
	if running == nil {
		return
	}
	timer := time.NewTimer(closeTime)
	defer timer.Stop()
	select {
	case <-running:
		return
	case <-timer.C:
	}
	cut()
	<-running
}

// request makes one request unless Close was called, and reports whether it was made. The end of ctx does not cancel
// it, because it might then arrive late.
func (p *Progress) request(ctx context.Context, do func(ctx context.Context) error) (made bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
	defer cancel()
	done := make(chan struct{})
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return false, nil
	}
	p.running, p.cut = done, cancel
	p.mu.Unlock()
	p.sent = p.deps.Now()
	defer func() {
		p.mu.Lock()
		p.running, p.cut = nil, nil
		p.mu.Unlock()
		close(done)
	}()
	return true, do(ctx)
}

// step does what is due and returns when to look again.
func (p *Progress) step(ctx context.Context, now time.Time) time.Duration {
	switch {
	case p.gone:
		return never
	case p.frozen.After(now):
		return p.frozen.Sub(now)
	case !p.noDrafts:
		return p.draft(ctx, now)
	}
	return min(p.typing(ctx, now), p.grow(ctx, now))
}

// draft shows the newest frame as a draft.
func (p *Progress) draft(ctx context.Context, now time.Time) time.Duration {
	return p.frame(ctx, now, track{
		draftEvery,
		draftAgain,
		false,
		&p.noDrafts,
		func(ctx context.Context, c bot.Content) error {
			return p.deps.Live.Draft(ctx, p.spec.Place, p.spec.Draft, c)
		},
	})
}

// track is a way to show frames.
type track struct {
	every   time.Duration // minimum time between two frames
	again   time.Duration // when an unchanged frame is shown again
	paced   bool          // the time between two frames grows
	refused *bool         // set if the channel does not accept any
	show    func(ctx context.Context, content bot.Content) error
}

// frame shows the newest frame if it is time, there is something new and the budget admits it. The frame is rendered
// last, because rendering takes time too.
func (p *Progress) frame(ctx context.Context, now time.Time, t track) time.Duration {
	if wait := p.next.Sub(now); wait > 0 {
		return wait
	}
	g := p.state.glance(now)
	stale := now.Sub(p.last) >= t.again
	if p.showing && !stale && !g.line && g.version == p.version && g.silent == p.silent {
		return min(g.change, p.last.Add(t.again).Sub(now))
	}
	over, ok := p.deps.Pacer.Try(ctx, p.spec.Place, bot.Low)
	if !ok {
		wait := budgetPoll
		if t.paced {
			wait = p.pace.wait()
		}
		p.next = now.Add(wait)
		return wait
	}
	defer over()
	content := p.state.frame(p.deps.Words, p.spec.Language, now)
	if content.Text == "" {
		content.Text = p.deps.Words.Thinking(p.spec.Language)
	}
	p.version, p.silent = g.version, g.silent
	if p.showing && !stale && same(content, p.shown) {
		p.next = now.Add(t.every)
		return t.every
	}
	made, err := p.request(ctx, func(ctx context.Context) error { return t.show(ctx, content) })
	if !made {
		return never
	}
	p.last = p.deps.Now()
	p.saw(content, err, t.refused)
	every := t.every
	if t.paced {
		every = p.after(every, &content, p.begun, p.last)
	}
	every <<= min(p.failures, 4)
	if g.line {
		every = max(every, time.Second) // it shows whole seconds
	}
	p.next = p.last.Add(every)
	return every
}

// typing shows "typing" while nothing else is shown.
func (p *Progress) typing(ctx context.Context, now time.Time) time.Duration {
	if p.noTyping || p.message != "" || now.Sub(p.begun) >= typingFor {
		return never
	}
	if wait := p.typed.Add(typingEvery).Sub(now); wait > 0 {
		return wait
	}
	if f, ok := p.deps.Pacer.(interface{ Frozen(place bot.Place) bool }); ok && f.Frozen(p.spec.Place) {
		return budgetPoll // another request was rate limited
	}
	made, err := p.request(ctx, func(ctx context.Context) error { return p.deps.Live.Typing(ctx, p.spec.Place) })
	if made {
		p.typed = now
		p.failed(err, &p.noTyping)
	}
	return typingEvery
}

// grow obtains a message and edits it.
func (p *Progress) grow(ctx context.Context, now time.Time) time.Duration {
	if p.noEdits || p.gone || p.frozen.After(now) {
		return max(p.frozen.Sub(now), budgetPoll)
	}
	if wait := p.begun.Add(placeholderAfter).Sub(now); wait > 0 {
		return wait
	}
	if p.message == "" {
		return p.placeholder(ctx, now)
	}
	if g := p.state.glance(now); g.empty && !p.showing {
		return g.change // the placeholder says the same
	}
	return p.frame(ctx, now, track{
		p.opts.Interval,
		never,
		true,
		&p.noEdits,
		func(ctx context.Context, c bot.Content) error {
			c.Buttons = p.spec.Buttons // an edit without buttons removes them
			return p.deps.Live.Revise(ctx, p.spec.Place, p.message, c)
		},
	})
}

// placeholder requests the message that grows, until it is there.
func (p *Progress) placeholder(ctx context.Context, now time.Time) time.Duration {
	if wait := p.asked.Add(placeholderPoll).Sub(now); wait > 0 {
		return wait
	}
	made, err := p.request(ctx, func(ctx context.Context) (err error) {
		p.message, err = p.spec.Placeholder(ctx)
		return err
	})
	if !made {
		return never
	}
	p.asked = p.deps.Now()
	if p.problem = err; err != nil {
		p.asked = p.asked.Add(p.opts.Interval)
		return p.opts.Interval
	}
	if p.message != "" {
		p.next = p.asked.Add(p.opts.Interval)
	}
	return placeholderPoll
}

// saw records the outcome of a frame.
func (p *Progress) saw(frame bot.Content, err error, refused *bool) {
	if p.showing = err == nil; p.showing {
		p.shown, p.failures = frame, 0
		return
	}
	p.failures++
	p.failed(err, refused)
}

// failed handles a failed request; refused is set if that kind of request is not worth repeating.
func (p *Progress) failed(err error, refused *bool) {
	if err == nil {
		return
	}
	switch bot.OutcomeOf(err) {
	case bot.Throttled:
		wait := leastFreeze
		if e, ok := errors.AsType[*bot.SendError](err); ok {
			wait = max(wait, e.RetryAfter)
		}
		p.deps.Pacer.Freeze(p.spec.Place, wait)
		p.frozen = p.deps.Now().Add(wait)
	case bot.Refused, bot.Missing, bot.NoTopic:
		*refused = true
	case bot.Gone:
		if p.spec.Gone != nil && !p.gone {
			p.spec.Gone(p.sent)
		}
		p.gone = true
	case bot.Moved:
		p.gone = true
	case bot.NotSent, bot.Vague:
	}
}

func same(a, b bot.Content) bool { return a.Text == b.Text && slices.Equal(a.Entities, b.Entities) }
