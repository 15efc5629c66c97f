package dispatch

import (
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

// allLanes is how many lanes are looked at when a process starts.
const allLanes = 100_000

// Dispatcher accepts arrivals and works on them. Make it with New, call Run once; Accept may be called from many
// goroutines before and during Run.
type Dispatcher struct {
	parts Parts
	opts  Options

	mu sync.Mutex
	line
	absent
	jobs    map[bot.SessionKey]*job // sessions being worked on
	decided map[bot.SessionKey]bool // parked sessions that have a decision to act on
	outage  outage
	breaks  map[bot.SessionKey]bool // sessions whose inbox may hold a command that stops the turn in progress
	turns   context.Context         //nolint:containedctx // of turns that begin; nil before Run and from its end on
	kept    *kept
	recent  recent
	// express arrivals that are left to another process, by when they were seen first; of the express loop
	seen map[int64]time.Time
	// the lanes that an earlier process left behind have been looked at; of the goroutine of Run
	started bool

	gone    chan struct{} // closed by Abandon
	once    sync.Once     // of gone
	work    chan struct{} // the queue may have something
	express chan struct{} // express arrivals may be there
	wg      sync.WaitGroup
}

// line is who waits for a worker. Guarded by Dispatcher.mu.
type line struct {
	queue   fair.Queue[bot.SessionKey] // sessions to look at, by party; it counts the sessions in work of each
	queued  map[bot.SessionKey]bool    // members of queue
	party   map[bot.SessionKey]string  // of queued sessions whose key does not say it
	weight  int64                      // bytes that the turns in work are expected to hold
	average int64                      // … that the next one is expected to hold
	// sessions to look at again in the next sweep: the store failed, nothing else would tell of them
	retry map[bot.SessionKey]bool
}

// absent are chats that nothing reaches. Guarded by Dispatcher.mu.
type absent struct {
	lost    map[string]time.Time      // chats, by key, that nothing reaches any more, since when
	leaving map[bot.SessionKey]string // turn, by session, that ends because of that
}

// job is a session in work.
type job struct {
	again  bool                    // looked for meanwhile: look again after
	alone  bool                    // when its turn began, no other arrival waited: what came since has set again
	cancel context.CancelCauseFunc // of the turn; nil between turns
	held   bool                    // the turn has the lane; before, its beginning is on its way to the disk
	broken bool                    // meanwhile a command came that may stop the turn
	party  string
	weight int64
	lease  bot.Lease
	turn   string
}

// New makes a Dispatcher.
func New(parts Parts, opts Options) *Dispatcher {
	opts = opts.withDefaults()
	return &Dispatcher{
		parts: parts, opts: opts,
		line: line{
			queue: fair.Queue[bot.SessionKey]{Most: opts.PerCaller}, queued: map[bot.SessionKey]bool{}, party: map[bot.SessionKey]string{}, average: firstGuess, retry: map[bot.SessionKey]bool{},
		},
		absent: absent{lost: map[string]time.Time{}, leaving: map[bot.SessionKey]string{}},
		jobs:   map[bot.SessionKey]*job{}, decided: map[bot.SessionKey]bool{}, breaks: map[bot.SessionKey]bool{}, seen: map[int64]time.Time{}, kept: newKept(keptBytes),
		work: make(chan struct{}, 1), express: make(chan struct{}, 1), gone: make(chan struct{}),
	}
}

// Run works until ctx ends, then lets running turns go on for Options.Grace and returns when all its goroutines are
// gone. What is unfinished then is finished by the next process.
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
	d.drain(endTurns)
	return nil
}

// Abandon ends Run at once: other processes have gone on with what this one had, and it can store nothing any more. May
// be called at any time.
func (d *Dispatcher) Abandon() { d.once.Do(func() { close(d.gone) }) }

// admit says whether turns begin as their messages arrive.
func (d *Dispatcher) admit(turns context.Context, open bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.turns = nil; open {
		d.turns = turns
	}
}

// drain lets running turns go on for at most the grace time, then ends them and waits until every goroutine is gone.
func (d *Dispatcher) drain(endTurns context.CancelCauseFunc) {
	grace := time.NewTimer(d.opts.Grace)
	defer grace.Stop()
	for waiting := true; waiting && d.Working() > 0; {
		select {
		case <-d.work: // a session has ended, or another has come: it is left to the next process
		case <-d.gone:
			waiting = false
		case <-grace.C:
			d.parts.Log.Warn().Int("turns", d.Working()).Msg("turns are interrupted; the next start goes on with them")
			waiting = false
		}
	}
	endTurns(context.Canceled)
	d.wg.Wait()
}

// Working is the number of sessions in work in this process.
func (d *Dispatcher) Working() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.jobs)
}

// Queued is the number of sessions that wait for a worker in this process.
func (d *Dispatcher) Queued() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queue.Len()
}

// Wake makes the dispatcher look at a session.
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

// decide notes that a parked session has something to act on, and wakes it.
func (d *Dispatcher) decide(session bot.SessionKey) {
	d.mu.Lock()
	d.decided[session] = true
	d.mu.Unlock()
	d.enqueue(session)
}

// stop cancels a turn, if it runs here, and wakes the session, so that a parked turn is ended too. The turn "" is
// whichever runs.
func (d *Dispatcher) stop(session bot.SessionKey, turn string) {
	d.mu.Lock()
	if j := d.jobs[session]; j != nil && j.cancel != nil && (turn == "" || j.turn == turn) {
		j.cancel(d.stopCause(session, j.turn))
	}
	d.mu.Unlock()
	d.enqueue(session)
}

// stopCause says why a turn is stopped. d.mu is held.
func (d *Dispatcher) stopCause(session bot.SessionKey, turn string) error {
	if d.leaving[session] == turn {
		return agent.ErrGone
	}
	return agent.ErrStopped
}

// later makes the next sweep look at a session: something failed that time may mend.
func (d *Dispatcher) later(session bot.SessionKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.retry[session] = true
}

// sweep finds work that no hint told of: left by a process that died, due after a wait, decided by another replica,
// expired.
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
	for _, session := range ready {
		d.mu.Lock()
		busy := d.jobs[session] != nil || d.queued[session]
		d.mu.Unlock()
		if !busy {
			d.enqueue(session)
		}
	}
	d.nudge(d.express)
}

// expired guards the sweep against a broken question.
func (d *Dispatcher) expired(ctx context.Context, now time.Time) (effects []turn.Effect, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.parts.Log.Error().Interface("panic", p).Bytes("stack", debug.Stack()).Msg("expiry panicked")
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return d.parts.Approvals.Expired(ctx, now)
}

// known takes the sessions to look at again, and counts those this process has in hand: Ready lists them too.
func (d *Dispatcher) known() (again []bot.SessionKey, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for session := range d.retry {
		again = append(again, session)
	}
	slices.Sort(again)
	clear(d.retry)
	return again, len(d.jobs) + d.queue.Len() + len(again)
}

// inherit looks once at every turn that is in progress when the process starts. No list tells of all of them: a parked
// turn may have a decision that nobody acted on while another question is open, or a command behind it that was to stop
// it, and a lease of this very process may stand.
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

// report logs an error of a loop that goes on; the end of ctx is no error.
func (d *Dispatcher) report(ctx context.Context, err error, what string) {
	if err == nil || ctx.Err() != nil {
		return
	}
	d.parts.Log.Error().Err(err).Str("doing", what).Msg("the store failed")
	d.unstored(ctx, nil, err)
}

// after does what follows from an Effect that is in the store.
func (d *Dispatcher) after(e turn.Effect) {
	for _, s := range e.Stop {
		d.stop(s, e.TurnToStop(s))
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

// keepLeases extends the leases of turns in progress and notices when another replica was asked to stop one.
func (d *Dispatcher) keepLeases(ctx context.Context) {
	leases, stops := time.NewTicker(d.opts.Lease/3), time.NewTicker(d.opts.Sweep)
	defer leases.Stop()
	defer stops.Stop()
	for {
		act := d.keep
		select {
		case <-ctx.Done():
			return
		case <-leases.C:
		case <-stops.C:
			act = d.heed
		}
		for _, h := range d.holders() {
			act(ctx, h)
		}
	}
}

type holder struct {
	lease  bot.Lease
	turn   string
	cancel context.CancelCauseFunc
}

func (d *Dispatcher) holders() []holder {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []holder
	for _, j := range d.jobs {
		if j.cancel != nil && j.held {
			list = append(list, holder{j.lease, j.turn, j.cancel})
		}
	}
	return list
}

func (d *Dispatcher) keep(ctx context.Context, h holder) {
	until := d.parts.Now().Add(d.opts.Lease)
	_, err := d.parts.Store.Apply(ctx, &bot.Change{Lease: &h.lease, Lanes: []bot.LaneUpdate{{Session: h.lease.Session, Until: &until}}})
	if errors.Is(err, bot.ErrLost) {
		h.cancel(bot.ErrLost)
		return
	}
	d.report(ctx, err, "extend a lease")
}

// heed ends a turn whose stop was asked for elsewhere.
func (d *Dispatcher) heed(ctx context.Context, h holder) {
	lane, err := d.parts.Store.Lane(ctx, h.lease.Session)
	if err == nil && stopped(&lane) && lane.Turn == h.turn {
		h.cancel(agent.ErrStopped)
	}
}

// stopped says whether somebody asked to stop the turn in progress. A stop that came for an earlier turn counts for
// nothing.
func stopped(lane *bot.Lane) bool { return lane.Turn != "" && lane.Stop == lane.Turn }

func (d *Dispatcher) observe(what, kind string, took time.Duration) {
	if d.parts.Observe != nil {
		d.parts.Observe(Observation{What: what, Kind: kind, Duration: took})
	}
}
