package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/llm/fair"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// allLanes limits how many lanes are read when a process starts.
const allLanes = 100_000

// Dispatcher accepts arrivals and works on them. Make it with New and call Run once; Accept may be called from many
// goroutines before and during Run.
type Dispatcher struct {
	parts Parts
	opts  Options

	mu sync.Mutex
	line
	starts
	absent
	pauses
	jobs     map[bot.SessionKey]*job // sessions being worked on
	decided  map[bot.SessionKey]bool // parked sessions that have a decision to act on
	outage   outage
	breaks   map[bot.SessionKey]bool // sessions whose inbox may hold a command that stops the turn in progress
	turns    context.Context         //nolint:containedctx // parent of turns that begin; nil before Run and once it ends
	kept     *kept
	arrivals arrivals
	recent   recent
	seen     map[int64]time.Time // when express arrivals left to another process were first seen; for the express loop
	// sessions left to the process that queued them, and since when
	strangers map[bot.SessionKey]time.Time
	started   bool // the lanes left by an earlier process have been looked at; for the goroutine of Run

	gone    chan struct{} // closed by Abandon
	once    sync.Once     // closes gone
	work    chan struct{} // signals that the queue may not be empty
	express chan struct{} // signals that express arrivals may be waiting
	wg      sync.WaitGroup
}

// line holds the sessions that wait for a worker. Guarded by Dispatcher.mu.
type line struct {
	queue   fair.Crowd[bot.SessionKey]   // sessions to look at, by party and chat; it also counts the busy sessions of each party
	urgent  []bot.SessionKey             // sessions to look at before them: their turns have begun already
	queued  map[bot.SessionKey]*waiter   // members of queue and urgent
	party   map[bot.SessionKey]string    // of queued sessions whose key does not contain it
	came    int64                        // how many have been queued
	turnout turnout                      // of queue and urgent
	weight  int64                        // estimated bytes that the running turns hold
	average int64                        // estimated bytes that the next turn will hold
	over    map[bot.SessionKey]time.Time // when the turn ended that the waiting messages of a session were behind
	retry   map[bot.SessionKey]bool      // sessions to look at again in the next sweep, because the store failed
}

// absent holds the chats that cannot be reached. Guarded by Dispatcher.mu.
type absent struct {
	lost    map[string]time.Time      // unreachable chats, by key, and since when
	leaving map[bot.SessionKey]string // turns that are being ended because their chat is unreachable, by session
}

// job is a session that a worker is busy with.
type job struct {
	again bool // the session was woken while it was busy: look again afterwards
	// it has a place among those that begin, until its turn is stored
	starting bool
	since    time.Time               // it has it
	told     <-chan struct{}         // closed when nothing is being shown any more that says that it waits; nil = nothing was
	alone    bool                    // when the turn began, no other arrival was waiting; later arrivals set again
	cancel   context.CancelCauseFunc // cancels the turn; nil between turns
	held     bool                    // the turn holds its lane; before that, its beginning is still being stored
	broken   bool                    // a command that may stop the turn has arrived
	// closed when it is known whether the last turn that began has been stored
	beginning <-chan struct{}
	// the arrival whose files are being read, before its turn begins; 0 = none
	reading  int64
	followed bool // a message was stored for the session while the turn ran
	party    string
	weight   int64
	lease    bot.Lease
	turn     string
}

// New returns a Dispatcher.
func New(parts Parts, opts Options) *Dispatcher {
	parts.Decoders = withOwn(parts.Decoders)
	parts, opts = patiently(parts, opts.withDefaults())
	return &Dispatcher{
		parts: parts, opts: opts,
		line: line{
			queue: fair.Crowd[bot.SessionKey]{Most: opts.PerCaller}, queued: map[bot.SessionKey]*waiter{},
			party: map[bot.SessionKey]string{}, average: firstGuess, over: map[bot.SessionKey]time.Time{}, retry: map[bot.SessionKey]bool{},
		},
		starts: starts{limit: cmp.Or(opts.Starts, firstPlaces), fixed: opts.Starts > 0},
		absent: absent{lost: map[string]time.Time{}, leaving: map[bot.SessionKey]string{}},
		pauses: pauses{paused: map[bot.SessionKey]*time.Timer{}, awaited: map[bot.SessionKey]lookout{}},
		jobs:   map[bot.SessionKey]*job{}, decided: map[bot.SessionKey]bool{}, breaks: map[bot.SessionKey]bool{},
		seen: map[int64]time.Time{}, strangers: map[bot.SessionKey]time.Time{}, kept: newKept(keptBytes),
		work: make(chan struct{}, 1), express: make(chan struct{}, 1), gone: make(chan struct{}),
	}
}

// Run works until ctx ends, then gives running turns Options.Grace to finish, and returns when all its goroutines have
// ended. Unfinished turns are resumed by the next process.
func (d *Dispatcher) Run(ctx context.Context) error {
	turns, endTurns := context.WithCancelCause(context.WithoutCancel(ctx))
	defer endTurns(nil)
	ctx, end := context.WithCancel(ctx)
	defer end()
	d.wg.Go(func() {
		select {
		case <-d.gone:
			endTurns(bot.ErrLost)
			end()
		case <-turns.Done():
		}
	})
	d.wg.Go(func() { d.expressLoop(ctx) })
	d.wg.Go(func() { d.keepLeases(turns) })
	d.wg.Go(func() { d.tellLoop(ctx) })
	d.nudge(d.express)
	d.admit(turns, true)
	d.sweep(ctx)
	ticker := time.NewTicker(d.opts.Sweep)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-d.work:
			d.start(turns)
		case <-ticker.C:
			d.sweep(ctx)
			d.start(turns)
		}
	}
	d.admit(turns, false)
	d.endPauses()
	d.endReadings()
	d.drain(endTurns)
	return nil
}

// Abandon ends Run at once. It is for a process that can no longer store anything because others have taken over its
// work. It may be called at any time.
func (d *Dispatcher) Abandon() { d.once.Do(func() { close(d.gone) }) }

// admit sets whether turns may begin directly when their messages arrive.
func (d *Dispatcher) admit(turns context.Context, open bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.turns = nil; open {
		d.turns = turns
	}
}

// drain gives running turns at most the grace time, then cancels them and waits until every goroutine has ended.
func (d *Dispatcher) drain(endTurns context.CancelCauseFunc) {
	grace := time.NewTimer(d.opts.Grace)
	defer grace.Stop()
	for waiting := true; waiting && d.Working() > 0; {
		select {
		case <-d.work: // a session has ended or a new one waits: both are left to the next process
		case <-d.gone:
			waiting = false
		case <-grace.C:
			d.parts.Log.Warn().Int("turns", d.Working()).Msg("turns are interrupted; the next process resumes them")
			waiting = false
		}
	}
	endTurns(context.Canceled)
	d.wg.Wait()
}

// Working returns the number of sessions that workers of this process are busy with.
func (d *Dispatcher) Working() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.jobs)
}

// Queued returns the number of sessions that wait for a worker of this process.
func (d *Dispatcher) Queued() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.queued)
}

// Wake asks the dispatcher to look at a session.
func (d *Dispatcher) Wake(session bot.SessionKey) { d.enqueue(session) }

func (d *Dispatcher) enqueue(session bot.SessionKey) {
	d.mu.Lock()
	switch j := d.jobs[session]; {
	case j != nil:
		j.again = true
	default:
		d.push(session)
	}
	d.mu.Unlock()
	d.nudge(d.work)
}

func (d *Dispatcher) nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// decide records that a parked session has a decision to act on, and wakes it.
func (d *Dispatcher) decide(session bot.SessionKey) {
	d.mu.Lock()
	d.decided[session] = true
	d.mu.Unlock()
	d.enqueue(session)
}

// stop cancels a turn if it runs in this process, and wakes the session so that a parked turn is ended too. An empty
// turn means the current one.
func (d *Dispatcher) stop(session bot.SessionKey, turn string, cause error) {
	d.mu.Lock()
	if j := d.jobs[session]; j != nil && j.cancel != nil && (turn == "" || j.turn == turn) {
		j.cancel(d.stopCause(session, j.turn, cause))
	}
	d.mu.Unlock()
	d.enqueue(session)
}

// stopCause returns the cause with which a turn is cancelled. d.mu must be held.
func (d *Dispatcher) stopCause(session bot.SessionKey, turn string, cause error) error {
	if d.leaving[session] == turn {
		return agent.ErrGone
	}
	return cause
}

// later schedules a session for the next sweep, after a failure that may be temporary.
func (d *Dispatcher) later(session bot.SessionKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.retry[session] = true
}

// sweep finds work that no event announced: turns left by a process that died, retries that are due, decisions made in
// another replica, expired questions.
func (d *Dispatcher) sweep(ctx context.Context) {
	if !d.started {
		d.started = d.inherit(ctx)
	}
	now := d.parts.Now()
	effects, err := d.expired(ctx, now)
	d.report(ctx, err, "expire approvals")
	for _, e := range effects {
		_, err := d.parts.Store.Apply(ctx, &e.Change)
		if err != nil && !errors.Is(err, bot.ErrDecided) {
			d.report(ctx, err, "expire an approval")
			continue
		}
		d.after(e)
	}
	again, known := d.known()
	for _, session := range again {
		d.enqueue(session)
	}
	ready, err := d.parts.Store.Ready(ctx, d.opts.Channel, d.opts.Bot, now, 4*d.opts.Concurrency+known)
	d.report(ctx, err, "look for work")
	for _, session := range d.strange(ready, now) {
		d.enqueue(session)
	}
	d.nudge(d.express)
}

// expired expires open questions and recovers from a panic, so that one broken question cannot end the sweep.
func (d *Dispatcher) expired(ctx context.Context, now time.Time) (effects []turn.Effect, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.parts.Log.Error().Interface("panic", p).Bytes("stack", debug.Stack()).Msg("expiry panicked")
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return d.parts.Approvals.Expired(ctx, now)
}

// known takes the sessions to look at again, and counts those that this process is busy with, because Ready lists them
// too.
func (d *Dispatcher) known() (again []bot.SessionKey, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for session := range d.retry {
		again = append(again, session)
	}
	slices.Sort(again)
	clear(d.retry)
	return again, len(d.jobs) + len(d.queued) + len(again)
}

// inherit looks once at every turn that is in progress when the process starts. No list has all of them: a parked turn
// may have a decision that was not acted on while another question is open, or a waiting command that should have
// stopped it, and a lease of an earlier run under the same name may still be valid.
func (d *Dispatcher) inherit(ctx context.Context) bool {
	lanes, err := d.parts.Store.Lanes(ctx, d.opts.Channel, d.opts.Bot, allLanes)
	if err != nil {
		d.report(ctx, err, "read the turns in progress")
		return false
	}
	for i := range lanes {
		switch {
		case lanes[i].Turn == "":
		case lanes[i].State == bot.Parked:
			d.decide(lanes[i].Session)
		default:
			d.enqueue(lanes[i].Session)
		}
	}
	return true
}

// report logs an error of a loop that continues. The end of ctx is not an error.
func (d *Dispatcher) report(ctx context.Context, err error, what string) {
	if err == nil || ctx.Err() != nil {
		return
	}
	d.parts.Log.Error().Err(err).Str("doing", what).Msg("the store failed")
	d.unstored(ctx, nil, err)
}

// after does what follows from an Effect that was stored.
func (d *Dispatcher) after(e turn.Effect) {
	for _, s := range e.Stop {
		d.stop(s, e.TurnToStop(s), agent.ErrStopped)
	}
	for _, s := range e.Decided {
		d.decide(s)
	}
	for _, s := range e.Wake {
		d.enqueue(s)
	}
	for _, row := range e.Change.Send {
		d.parts.Outbox.Wake(row.Place)
	}
}

// stopped reports whether the turn in progress was asked to stop. A request that was meant for an earlier turn does not
// count.
func stopped(lane *bot.Lane) bool { return lane.Turn != "" && lane.Stop == lane.Turn }

func (d *Dispatcher) observe(o Observation) {
	if d.parts.Observe != nil {
		d.parts.Observe(o)
	}
}
