package route

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
)

// leastWindow is the smallest window that is believed: below it, nothing sensible can be asked.
const leastWindow = 512

// leastAnswer is how many tokens are left for an answer at least.
const leastAnswer = 256

// budgetTime is how long a provider is sent no more than the account may use in a minute, before that is tried again.
const budgetTime = 10 * time.Minute

// WindowFor implements llm.Windowed.
func (r *Router) WindowFor(prefer string) int { return r.windowOf(r.providerOrder(prefer)[0]) }

// windowOf returns how much a provider can be sent, with what was learnt elsewhere; 0 = unknown.
func (r *Router) windowOf(p *circuit) int {
	if r.o.Learnt != nil {
		if known := r.o.Learnt(p.provider.Name()); known > 0 {
			p.narrowWindow(known)
		}
	}
	return p.knownWindow(r.o.Now())
}

// knownWindow returns how much the provider can be sent; 0 = unknown.
func (c *circuit) knownWindow(now time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.quota > 0 && now.Before(c.quotaUntil) && (c.tokens == 0 || c.quota < c.tokens) {
		return c.quota
	}
	return c.tokens
}

// SetWindow sets the size of a provider's window, in tokens, as its server says it. What a refusal has shown before is
// kept. Safe for concurrent use.
func (r *Router) SetWindow(provider string, tokens int) {
	c := r.known[provider]
	if c == nil || tokens <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.shown {
		c.tokens = max(tokens, leastWindow)
	}
}

// narrowWindow remembers that the provider takes no more than so many tokens, and reports whether that is news. It
// never believes that its window is larger than it was.
func (c *circuit) narrowWindow(tokens int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if tokens = max(tokens, leastWindow); c.tokens != 0 && tokens >= c.tokens {
		return false
	}
	c.tokens, c.shown = tokens, true
	return true
}

// windowFound reports whether the size of the window was found by a refusal. One that is configured leaves room for the
// longest answer beside what Request.Smaller fills.
func (c *circuit) windowFound() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown
}

// rationTokens remembers for a while that the provider takes no more than so many tokens at once.
func (c *circuit) rationTokens(tokens int, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quota, c.quotaUntil, c.shown = max(tokens, leastWindow), now.Add(budgetTime), true
}

// errTooLong is the cause if nothing can be left out any more.
var errTooLong = errors.New("the conversation does not fit into its window, whatever is left out")

// shares are the parts of a refused request that are tried one after the other if the provider does not say how much it
// takes: at most so many requests are refused after the first one.
var shares = [...]float64{0.75, 0.5, 0.25, 0.125}

// filled is the share of a window up to which Request.Smaller fills it.
const filled = 0.6

// callFitted calls a provider with as much of the conversation as fits into its window, and again with less if the
// provider finds that too long. No request is sent twice after it was found too long.
func (c *call) callFitted(ctx context.Context, p *circuit) (*llm.Response, error) {
	if !c.fitWindow(p, c.router.windowOf(p)) {
		return nil, c.errs[len(c.errs)-1]
	}
	shrink := shrinking{call: c, circuit: p}
	var silent llm.Response // that said nothing, for what it cost
	for {
		doubted := c.doubted
		res, err := c.tryProvider(ctx, p)
		if err == nil {
			res.Usage, res.USD = res.Usage.Add(silent.Usage), res.USD+silent.USD
			switch {
			case !isEmpty(res):
				shrink.keepLearnt()
			case c.whole.Again && shrink.prepareAfter(errSilent):
				silent = *res
				c.final = false
				continue
			}
			return res, nil
		}
		if ctx.Err() != nil || !c.prepareAffordable(err) && !shrink.prepareAfter(err) {
			if c.doubted == doubted {
				return nil, err
			}
			// It cannot be made shorter, so it is retried like any answer that was cut off.
		}
		c.final = false
	}
}

// errSilent is what an empty answer to a large request may mean, if there was one before.
var errSilent = &llm.Error{Kind: llm.Invalid, Unexplained: true, Err: errors.New("the answer is empty")}

// isEmpty reports whether an answer says nothing at all. It does not show that the
// provider takes requests of this size.
func isEmpty(res *llm.Response) bool {
	return strings.TrimSpace(res.Text) == "" && res.Thoughts == "" &&
		len(res.Uses) == 0 && !res.Unmade && res.Stop == llm.StopEnd
}

// prepareAffordable prepares the same request with the longest answer that the account can still pay, if the provider
// said how long that is; false = it did not, or it was no longer before.
func (c *call) prepareAffordable(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Kind != llm.NoCredit || e.Answer < leastAnswer ||
		e.Streamed || c.req.MaxTokens > 0 && c.req.MaxTokens <= e.Answer {
		return false
	}
	next := *c.req
	next.MaxTokens = e.Answer
	c.req = &next
	return true
}

// fitWindow sets the request for a window; false if the conversation does not fit.
func (c *call) fitWindow(p *circuit, window int) bool {
	c.req = c.whole
	if window == 0 {
		return true
	}
	if window < c.whole.Window || c.whole.Window == 0 {
		if c.whole.Smaller == nil {
			return true
		}
		messages, size, ok := c.whole.Smaller(window)
		if !ok {
			c.addFailure(&llm.Error{Kind: llm.TooLong, Provider: p.provider.Name(), Err: errTooLong})
			return false
		}
		c.makeRequest(p, messages, size, window)
		return true
	}
	if most := c.answerTokens(p); most > 0 && c.whole.Size > 0 && c.whole.Size+most > window && p.windowFound() {
		c.makeRequest(p, c.whole.Messages, c.whole.Size, window)
	}
	return true
}

// answerTokens returns how many tokens the next request reserves for its answer; 0 = unknown.
func (c *call) answerTokens(p *circuit) int {
	if c.req.MaxTokens > 0 {
		return c.req.MaxTokens
	}
	return c.router.o.Answers[p.provider.Name()]
}

// makeRequest makes the request with some messages of so many tokens in all. The answer gets no more than the rest of
// the window, because many servers refuse a request whose longest answer would not fit.
func (c *call) makeRequest(p *circuit, messages []llm.Message, size, window int) {
	next := *c.whole
	next.Messages, next.Size, next.Window = messages, size, window
	c.req = &next
	if most := c.answerTokens(p); most > 0 && size > 0 && size+most > window && p.windowFound() {
		next.MaxTokens = max(window-size, leastAnswer)
	}
}

// shrinking makes the requests to one provider shorter as long as it finds them too long. Not safe for concurrent use.
type shrinking struct {
	call     *call
	circuit  *circuit
	steps    int // requests that were sent after one was refused
	guesses  int // of shares
	base     int // size of the request of which shares are tried
	learnt   int // size of the last request that was refused without a number that helps; 0 = none
	doubtful int // size of a request that was refused without a word about its length; 0 = none
}

// prepareAfter prepares a shorter request after a failure; false = there is none, or it would not help.
func (s *shrinking) prepareAfter(err error) bool {
	c := s.call
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Streamed || c.whole.Smaller == nil {
		return false
	}
	size := c.req.Size
	if e.Kind != llm.TooLong {
		if !e.Unexplained || s.steps > 0 || !s.circuit.unusualSize(size) {
			return false
		}
		s.steps, s.doubtful = 1, size
		return s.guessShare(size)
	}
	window, fits := 0, true
	if e.Window > 0 {
		window, fits = s.namedWindow(e, size)
	}
	// It has refused a request that would have fit, with its longest answer, into the window that it named, or it named
	// none: its window is smaller than the request.
	if size > 0 && !e.Budget && (window == 0 || size+c.answerTokens(s.circuit) <= window) {
		s.learnt = size
		s.circuit.narrowWindow(size)
	}
	if s.steps++; s.steps > len(shares) || !fits {
		return false
	}
	return window > 0 && s.shortenTo(window) || s.guessShare(size)
}

// namedWindow returns the window that the provider named, in our tokens: if it also said how many it was sent, the
// window is that much smaller as it has counted more. fits is false if no request can be made for it.
func (s *shrinking) namedWindow(e *llm.Error, size int) (window int, fits bool) {
	c := s.call
	window = e.Window
	most := c.answerTokens(s.circuit)
	counted := size
	if most > 0 && isNearer(e.Size, size+most, size) { // the longest answer is counted as well
		counted += most
	}
	if e.Size > counted && counted > 0 {
		window = max(int(float64(window)*float64(counted)/float64(e.Size)), window/2)
	}
	window = max(window, leastWindow)
	if e.Budget {
		s.circuit.rationTokens(window, c.router.o.Now())
	} else if s.circuit.narrowWindow(window) {
		c.router.reportWindow(s.circuit, e.Window)
	}
	_, least, fits := c.whole.Smaller(window)
	return window, fits || least > 0 && float64(least) <= float64(window)*tolerance
}

// isNearer reports whether n is nearer to a than to b.
func isNearer(n, a, b int) bool { return n > 0 && max(n-a, a-n) < max(n-b, b-n) }

// guessShare prepares a request of the next share of what was refused.
func (s *shrinking) guessShare(size int) bool {
	if s.base == 0 {
		s.base = size
		if size == 0 { // its maker does not say; it fills its window at most
			s.base = s.call.req.Window
		}
	}
	for s.guesses < len(shares) {
		target := int(float64(s.base) * shares[s.guesses])
		s.guesses++
		window := max(int(float64(target)/filled), leastWindow)
		if _, left, _ := s.call.whole.Smaller(window); left > target {
			window = max(target, leastWindow)
		}
		if s.shortenTo(window) {
			return true
		}
		if s.doubtful > 0 {
			return false // one try
		}
	}
	return false
}

// tolerance is by how much a request may exceed a window by our estimate and still be tried.
const tolerance = 1.25

// shortenTo prepares a request for a window; false if it is no shorter than the one that was refused.
func (s *shrinking) shortenTo(window int) bool {
	c := s.call
	before, reserved := c.req, c.answerTokens(s.circuit)
	messages, size, _ := c.whole.Smaller(window)
	c.makeRequest(s.circuit, messages, size, window)
	less := len(messages) < len(before.Messages) || size < before.Size || c.answerTokens(s.circuit) < reserved
	if !less || len(messages) == 0 {
		c.req = before
		return false
	}
	c.router.o.Log.Info().Str("provider", s.circuit.provider.Name()).Int("tokens", size).Int("window", window).
		Msg("the conversation is too long for the provider; it is sent less")
	return true
}

// keepLearnt keeps what was learnt when a shorter request is answered.
func (s *shrinking) keepLearnt() {
	c := s.call
	s.circuit.acceptSize(c.req.Size)
	switch {
	case s.learnt > 0:
		c.router.reportWindow(s.circuit, s.learnt)
	case s.doubtful > 0: // too little is known to keep it for longer than this process lives
		s.circuit.narrowWindow(s.doubtful)
	}
}

// reportWindow reports a window for later processes.
func (r *Router) reportWindow(p *circuit, window int) {
	if r.o.Learn != nil {
		r.o.Learn(p.provider.Name(), window)
	}
}

// large is the size in tokens above which a refusal that nobody understands may be about the length.
const large = 2000

// unusualSize reports whether a request is large, and larger than all that the provider has answered.
func (c *circuit) unusualSize(size int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return size > large && size > c.accepted
}

// acceptSize remembers the size of a request that was answered.
func (c *circuit) acceptSize(size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepted = max(c.accepted, size)
}
