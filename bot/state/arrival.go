package state

import (
	"time"

	"github.com/zephbot/zephbot/bot"
)

// ArrivalState says whether an arrival still waits.
type ArrivalState string

// States of an arrival.
const (
	Waiting ArrivalState = "waiting"
	Done    ArrivalState = "done"
	Dead    ArrivalState = "dead" // given up
)

// Arrival is what changes about a stored arrival.
type Arrival struct {
	State    ArrivalState
	Attempts int
	Problem  string
	Finished time.Time // when it was done or given up first; zero = it waits
}

// Finish ends an arrival, a dead letter too. Again changes nothing.
func (a Arrival) Finish(now time.Time) Arrival {
	a.State = Done
	if a.Finished.IsZero() {
		a.Finished = now
	}
	return a
}

// Retry counts a handling that failed; an arrival that waits no more stays as it is.
func (a Arrival) Retry(problem string) Arrival {
	if a.State == Waiting {
		a.Attempts++
		a.Problem = problem
	}
	return a
}

// GiveUp makes a dead letter; an arrival that waits no more stays as it is.
func (a Arrival) GiveUp(problem string, now time.Time) Arrival {
	if a.State == Waiting {
		a.State, a.Problem, a.Finished = Dead, problem, now
	}
	return a
}

func keyOf(a *bot.Arrival) ArrivalKey { return ArrivalKey{a.Channel, a.Bot, a.ID} }
