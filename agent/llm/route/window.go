package route

import (
	"context"
	"errors"

	"github.com/zephbot/zephbot/agent/llm"
)

// guess is the share of a window that is tried next if a provider does not say how much it takes.
const guess = 0.6

// leastWindow is the smallest window that is believed: below it, nothing sensible can be asked.
const leastWindow = 512

// WindowFor implements llm.Windowed.
func (r *Router) WindowFor(prefer string) int { return r.order(prefer)[0].window() }

// window returns the size of the provider's window; 0 = unknown.
func (c *circuit) window() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tokens
}

// narrow remembers that the provider takes no more than so many tokens. It never believes that its window is larger than
// it was.
func (c *circuit) narrow(tokens int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokens == 0 || tokens < c.tokens {
		c.tokens = max(tokens, leastWindow)
	}
}

// errTooLong is the cause if nothing can be left out any more.
var errTooLong = errors.New("the conversation does not fit into its window, whatever is left out")

// shorter is how often a provider that finds the conversation too long is sent less of it: a window includes the answer,
// and nobody knows how much of it a provider leaves for that.
const shorter = 2

// fitted calls a provider with as much of the conversation as fits into its window, and again with less if the provider
// finds that too long.
func (c *call) fitted(ctx context.Context, p *circuit) (*llm.Response, error) {
	window := c.whole.Window
	if own := p.window(); own > 0 && (window == 0 || own < window) {
		window = own
	}
	for times := 0; ; times++ {
		if !c.fit(p, window) {
			return nil, c.errs[len(c.errs)-1]
		}
		res, err := c.try(ctx, p)
		if err == nil || c.final || llm.KindOf(err) != llm.TooLong {
			return res, err
		}
		if window = taken(err, window); window == 0 || times == shorter {
			return nil, err
		}
		p.narrow(window)
		c.router.o.Log.Info().Str("provider", p.provider.Name()).Int("tokens", window).
			Msg("the conversation is too long for the provider; it is sent less")
	}
}

// taken returns how much a provider takes that found a conversation for a window too long: what it said, unless that is
// no less, because tokens are estimated. 0 = nobody knows.
func taken(err error, window int) int {
	e, ok := errors.AsType[*llm.Error](err)
	if ok && e.Window > 0 && (window == 0 || e.Window < window) {
		return max(e.Window, leastWindow)
	}
	if window <= leastWindow {
		return 0
	}
	return max(int(float64(window)*guess), leastWindow)
}

// fit sets the request for a window; false if the conversation does not fit.
func (c *call) fit(p *circuit, window int) bool {
	c.req = c.whole
	if window == 0 || window == c.whole.Window || c.whole.Smaller == nil {
		return true
	}
	messages, ok := c.whole.Smaller(window)
	if !ok {
		c.failed(&llm.Error{Kind: llm.TooLong, Provider: p.provider.Name(), Err: errTooLong})
		return false
	}
	smaller := *c.whole
	smaller.Messages, smaller.Window = messages, window
	c.req = &smaller
	return true
}
