package chain

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/zephbot/zephbot/tools"
)

// Defaults of [tools.retry].
const (
	defaultRetries   = 2
	defaultRetryBase = 500 * time.Millisecond
	defaultRetryCap  = 5 * time.Second
)

// longestWait is the longest wait that the other side can ask for, if there is no budget.
const longestWait = time.Minute

// RetryOptions configures the stage. The zero value has the defaults, without a budget.
type RetryOptions struct {
	// Max is how often a call is repeated: it runs at most Max+1 times. 0 = 2; negative = never.
	Max int
	// Base is the upper limit of the first wait, doubled each time; 0 = 500 ms.
	Base time.Duration
	// Cap limits every wait that we choose; 0 = 5 s.
	Cap time.Duration
	// Budget limits all waits and repetitions of one call together, from its first failure. 0 = no limit.
	Budget time.Duration
	// Safe reports whether a call that failed with err may be repeated. Nil: calls that only read (for a server: if it
	// is trusted). It is called only for temporary failures, and must not block.
	Safe func(call *tools.Call, err error) bool
	// Rand returns numbers in [0,1); nil = math/rand.
	Rand func() float64
	// Wait waits for d, or returns an error when ctx ends; nil = a timer.
	Wait func(ctx context.Context, d time.Duration) error
	// Now is the clock; nil = time.Now.
	Now func() time.Time
	// Observe receives every call that was repeated: how often, and whether it succeeded in the end. It may be nil and
	// must not block.
	Observe func(tool string, repetitions int, ok bool)
}

// Backoff returns the wait before repetition n, counted from 0: random (in [0,1)) times the smaller of limit and
// base·2^n ("full jitter"). n counts as at most 10.
func Backoff(n int, base, limit time.Duration, random float64) time.Duration {
	ceiling := min(float64(limit), float64(base)*math.Exp2(float64(min(max(n, 0), 10))))
	return time.Duration(random * ceiling)
}

// NewRetry returns the stage that repeats calls that failed for a temporary reason, if that is safe (seed 003:
// rate_limited, server_error, network_error and timeout are repeated with back-off; a call that changes something is
// never repeated once it may have run). It is safe for concurrent use.
//
// An error that leaves the stage is never marked retryable: a model that reads "retryable: true" would wait for us,
// although nothing is repeated any more.
func NewRetry(o RetryOptions) tools.Middleware {
	if o.Max == 0 {
		o.Max = defaultRetries
	}
	if o.Base <= 0 {
		o.Base = defaultRetryBase
	}
	if o.Cap <= 0 {
		o.Cap = defaultRetryCap
	}
	if o.Safe == nil {
		o.Safe = func(call *tools.Call, _ error) bool {
			return call.Def.ReadOnly && (call.Def.Server == "" || call.Def.Trusted)
		}
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.Wait == nil {
		o.Wait = waitTimer
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			return o.runRepeated(ctx, call, next)
		}
	}
}

func waitTimer(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o RetryOptions) runRepeated(ctx context.Context, call *tools.Call, next tools.Handler) (*tools.Result, error) {
	before := *call.Trail
	res, err := next(ctx, call)
	if err == nil {
		return res, nil
	}
	began := o.Now()
	p := retryPlan{}
	for p.repeated < o.Max && o.planRepetition(ctx, call, err, began, &p) {
		p.meant = true
		if call.Progress != nil {
			call.Progress(fmt.Sprintf("trying again in %d s", max(1, int(math.Ceil(p.delay.Seconds())))))
		}
		if o.Wait(ctx, p.delay) != nil {
			break
		}
		p.repeated++
		resetTrail(call.Trail, before)
		res, err = o.repeatCall(ctx, call, next, began)
	}
	if p.repeated > 0 && o.Observe != nil {
		o.Observe(call.Def.Name, p.repeated, err == nil)
	}
	switch {
	case err == nil:
		return res, nil
	case ctx.Err() != nil && p.meant && isTransient(err):
		// it was not repeated (again) because the caller's context ended
		ended := *tools.AsError(ctx.Err())
		ended.Err = errors.Join(ctx.Err(), err)
		return nil, &ended
	default:
		return nil, p.finalError(err)
	}
}

// retryPlan is the state of a call's repetitions.
type retryPlan struct {
	repeated int
	meant    bool          // a repetition was started or waited for
	delay    time.Duration // before the next repetition
	asked    time.Duration // the wait that the other side asked for, if it was too long
}

// planRepetition decides whether the call is repeated, and after which wait.
func (o RetryOptions) planRepetition(
	ctx context.Context, call *tools.Call, err error, began time.Time, p *retryPlan,
) bool {
	if err == nil || ctx.Err() != nil || !isTransient(err) || !o.Safe(call, err) {
		return false
	}
	p.delay = Backoff(p.repeated, o.Base, o.Cap, o.Rand())
	after := retryAfter(err)
	p.delay = max(p.delay, after)
	if left, bounded := o.budgetLeft(began); (bounded && p.delay >= left) ||
		(!bounded && p.delay > max(longestWait, o.Cap)) {
		if p.delay == after {
			p.asked = after
		}
		return false
	}
	return true
}

// budgetLeft returns the rest of the budget.
func (o RetryOptions) budgetLeft(began time.Time) (left time.Duration, bounded bool) {
	return o.Budget - o.Now().Sub(began), o.Budget > 0
}

// repeatCall repeats the call within the budget.
func (o RetryOptions) repeatCall(ctx context.Context, call *tools.Call, next tools.Handler,
	began time.Time,
) (*tools.Result, error) {
	if left, bounded := o.budgetLeft(began); bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(left, 0))
		defer cancel()
	}
	return next(ctx, call)
}

// resetTrail resets what the failed run left in the trail and what the next one may not overwrite. Outgoing requests,
// notices and counts are kept.
func resetTrail(trail *tools.Trail, before tools.Trail) {
	trail.ExitCode = before.ExitCode
	trail.MCPErrorCode = before.MCPErrorCode
	trail.Truncated = before.Truncated
	trail.RolledBack = before.RolledBack
	trail.Summary = before.Summary
}

// isTransient reports whether the failure may be temporary. A refusal never is, whatever its category.
func isTransient(err error) bool {
	e := tools.AsError(err)
	return e.Category.Transient() && !e.Denied()
}

// retryAfter returns how long the other side asks us to wait, according to the error; 0 = not specified.
func retryAfter(err error) time.Duration {
	e, ok := errors.AsType[*tools.Error](err)
	if !ok {
		return 0
	}
	return max(e.RetryAfter, 0)
}

// finalError returns the error for the model: with the number of attempts, and without retryable.
func (p retryPlan) finalError(err error) error {
	if _, ok := errors.AsType[*tools.Pending](err); ok || errors.Is(err, tools.ErrProbed) {
		return err
	}
	e := tools.AsError(err)
	if p.repeated == 0 && p.asked == 0 && !e.Retryable {
		return err
	}
	told := *e
	told.Retryable = false
	if p.repeated > 0 {
		told.Message = fmt.Sprintf("%s (tried %d times)", strings.TrimSuffix(e.Message, "."), p.repeated+1)
	}
	switch {
	case p.asked > 0:
		told.Suggestion = fmt.Sprintf(
			"The other side asks to wait %s before another call. Go on without it, or tell the user.",
			p.asked.Round(time.Second),
		)
	case p.repeated > 0 && e.Suggestion == "" && isTransient(err):
		told.Suggestion = "It was repeated without success. Go on without it, or tell the user what did not work."
	}
	return &told
}
