package route

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
)

// Bounds of what a circuit remembers of the conversations that fail.
const (
	// outage is how many different conversations must fail, with no success between, for the provider to count as down:
	// one or two can be at fault themselves.
	outage = 3
	// mostFailing bounds how many conversations are remembered.
	mostFailing = 1024
)

// circuit counts the conversations that fail with a provider. If different ones do, the provider is down, and calls are
// rejected for a while; after that, one call at a time may probe it, of another conversation than the one whose failure
// came last, if another one is waiting. A conversation that fails alone is given a few tries and then rests alone,
// because what it asks may be the cause. Safe for concurrent use.
type circuit struct {
	provider llm.Provider
	after    int
	rest     time.Duration

	mu       sync.Mutex
	failures int                   // since the last success, of all conversations
	unknown  int                   // of these, without a conversation: each counts as one of its own
	failing  map[string]*suspended // conversations that have failed since their own last success
	down     bool
	until    time.Time // set while down
	opener   string    // conversation of the last failure while down
	waiting  bool      // another conversation was rejected while down
	probing  bool
	why      error // the last failure

	accepted   int  // tokens of the largest request that it has answered
	tokens     int  // size of its window, as configured or as it has said; 0 = unknown
	shown      bool // a refusal has shown how much it takes
	quota      int  // how much it takes at once until quotaUntil; 0 = anything
	quotaUntil time.Time
}

// suspended is a conversation that fails.
type suspended struct {
	failures int       // its own, since its last success
	until    time.Time // set while failures >= circuit.after
	counted  bool      // it has failed since the last success of anybody
	at       time.Time // of the last failure
	why      error     // the last failure
}

// enterCall admits a call, or returns how long the provider must not be called. probe marks the one call that tries
// after the pause; leave must follow. conversation is "" if nobody knows it.
func (c *circuit) enterCall(conversation string, now time.Time) (wait time.Duration, probe bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.failing[conversation]; s != nil && s.failures >= c.after && now.Before(s.until) {
		return s.until.Sub(now), false
	}
	if !c.down {
		return 0, false
	}
	other := conversation != c.opener || conversation == ""
	switch {
	case now.Before(c.until):
		c.waiting = c.waiting || other
		return c.until.Sub(now), false
	case c.probing:
		c.waiting = c.waiting || other
		return time.Second, false // the result of the probe will be known soon
	case !other && c.waiting && now.Before(c.until.Add(c.rest)):
		return min(time.Second, c.until.Add(c.rest).Sub(now)), false // the one that waits goes first
	default:
		c.probing = true
		return 0, true
	}
}

// leaveProbe ends a probe.
func (c *circuit) leaveProbe(probe bool) {
	if !probe {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
}

// isResting reports whether the provider must not be called for a conversation at the moment.
func (c *circuit) isResting(conversation string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.failing[conversation]; s != nil && s.failures >= c.after && now.Before(s.until) {
		return true
	}
	return c.down && now.Before(c.until)
}

// noteFailure notes what kind of failure the last one was, if that shows only after several.
func (c *circuit) noteFailure(conversation string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why = err
	if s := c.failing[conversation]; s != nil {
		s.why = err
	}
}

// pausedError is the error for a call that is not admitted until a moment: a permanent cause stays the same one. The
// cause is the last failure of the conversation if that alone rests, else the provider's.
func (c *circuit) pausedError(conversation string, wait time.Duration, now time.Time) *llm.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	why := c.why
	if s := c.failing[conversation]; s != nil && s.failures >= c.after && now.Before(s.until) {
		why = s.why
	}
	e := &llm.Error{Kind: llm.Unavailable, Provider: c.provider.Name(), RetryAfter: wait}
	switch kind := llm.KindOf(why); kind {
	case llm.Unauthorized, llm.NoCredit, llm.UnknownModel, llm.Region, llm.WrongAddress:
		e.Kind = kind
	default:
	}
	if failed, ok := errors.AsType[*llm.Error](why); ok {
		e.Server, e.Unreached = failed.Server, failed.Unreached
	}
	text := fmt.Sprintf("paused until %s after repeated failures", now.Add(wait).UTC().Format(time.TimeOnly+" MST"))
	if why != nil {
		text += ", because " + why.Error()
	}
	e.Err = errors.New(text)
	return e
}

// recordResult counts the result of one attempt. A rejected request shows that the provider is up. A rate limit shows
// nothing.
func (c *circuit) recordResult(conversation string, err error, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		switch llm.KindOf(err) {
		case llm.RateLimited:
			return
		case llm.Unavailable, llm.Timeout, llm.Truncated, llm.Unauthorized,
			llm.NoCredit, llm.UnknownModel, llm.Region, llm.WrongAddress:
			c.why = err
			c.countFailure(conversation, err, now)
			return
		case llm.Invalid, llm.TooLong, llm.Oversize, llm.Overtime:
		}
	}
	delete(c.failing, conversation)
	if c.failures == 0 {
		return
	}
	c.failures, c.unknown, c.down, c.waiting = 0, 0, false, false
	for _, s := range c.failing {
		s.counted = false
	}
}

// countFailure counts a failure of a conversation, and pauses it or the provider. c.mu is held.
func (c *circuit) countFailure(conversation string, err error, now time.Time) {
	c.failures++
	if conversation == "" {
		c.unknown++
	} else {
		s := c.failing[conversation]
		if s == nil {
			if c.failing == nil {
				c.failing = map[string]*suspended{}
			}
			c.forgetConversation(now)
			s = &suspended{}
			c.failing[conversation] = s
		}
		s.failures, s.counted, s.at, s.why = s.failures+1, true, now, err
		if s.failures >= c.after {
			s.until = now.Add(c.rest)
		}
	}
	different := c.unknown
	for _, s := range c.failing {
		if s.counted {
			different++
		}
	}
	if c.failures >= c.after && different >= min(outage, c.after) {
		c.down, c.until, c.opener, c.waiting = true, now.Add(c.rest), conversation, false
	}
}

// forgetConversation makes room for another conversation: those that failed long ago go first,
// or else any one. c.mu is held.
func (c *circuit) forgetConversation(now time.Time) {
	if len(c.failing) < mostFailing {
		return
	}
	for name, s := range c.failing {
		if now.Sub(s.at) > 10*c.rest {
			delete(c.failing, name)
		}
	}
	for name := range c.failing {
		if len(c.failing) < mostFailing {
			return
		}
		delete(c.failing, name)
	}
}
