package guard

import (
	"slices"
	"sync"
	"time"

	"github.com/zephbot/zephbot/policy/reason"
)

// window is the time over which calls are counted (seed 001: a sliding window of a minute).
const window = time.Minute

// Limiter limits the calls of one server in any 60 seconds. Only permitted calls count. It is safe for concurrent use;
// a nil Limiter permits everything.
type Limiter struct {
	max   int
	mu    sync.Mutex
	calls []time.Time // permitted within the window, oldest first
}

// NewLimiter returns a limiter of perMinute calls; for 0 or less it returns nil, which is no limit.
func NewLimiter(perMinute int) *Limiter {
	if perMinute <= 0 {
		return nil
	}
	return &Limiter{max: perMinute}
}

// Allow counts and permits a call at now, or returns how long to wait until one would be permitted (above 0, at most a
// minute).
func (l *Limiter) Allow(now time.Time) (ok bool, retryAfter time.Duration) {
	if l == nil {
		return true, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	gone := 0
	for i, t := range l.calls {
		if t.After(now) { // the clock was set back: assume that the call was made now
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

// Policy is the operator's policy for the calls of one server ([mcp.servers.policy]). Names can be a tool's own or
// qualified.
type Policy struct {
	Allowed *[]string // nil = all; empty = none
	Denied  []string  // takes precedence
}

// Check returns nil if a tool may be called, or else a policy_blocked error.
func (p Policy) Check(server, tool string) *Error {
	named := func(list []string) bool {
		return slices.Contains(list, tool) || slices.Contains(list, Qualified(server, tool))
	}
	switch {
	case named(p.Denied):
		return Refused(server, tool, reason.New(reason.ServerToolDenied, tool))
	case p.Allowed != nil && !named(*p.Allowed):
		return Refused(server, tool, reason.New(reason.ServerToolUnlisted, tool))
	}
	return nil
}

// Limited returns the error of a call that the limiter refused. Its code is policy_blocked because the rule is ours;
// rate_limited comes from servers.
func Limited(server, tool string, retryAfter time.Duration) *Error {
	wait := (max(retryAfter, time.Nanosecond) + time.Second - 1).Truncate(time.Second).String() // rounded up
	e := Refused(server, tool, reason.New(reason.ServerCallsFull, server, wait))
	e.Suggestion = "Wait " + wait + " before you call this server again."
	return e
}
