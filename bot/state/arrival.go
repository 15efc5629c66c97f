package state

import (
	"time"

	"github.com/zephbot/zephbot/bot"
)

// ArrivalState is whether an arrival waits, or how it ended.
type ArrivalState string

// States of an arrival.
const (
	Waiting ArrivalState = "waiting"
	Done    ArrivalState = "done"
	Dead    ArrivalState = "dead" // given up
)

// Arrival is the part of a stored arrival that changes.
type Arrival struct {
	State    ArrivalState
	Attempts int
	Problem  string
	Finished time.Time // when it was first finished or given up; zero = it waits
}

// Finish finishes an arrival, including a dead letter. Finishing it again changes nothing.
func (a Arrival) Finish(now time.Time) Arrival {
	a.State = Done
	if a.Finished.IsZero() {
		a.Finished = now
	}
	return a
}

// Retry counts a failed attempt; an arrival that no longer waits is not changed.
func (a Arrival) Retry(problem string) Arrival {
	if a.State == Waiting {
		a.Attempts++
		a.Problem = problem
	}
	return a
}

// GiveUp makes it a dead letter; an arrival that no longer waits is not changed.
func (a Arrival) GiveUp(problem string, now time.Time) Arrival {
	if a.State == Waiting {
		a.State, a.Problem, a.Finished = Dead, problem, now
	}
	return a
}

func keyOf(a *bot.Arrival) ArrivalKey { return ArrivalKey{a.Channel, a.Bot, a.ID} }
