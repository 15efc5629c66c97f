package route

import (
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
)

// circuit counts a provider's consecutive failures. After too many, it rejects calls for a while. After that, one call
// at a time may probe the provider. Safe for concurrent use.
type circuit struct {
	provider llm.Provider
	after    int
	rest     time.Duration

	mu       sync.Mutex
	failures int
	until    time.Time // set while failures >= after
	probing  bool
	tokens   int // size of its window, as configured or as it has said; 0 = unknown
}

// enter admits a call, or returns how long the provider must not be called. probe marks the one call that tries after
// the pause; leave must follow.
func (c *circuit) enter(now time.Time) (wait time.Duration, probe bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.failures < c.after:
		return 0, false
	case now.Before(c.until):
		return c.until.Sub(now), false
	case c.probing:
		return time.Second, false // the result of the probe will be known soon
	default:
		c.probing = true
		return 0, true
	}
}

// leave ends a probe.
func (c *circuit) leave(probe bool) {
	if !probe {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
}

// resting reports whether the provider must not be called at the moment.
func (c *circuit) resting(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failures >= c.after && now.Before(c.until)
}

// record counts the result of one attempt. A rejected request shows that the provider is up. A rate limit shows
// nothing.
func (c *circuit) record(err error, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		switch llm.KindOf(err) {
		case llm.RateLimited:
			return
		case llm.Unavailable, llm.Timeout, llm.Truncated, llm.Unauthorized, llm.NoCredit, llm.UnknownModel, llm.Region:
			c.failures++
			if c.failures >= c.after {
				c.until = now.Add(c.rest)
			}
			return
		case llm.Invalid, llm.TooLong, llm.Oversize, llm.Overtime:
		}
	}
	c.failures = 0
}
