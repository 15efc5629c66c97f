package dispatch

import (
	"context"
	"slices"
	"time"
)

// This file keeps turns that run at their pace when more wait than the machine can take. Only so many turns begin at
// once in a process: a place is taken when a worker takes a session up, and given back when the turn is stored. If the
// machine has too much to do, a beginning takes longer, so fewer begin; those that run meet no more work than that of
// the places. So nothing has to know what the machine can take, or which part of it is short of what.
//
// How many places there are is learnt as TCP Vegas learns its window: a beginning that takes twice as long as when
// there was little to do has waited half of its time, so half of the places only make others wait. A few of those are
// wanted, so that the machine never waits for work. A store that commits many Changes together gets many places, one
// that is short of processor few.

// startPatience is how long a message that is not stored yet waits for a place, so that a burst is stored together with
// its turns. What waits longer is stored without its turn.
const startPatience = 100 * time.Millisecond

// starts are the places of turns that begin. Guarded by Dispatcher.mu.
type starts struct {
	starting int             // places that are taken
	back     []chan struct{} // those who wait for a place and are no longer in the queue, the oldest first
	limit    int             // of places
	fixed    bool            // nothing is learnt
	took     time.Duration   // what the latest beginnings have taken together
	counted  int             // how many these are
	short    bool            // meanwhile no place was free at some moment
	quick    time.Duration   // what one takes when there is little to do; 0 = not known
	since    time.Time       // when that was measured
	probe    int             // more than 0 while it is measured, with fewer places than before
	before   int             // how many places there were before that
}

// learn changes the number of places by what a beginning takes.
func (s *starts) learn(average time.Duration) {
	spare := float64(s.limit) * (1 - float64(s.quick)/float64(average))
	step := max(1, s.limit/8)
	switch {
	case spare > mostSpare:
		s.limit = max(leastPlaces, s.limit-step)
	case spare < leastSpare && s.short:
		s.limit = min(mostPlaces, s.limit+step)
	}
}

const (
	firstPlaces, leastPlaces, mostPlaces = 16, 4, 256
	// leastSpare and mostSpare are how many places may only make others wait.
	leastSpare, mostSpare = 3, 6
	// quickFor is how long it is believed what a beginning takes when there is little to do.
	quickFor = time.Minute
)

// began records what the beginning of a turn has taken, and learns from every so many of them.
func (s *starts) began(took time.Duration, now time.Time) {
	s.took += took
	if s.counted++; s.fixed || s.counted < max(s.limit, firstPlaces) {
		return
	}
	average := max(s.took/time.Duration(s.counted), 1)
	old := s.quick == 0 || now.Sub(s.since) > quickFor
	switch {
	case s.probe > 1: // the first of them began before
		s.probe--
	case s.probe == 1:
		s.quick, s.since, s.limit, s.probe = average, now, s.before, 0
	case old && s.short: // with few places for a moment it takes what it takes when there is little to do
		s.before, s.limit, s.probe = s.limit, leastPlaces, 2
	default:
		if old || average < s.quick {
			s.quick, s.since = average, now
		}
		s.learn(average)
	}
	s.took, s.counted, s.short = 0, 0, false
}

// canStart reports whether a turn from the queue may begin now. d.mu must be held.
func (d *Dispatcher) canStart() bool {
	if d.starting < d.limit && len(d.back) == 0 {
		return true
	}
	d.short = true
	return false
}

// startOf takes a place. d.mu must be held.
func (d *Dispatcher) startOf(j *job) {
	d.starting++
	j.starting, j.since = true, time.Now()
}

// held records that the turn of a job is stored. d.mu must be held.
func (d *Dispatcher) held(j *job) {
	if j.starting {
		d.began(time.Since(j.since), time.Now())
	}
	d.endStart(j)
}

// endStart gives a place back, if the job has one: to who waits for one, else to the queue. d.mu must be held.
func (d *Dispatcher) endStart(j *job) {
	if !j.starting {
		return
	}
	j.starting = false
	d.starting--
	for len(d.back) > 0 && d.starting < d.limit {
		close(d.back[0])
		d.back = d.back[1:]
		d.starting++
	}
	d.nudge(d.work)
}

// stepAside gives the place of a job back while it waits for something that is not of this machine.
func (d *Dispatcher) stepAside(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endStart(j)
}

// stepBack takes a place again, before any session of the queue gets one. It returns false if ctx has ended before.
func (d *Dispatcher) stepBack(ctx context.Context, j *job) bool {
	d.mu.Lock()
	if j.starting {
		d.mu.Unlock()
		return true
	}
	if d.canStart() {
		d.startOf(j)
		d.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	d.back = append(d.back, turn)
	d.mu.Unlock()
	select {
	case <-turn:
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.back, turn); i >= 0 {
		d.back = slices.Delete(d.back, i, i+1)
		d.nudge(d.work) // what waits in the queue was behind it
		return false
	}
	j.starting, j.since = true, time.Now()
	return true
}
