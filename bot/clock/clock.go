// Package clock waits for times of the wall clock. A timer of Go counts the time during which the machine runs: it
// stands still while the machine is suspended, and does not know that somebody has set the clock.
package clock

import (
	"cmp"
	"context"
	"time"
)

// Look is how often the clock is looked at while a time is awaited.
const Look = time.Second

// Left returns how long it is from now until a time: by the wall clock, or by the clock of the running machine if both
// times are known by it and it is there sooner. So a clock that is set forward shortens a wait, and one that is set
// back does not lengthen one that began before.
func Left(at, now time.Time) time.Duration {
	return min(at.Sub(now), at.Round(0).Sub(now.Round(0)))
}

// Until waits until now returns a time that is not before at, and returns true; false if ctx ended or wake got a value
// first (nil = nothing wakes it). It looks at the clock at least every look; 0 = Look.
func Until(ctx context.Context, now func() time.Time, at time.Time, look time.Duration, wake <-chan struct{}) bool {
	look = cmp.Or(look, Look)
	left := Left(at, now())
	timer := time.NewTimer(max(0, min(left, look)))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-wake:
			return false
		case <-timer.C:
		}
		if left = Left(at, now()); left <= 0 {
			return ctx.Err() == nil
		}
		timer.Reset(min(left, look))
	}
}
