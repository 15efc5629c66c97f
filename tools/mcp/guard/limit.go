package guard

import (
	"slices"
	"sync"
	"time"
)

// window is the span over which calls are counted (seed 001: calls a minute, sliding).
const window = time.Minute

// Limiter bounds the calls of one server in any 60 seconds. Only permitted calls count. Safe for concurrent use; a nil
// Limiter permits everything.
type Limiter struct {
	max   int
	mu    sync.Mutex
	calls []time.Time // permitted within the window, oldest first
}

// NewLimiter makes a limiter of so many calls a minute; 0 or less = no limit (nil).
func NewLimiter(perMinute int) *Limiter {
	if perMinute <= 0 {
		return nil
	}
	return &Limiter{max: perMinute}
}

// Allow counts a call at now and permits it, or says how long to wait until one would be permitted (above 0, at most a
// minute).
func (l *Limiter) Allow(now time.Time) (ok bool, retryAfter time.Duration) {
	if l == nil {
		return true, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	gone := 0
	for i, t := range l.calls {
		if t.After(now) { // the clock was set back: the call was made, at the latest now
			l.calls[i] = now
		} else if now.Sub(t) >= window {
			gone = i + 1
		}
	}
	l.calls = slices.Delete(l.calls, 0, gone)
	if len(l.calls) >= l.max {
		return false, window - now.Sub(l.calls[len(l.calls)-l.max])
	}
	l.calls = append(l.calls, now)
	return true, 0
}

// Policy is what the operator says of the calls of one server ([mcp.servers.policy]). Names are a tool's own or
// qualified.
type Policy struct {
	Allowed *[]string // nil = all; empty = none
	Denied  []string  // wins
}

// Check says whether a tool may be called; nil = yes. The error is policy_blocked.
func (p Policy) Check(server, tool string) *Error {
	named := func(list []string) bool {
		return slices.Contains(list, tool) || slices.Contains(list, Qualified(server, tool))
	}
	switch {
	case named(p.Denied):
		return &Error{
			Code: PolicyBlocked, Server: server, Tool: tool,
			Message: "the policy of this server denies the tool " + tool,
		}
	case p.Allowed != nil && !named(*p.Allowed):
		return &Error{
			Code: PolicyBlocked, Server: server, Tool: tool,
			Message: "the policy of this server does not list the tool " + tool,
		}
	}
	return nil
}

// Limited is the error of a call that the limiter refused: policy_blocked, because it is our own rule (rate_limited
// comes from servers).
func Limited(server, tool string, retryAfter time.Duration) *Error {
	wait := (max(retryAfter, time.Nanosecond) + time.Second - 1).Truncate(time.Second).String() // rounded up
	return &Error{
		Code: PolicyBlocked, Server: server, Tool: tool,
		Message:    "too many calls of the server " + server + " within a minute; the next is possible in " + wait,
		Suggestion: "Wait " + wait + " before you call this server again.",
	}
}
