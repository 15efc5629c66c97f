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
	// firstSign is when something is shown at the earliest: a quick answer needs no sign.
	firstSign = 400 * time.Millisecond
	// draftEvery is the least time between two frames of a draft.
	draftEvery = 500 * time.Millisecond
	// draftAgain is when an unchanged draft is shown anew; it vanishes after some 30 s.
	draftAgain = 22 * time.Second
	// typingEvery is how often "typing" is renewed; it lasts 5 s.
	typingEvery = 4 * time.Second
	// typingFor is how long "typing" is shown at most.
	typingFor = 10 * time.Minute
	// placeholderAfter is how long a turn may take before it gets a message that grows.
	placeholderAfter = 2 * time.Second
	// placeholderPoll is how often the placeholder's id is asked for while it is on its way.
	placeholderPoll = 250 * time.Millisecond
	// lineAfter is how long tools run before they are named.
	lineAfter = 2 * time.Second
	// budgetPoll is how soon a frame is tried again that the budget did not let go.
	budgetPoll = 250 * time.Millisecond
	// requestTime bounds one request; closeTime is how long Close waits for one in flight before it is cut off.
	requestTime = 10 * time.Second
	closeTime   = 5 * time.Second
	// never is a time to look again that something else will come before.
	never = 1000 * time.Hour
)

// ProgressWords are the sentences that are shown while somebody waits.
type ProgressWords interface {
	// Line says what is being done: does is what the tool does to show; when it is "", show is the name of the tool.
	// done and total count tool calls, took is how long the tools run already.
	Line(language string, does act.Verb, show string, done, total int, took time.Duration) string
	// Thinking says that the model is at work.
	Thinking(language string) string
}

// ProgressDeps are what a Progress works with.
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
	// Placeholder makes the durable message that grows where drafts cannot be shown, or finds it again; "" while it is
	// on its way.
	Placeholder func(ctx context.Context) (message string, err error)
	// Gone is told, once, when nothing reaches the place any more; nil = nobody is. It must not block.
	Gone func()
}

// ProgressOptions tune a Progress. Zero values mean the documented default.
type ProgressOptions struct {
	Interval time.Duration // least time between two edits of a message; default 3 s
}

// Progress shows a running turn: a draft that grows where there are drafts, else "typing" and a message that is edited.
// It implements agent.Sink. All of it may be lost without harm. Make it with NewProgress, call Run once; Emit and Close
// are safe for concurrent use.
type Progress struct {
	deps ProgressDeps
	spec Spec
	opts ProgressOptions

	state  *state
	stir   chan struct{} // the state has changed
	closed chan struct{}

	mu      sync.Mutex
	ended   bool
	running chan struct{} // closed when the request in flight is done; nil = none
	cut     context.CancelFunc

	// The rest belongs to Run's goroutine.
	begun time.Time
	screen
	barred
	typed   time.Time
	asked   time.Time // last time Placeholder was called
	message string    // the placeholder
	problem error
}

// screen is what the reader sees, as far as we know.
type screen struct {
	shown    bot.Content
	version  uint64    // of the state it shows
	showing  bool      // shown is there
	last     time.Time // when it was shown
	next     time.Time // no frame is shown before
	failures int       // frames in a row that did not get through
}

// barred is what the channel does not let us show.
type barred struct {
	frozen   time.Time // a 429 said so: nothing until then
	noDrafts bool
	noEdits  bool
	noTyping bool
	gone     bool // nobody is there to show anything to
}

var _ agent.Sink = (*Progress)(nil)

// NewProgress makes a Progress for one run of a turn.
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

// Run shows until ctx ends or Close is called. The error is a failure of Placeholder that lasted; what the channel
// refuses is no error.
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

// Close ends the showing. When it returns nothing is in flight and nothing more is shown; a request that takes too long
// is cut off.
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

// request makes one request unless the end has come; it reports whether it was made. The end of ctx does not cut it
// off: it would arrive late.
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
	defer func() {
		p.mu.Lock()
		p.running, p.cut = nil, nil
		p.mu.Unlock()
		close(done)
	}()
	return true, do(ctx)
}

// step does what is due and says when to look again.
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
	return p.frame(ctx, now, track{draftEvery, draftAgain, &p.noDrafts, func(ctx context.Context, c bot.Content) error {
		return p.deps.Live.Draft(ctx, p.spec.Place, p.spec.Draft, c)
	}})
}

// track is a way to show frames.
type track struct {
	every   time.Duration // least time between two frames
	again   time.Duration // when an unchanged frame is shown anew
	refused *bool         // set when the channel does not want any
	show    func(ctx context.Context, content bot.Content) error
}

// frame shows the newest frame when it is time, there is something new and the budget lets it go. It is made last:
// rendering costs time too.
func (p *Progress) frame(ctx context.Context, now time.Time, t track) time.Duration {
	if wait := p.next.Sub(now); wait > 0 {
		return wait
	}
	g := p.state.glance(now)
	stale := now.Sub(p.last) >= t.again
	if p.showing && !stale && !g.line && g.version == p.version {
		return min(g.change, p.last.Add(t.again).Sub(now))
	}
	over, ok := p.deps.Pacer.Try(ctx, p.spec.Place, bot.Low)
	if !ok {
		p.next = now.Add(budgetPoll)
		return budgetPoll
	}
	defer over()
	content := p.state.frame(p.deps.Words, p.spec.Language, now)
	if content.Text == "" {
		content.Text = p.deps.Words.Thinking(p.spec.Language)
	}
	p.version = g.version
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
	every := t.every << min(p.failures, 4)
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
		return budgetPoll // somebody else was told to wait
	}
	made, err := p.request(ctx, func(ctx context.Context) error { return p.deps.Live.Typing(ctx, p.spec.Place) })
	if made {
		p.typed = now
		p.failed(err, &p.noTyping)
	}
	return typingEvery
}

// grow gets a message and edits it.
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
		return g.change // the placeholder says as much
	}
	return p.frame(ctx, now, track{p.opts.Interval, never, &p.noEdits, func(ctx context.Context, c bot.Content) error {
		return p.deps.Live.Revise(ctx, p.spec.Place, p.message, c)
	}})
}

// placeholder asks for the message that grows until it is there.
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

// saw notes what became of a frame.
func (p *Progress) saw(frame bot.Content, err error, refused *bool) {
	if p.showing = err == nil; p.showing {
		p.shown, p.failures = frame, 0
		return
	}
	p.failures++
	p.failed(err, refused)
}

// failed draws the conclusions from a failed request; refused is set when that kind of request is not worth repeating.
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
			p.spec.Gone()
		}
		p.gone = true
	case bot.Moved:
		p.gone = true
	case bot.NotSent, bot.Vague:
	}
}

func same(a, b bot.Content) bool { return a.Text == b.Text && slices.Equal(a.Entities, b.Entities) }
