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
	lost map[string]time.Time // chats that cannot be reached, by key, and since when
	// turns that are being ended because their chat cannot be reached, by session
	leaving map[bot.SessionKey]string
	paused  map[bot.SessionKey]*time.Timer // sessions that are looked at again at a certain time
	awaited map[bot.SessionKey]lookout     // arrivals that more may follow
	jobs    map[bot.SessionKey]*job        // sessions being worked on
	decided map[bot.SessionKey]bool        // parked sessions that have a decision to act on
	outage  outage
	breaks  map[bot.SessionKey]bool // sessions whose inbox may hold a command that stops the turn in progress
	//nolint:containedctx // parent of turns that begin; nil before Run and once it ends
	turns    context.Context
	kept     *kept
	arrivals arrivals
	recent   recent
	life     life
	seen     map[int64]time.Time // when express arrivals that are left were first seen; for the express loop
	// sessions left to the process that queued them, and since when
	strangers map[bot.SessionKey]time.Time
	started   bool // the lanes left by an earlier process have been looked at; for the goroutine of Run
	rest      int  // sweeps that do not look for work; for the goroutine of Run

	gone    chan struct{} // closed by Abandon
	once    sync.Once     // closes gone
	work    chan struct{} // signals that the queue may not be empty
	express chan struct{} // signals that express arrivals may be waiting
	wg      sync.WaitGroup
}

// New returns a Dispatcher.
func New(parts Parts, opts Options) *Dispatcher {
	parts.Decoders = withOwn(parts.Decoders)
	parts, opts = withPatientGuard(parts, opts.withDefaults())
	return &Dispatcher{
		parts: parts, opts: opts,
		line: line{
			queue:   fair.Crowd[bot.SessionKey]{Most: opts.PerCaller},
			queued:  map[bot.SessionKey]*waiter{},
			party:   map[bot.SessionKey]string{},
			average: firstGuess,
			over:    map[bot.SessionKey]time.Time{},
			retry:   map[bot.SessionKey]bool{},
		},
		starts:  starts{limit: cmp.Or(opts.Starts, firstPlaces), fixed: opts.Starts > 0},
		lost:    map[string]time.Time{},
		leaving: map[bot.SessionKey]string{},
		paused:  map[bot.SessionKey]*time.Timer{},
		awaited: map[bot.SessionKey]lookout{},
		jobs:    map[bot.SessionKey]*job{}, decided: map[bot.SessionKey]bool{}, breaks: map[bot.SessionKey]bool{},
		seen: map[int64]time.Time{}, strangers: map[bot.SessionKey]time.Time{}, kept: newKept(keptBytes(opts.Memory)),
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
	d.wg.Go(func() { d.lifeLoop(ctx) })
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
	d.drainTurns(endTurns)
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

// drainTurns gives running turns at most the grace time, then cancels them and waits until every goroutine has ended.
func (d *Dispatcher) drainTurns(endTurns context.CancelCauseFunc) {
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

// sweep finds work that no event announced: turns left by a process that died, retries that are due, decisions made in
// another replica, expired questions.
func (d *Dispatcher) sweep(ctx context.Context) {
	if !d.started {
		d.started = d.inheritTurns(ctx)
	}
	now := d.parts.Now()
	effects, err := d.expireQuestions(ctx, now)
	d.report(ctx, err, "expire approvals")
	for _, e := range effects {
		_, err := d.parts.Store.Apply(ctx, &e.Change)
		if err != nil && !errors.Is(err, bot.ErrDecided) {
			d.report(ctx, err, "expire an approval")
			continue
		}
		d.actOnEffect(e)
	}
	again, known := d.knownSessions()
	for _, session := range again {
		d.enqueue(session)
	}
	d.nudge(d.express)
	if d.rest > 0 {
		d.rest--
		return
	}
	ready, err := d.parts.Store.Ready(ctx, d.opts.Channel, d.opts.Bot, now, 4*d.opts.Concurrency+known)
	d.report(ctx, err, "look for work")
	d.rest = min(len(ready)/manyReady, longRest)
	for _, session := range d.strangeSessions(ready, now) {
		d.enqueue(session)
	}
}

// While there is much work, the list of it is long, and nearly all of it is known: it is then read in fewer sweeps, one
// less for each manyReady sessions, of which longRest are left out at most.
const (
	manyReady = 256
	longRest  = 3
)

// expireQuestions expires open questions and recovers from a panic, so that one broken question cannot end the sweep.
func (d *Dispatcher) expireQuestions(ctx context.Context, now time.Time) (effects []turn.Effect, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.parts.Log.Error().Interface("panic", p).Bytes("stack", debug.Stack()).Msg("expiry panicked")
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return d.parts.Approvals.Expired(ctx, now)
}

// knownSessions takes the sessions to look at again, and counts those that this process is busy
// with, because Ready lists them too.
func (d *Dispatcher) knownSessions() (again []bot.SessionKey, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for session := range d.retry {
		again = append(again, session)
	}
	slices.Sort(again)
	clear(d.retry)
	return again, len(d.jobs) + len(d.queued) + len(again)
}

// inheritTurns looks once at every turn that is in progress when the process starts. No list has all of them: a parked
// turn may have a decision that was not acted on while another question is open, or a waiting command that should have
// stopped it, and a lease of an earlier run under the same name may still be valid.
func (d *Dispatcher) inheritTurns(ctx context.Context) bool {
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

func (d *Dispatcher) observe(o Observation) {
	if d.parts.Observe != nil {
		d.parts.Observe(o)
	}
}
