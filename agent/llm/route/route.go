// Package route combines several providers into one: it retries temporary failures, falls back to the next provider if
// one fails, and pauses a provider that keeps failing.
//
// Providers are tried in the order primary, fallback. With each, a retryable error is retried with exponential back-off
// and full jitter (or after the RetryAfter that the provider asked for), up to Attempts and within Budget. After that,
// or immediately after llm.Unauthorized, the next provider is tried. llm.Invalid is returned immediately, because
// another provider would be sent the same conversation; so is llm.TooLong, unless Request.Smaller can shorten it. A
// cancelled context ends everything.
//
// A provider with a smaller window than the request was made for (Options.Windows) is sent what Request.Smaller leaves
// of it. One that finds a conversation too long is sent less: as much as it says that it takes, else three quarters of
// what it refused, then half, at most four times; never the same again. The router remembers how much it takes. A large
// request that is rejected for no known reason is sent once in three quarters of its size.
//
// Failures are counted by conversation: a provider is paused if different ones fail, and a conversation
// that fails alone is paused alone.
//
// After text was streamed, a retry starts a new stream, so the code that shows the text must be told: Request.OnReset
// is called before it. Without OnReset such a failure is final and returned with Streamed set.
package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
)

// Attempt is one call of one provider, for metrics.
type Attempt struct {
	Provider string
	Model    string // as the vendor names it, if it succeeded
	Number   int    // 1 = first with this provider
	Err      error
	Duration time.Duration
	Usage    llm.Usage // if it succeeded
	USD      float64
}

// Options configure New; zero values take the defaults in brackets.
type Options struct {
	Attempts      int           // with one provider [3]
	BaseDelay     time.Duration // upper bound of the first random delay, doubled each time [500 ms]
	MaxDelay      time.Duration // upper bound of any random delay [8 s]
	MaxRetryAfter time.Duration // a longer RetryAfter counts as a failure of the provider [30 s]
	// Budget is the time after which no new attempt is started. It is longer than a silent provider takes to time out
	// [5 min].
	Budget     time.Duration
	Timeout    time.Duration // of the whole call, including retries, fallbacks and the stream; 0 = none
	BreakAfter int           // consecutive failed attempts after which a provider is skipped [5]
	BreakFor   time.Duration // how long it is skipped; then one call probes it [30 s]

	Now    func() time.Time                                 // [time.Now]
	Sleep  func(ctx context.Context, d time.Duration) error // [a timer]; returns ctx's error when it ends first
	Jitter func(limit time.Duration) time.Duration          // random delay in [0, limit) [math/rand]
	// Windows are the sizes of the providers' windows, in tokens, by name; a missing one is unknown.
	Windows map[string]int
	// Unpriced are the models whose price nobody knows, by the names of their providers. As fallbacks they are not
	// asked for a payer whose USD are limited (package pay).
	Unpriced map[string]string
	// Answers are the longest answers, in tokens, that the providers reserve room for if a request names none; by name.
	Answers map[string]int
	// Learn is called when a provider has shown that its window is smaller than was known, with the size in tokens,
	// from the caller's goroutine; it must not block. nil = only this Router remembers.
	Learn func(provider string, window int)
	// Learnt returns the window that was learnt of a provider earlier or by another process, in tokens; 0 = none. It is
	// called before each call, by any goroutine, and must not block; nil = nothing was learnt.
	Learnt func(provider string) int
	// Observe is called after each attempt, from the caller's goroutine with its context; may be nil.
	Observe func(context.Context, Attempt)
	Log     zerolog.Logger
}

// Router is an llm.Provider. Safe for concurrent use.
type Router struct {
	providers []*circuit          // primary and fallbacks, in their order
	known     map[string]*circuit // all configured ones, by name
	o         Options
}

// New builds a router from the configured providers, the name of the primary one and the names of the fallbacks.
func New(providers []llm.Provider, primary string, fallback []string, o Options) (*Router, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Router{o: o, known: map[string]*circuit{}}
	names := make([]string, 0, len(providers))
	for _, p := range providers {
		if r.known[p.Name()] != nil {
			return nil, fmt.Errorf("llm.providers: the name %q is used twice", p.Name())
		}
		r.known[p.Name()] = &circuit{provider: p, after: o.BreakAfter, rest: o.BreakFor, tokens: o.Windows[p.Name()]}
		names = append(names, p.Name())
	}
	for i, name := range append([]string{primary}, fallback...) {
		key := "llm.fallback"
		if i == 0 {
			key = "llm.primary"
		}
		p := r.known[name]
		if p == nil {
			return nil, fmt.Errorf(
				"%s names the provider %q, which is not configured; configured are: %s",
				key, name, strings.Join(names, ", "),
			)
		}
		if slices.Contains(r.providers, p) {
			return nil, fmt.Errorf("%s names the provider %q a second time", key, name)
		}
		r.providers = append(r.providers, p)
	}
	return r, nil
}

func (o Options) withDefaults() (Options, error) {
	for _, n := range []struct {
		name  string
		value *time.Duration
		init  time.Duration
	}{
		{"BaseDelay", &o.BaseDelay, 500 * time.Millisecond},
		{"MaxDelay", &o.MaxDelay, 8 * time.Second},
		{"MaxRetryAfter", &o.MaxRetryAfter, 30 * time.Second},
		{"Budget", &o.Budget, 5 * time.Minute},
		{"BreakFor", &o.BreakFor, 30 * time.Second},
	} {
		if *n.value < 0 {
			return o, fmt.Errorf("route options: %s is negative: %s", n.name, *n.value)
		}
		if *n.value == 0 {
			*n.value = n.init
		}
	}
	if o.Attempts < 0 || o.BreakAfter < 0 {
		return o, fmt.Errorf("route options: Attempts and BreakAfter must not be negative: %d, %d",
			o.Attempts, o.BreakAfter)
	}
	if o.Attempts == 0 {
		o.Attempts = 3
	}
	if o.BreakAfter == 0 {
		o.BreakAfter = 5
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleepFor
	}
	if o.Jitter == nil {
		//nolint:gosec // spreads load, guards nothing
		o.Jitter = func(limit time.Duration) time.Duration { return rand.N(limit) }
	}
	if o.Observe == nil {
		o.Observe = func(context.Context, Attempt) {}
	}
	return o, nil
}

func sleepFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // wrapped where it is used
	}
}

// Name implements llm.Provider: the primary provider's name. Response.Provider names the provider that answered.
func (r *Router) Name() string { return r.providers[0].provider.Name() }

// Accepts implements llm.Accepter for the primary provider. A fallback puts contents that it does not take into words.
func (r *Router) Accepts() llm.Accepts { return llm.AcceptsOf(r.providers[0].provider) }

// AcceptsFor implements llm.Chooser.
func (r *Router) AcceptsFor(prefer string) llm.Accepts {
	return llm.AcceptsOf(r.providerOrder(prefer)[0].provider)
}

// UnpricedFor implements llm.Unpriced.
func (r *Router) UnpricedFor(prefer string) string {
	return r.o.Unpriced[r.providerOrder(prefer)[0].provider.Name()]
}

// providerOrder is the order in which providers are asked: the preferred one, then primary and fallbacks. An unknown
// name changes nothing: the configuration may have lost a provider that somebody chose.
func (r *Router) providerOrder(prefer string) []*circuit {
	p := r.known[prefer]
	if p == nil || p == r.providers[0] {
		return r.providers
	}
	list := make([]*circuit, 0, len(r.providers)+1)
	list = append(list, p)
	for _, other := range r.providers {
		if other != p {
			list = append(list, other)
		}
	}
	return list
}

// Chat implements llm.Provider.
func (r *Router) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	c := &call{
		router: r, onReset: req.OnReset, onDelta: onDelta, end: r.o.Now().Add(r.o.Budget),
		conversation: cmp.Or(req.Conversation, req.User, req.Party),
	}
	if r.o.Timeout <= 0 {
		return c.tryProviders(ctx, req)
	}
	whole, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	res, err := c.tryProviders(whole, req)
	if err != nil && ctx.Err() == nil && whole.Err() != nil {
		return nil, c.overtimeError()
	}
	return res, err
}

// overtimeError is the error of a call whose time is over. A provider that was still answering would take as long
// again; one that was silent may succeed at the next attempt.
func (c *call) overtimeError() error {
	e := &llm.Error{Kind: llm.Timeout, Provider: c.asked, Streamed: c.shown, UnderWay: c.lost != nil}
	if c.shown {
		e.Kind = llm.Overtime
	}
	causes := []error{fmt.Errorf("no whole answer within %s, which is llm.timeout", c.router.o.Timeout)}
	for _, failed := range c.errs {
		causes = append(causes, failed)
	}
	e.Err = errors.Join(causes...)
	return e
}

// tryProviders tries one provider after the other.
func (c *call) tryProviders(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	r := c.router
	inner := *req
	if req.OnReset != nil {
		// A router below this one can start over by itself.
		inner.OnReset = c.resetText
	}
	c.whole = &inner
	order := r.providerOrder(req.Prefer)
	for i, p := range order {
		c.asked, c.more = p.provider.Name(), i+1 < len(order)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("call model: %w", err)
		}
		now := r.o.Now()
		if i > 0 && now.After(c.end) {
			break
		}
		if i > 0 && r.o.Unpriced[c.asked] != "" && cost.LimitsUSD(ctx) {
			r.o.Log.Debug().Str("provider", c.asked).
				Msg("fallback is not asked: its price is not known, and USD are limited")
			continue
		}
		wait, probe := p.enterCall(c.conversation, now)
		if wait > 0 {
			c.addFailure(p.pausedError(c.conversation, wait, now))
			continue
		}
		res, err := c.callFitted(ctx, p)
		p.leaveProbe(probe)
		if err == nil || c.final {
			return res, err
		}
	}
	return nil, c.sumFailures()
}

// call is one Chat of the router.
type call struct {
	router  *Router
	whole   *llm.Request // as it was made
	req     *llm.Request // as it is sent to the current provider
	onReset func()
	onDelta func(string)
	end     time.Time
	// conversation is what failures are counted by; "" = unknown.
	conversation string
	asked        string // the provider being called
	more         bool   // another provider can be tried after it
	shown        bool   // text was passed to onDelta
	final        bool   // the last error ends the call
	doubted      bool   // an answer that ended before it began was taken for a sign that the request is too long
	errs         []*llm.Error
	written      int        // bytes that the current attempt has passed to onDelta
	lost         *llm.Usage // what the last attempt may have cost, if nobody knows and nobody has paid for it yet
}

func (c *call) addFailure(err *llm.Error) { c.errs = append(c.errs, err) }

// passDelta passes text on and records that it did.
func (c *call) passDelta(text string) {
	if text == "" {
		return
	}
	c.shown = true
	c.written += len(text)
	c.onDelta(text)
}

// resetText voids the text passed on so far.
func (c *call) resetText() {
	if c.shown {
		c.shown = false
		c.onReset()
	}
}

// tryProvider calls one provider until it succeeds, the attempts are used up, or a final error occurs.
func (c *call) tryProvider(ctx context.Context, p *circuit) (*llm.Response, error) {
	o := &c.router.o
	for number := 1; ; number++ {
		c.resetText()
		if err := c.payLost(ctx); err != nil {
			c.final = true
			return nil, err
		}
		res, err := c.attemptOnce(ctx, p, number)
		if err == nil {
			return res, nil
		}
		c.noteLost(p, err)
		if ctxErr := ctx.Err(); ctxErr != nil {
			c.final = true
			return nil, c.interruptedError(p, ctxErr)
		}
		e := asError(err, p.provider.Name())
		e.Streamed = e.Streamed || c.shown
		c.addFailure(e)
		rejected := e.Kind == llm.Invalid || e.Kind == llm.TooLong && c.whole.Smaller == nil
		unlimited := e.Kind == llm.Oversize || e.Kind == llm.Overtime
		if rejected || unlimited || (c.shown && c.onReset == nil) {
			c.final = true
			return nil, e
		}
		if e.Unexplained && !c.doubted && c.whole.Smaller != nil && p.unusualSize(c.req.Size) {
			c.doubted = true
			return nil, e
		}
		delay, again := c.nextDelay(e, number)
		if !again || p.isResting(c.conversation, o.Now()) {
			if e.Blank { // a hiccup does not last so long
				c.countMisdirected(p)
			}
			return nil, e
		}
		o.Log.Debug().Str("provider", p.provider.Name()).Str("kind", string(e.Kind)).
			Dur("delay", delay).Int("attempt", number).Msg("model call is retried")
		if err := o.Sleep(ctx, delay); err != nil {
			c.final = true
			return nil, c.interruptedError(p, err)
		}
	}
}

// noteLost notes what an attempt may have cost that has failed, if nobody knows. Whoever sets money aside for a call
// knows the size of its request.
func (c *call) noteLost(p *circuit, err error) {
	if !llm.MayHaveCost(err) {
		return
	}
	output := cmp.Or(c.req.MaxTokens, c.router.o.Answers[p.provider.Name()])
	if c.shown {
		output = c.written // a token is a byte or more
	}
	c.lost = &llm.Usage{Input: c.req.Size, Output: output}
}

// payLost makes the payer pay for the attempt before, if nobody knows what it has cost. Otherwise the whole call could
// cost more than was set aside for it. The caller pays for the last attempt.
func (c *call) payLost(ctx context.Context) error {
	c.written = 0
	if c.lost == nil {
		return nil
	}
	if err := cost.Book(ctx, *c.lost); err != nil {
		return fmt.Errorf("pay for an attempt that did not end: %w: %w", err, llm.ErrUnderWay)
	}
	c.lost = nil
	return nil
}

// interruptedError is the error of a call whose context has ended.
func (c *call) interruptedError(p *circuit, err error) error {
	if c.lost != nil {
		err = fmt.Errorf("%w: %w", err, llm.ErrUnderWay)
	}
	return fmt.Errorf("call model %s: %w", p.provider.Name(), err)
}

// countMisdirected counts answers without anything in them as a wrong address.
func (c *call) countMisdirected(p *circuit) {
	for _, e := range c.errs {
		if e.Blank && e.Provider == p.provider.Name() {
			e.Kind = llm.WrongAddress
		}
	}
	p.noteFailure(c.conversation, &llm.Error{
		Kind:     llm.WrongAddress,
		Provider: p.provider.Name(),
		Err:      errors.New("the answer has nothing in it"),
	})
}

// attemptOnce makes one attempt and reports it.
func (c *call) attemptOnce(ctx context.Context, p *circuit, number int) (*llm.Response, error) {
	o := &c.router.o
	var onDelta func(string)
	if c.onDelta != nil {
		onDelta = c.passDelta
	}
	start := o.Now()
	res, err := p.provider.Chat(ctx, c.req, onDelta)
	if err == nil && res == nil {
		err = &llm.Error{
			Kind: llm.Unavailable, Provider: p.provider.Name(),
			Err: errors.New("provider returned neither answer nor error"),
		}
	}
	now := o.Now()
	attempt := Attempt{Provider: p.provider.Name(), Number: number, Err: err, Duration: now.Sub(start)}
	if err == nil {
		attempt.Usage, attempt.USD, attempt.Model = res.Usage, res.USD, res.Model
	}
	if ctx.Err() == nil || err == nil {
		p.recordResult(c.conversation, err, now)
	}
	o.Observe(ctx, attempt)
	if err != nil {
		return nil, err //nolint:wrapcheck // the provider's own classification
	}
	return res, nil
}

// sumFailures is the error of a call that no provider could answer: of the kind that leaves the caller the most
// options, with all causes in its text.
func (c *call) sumFailures() error {
	if len(c.errs) == 1 {
		c.errs[0].UnderWay = c.lost != nil
		return c.errs[0]
	}
	best := c.errs[len(c.errs)-1]
	causes := make([]error, 0, len(c.errs))
	for _, e := range c.errs {
		causes = append(causes, e)
		if !e.Retryable() {
			continue
		}
		if !best.Retryable() || (e.RetryAfter > 0 && (best.RetryAfter == 0 || e.RetryAfter < best.RetryAfter)) {
			best = e
		}
	}
	return &llm.Error{
		Kind: best.Kind, Provider: best.Provider, Server: best.Server, Unreached: best.Unreached, Status: best.Status,
		RetryAfter: best.RetryAfter, Streamed: c.shown, UnderWay: c.lost != nil, Err: errors.Join(causes...),
	}
}

// asError copies an llm.Error, so that it can be completed, or wraps any other error in one.
func asError(err error, provider string) *llm.Error {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		copied := *e
		return &copied
	}
	return &llm.Error{Kind: llm.KindOf(err), Provider: provider, Err: err}
}
