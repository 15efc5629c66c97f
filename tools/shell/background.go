package shell

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// maxCompletion limits the text of a completion that no stage shortens, in characters.
const maxCompletion = 50_000

// shortID is the number of characters of a run's id that people see.
const shortID = 8

// BackgroundRun is a command that runs without a call waiting for it.
type BackgroundRun struct {
	ID      string // 32 hex digits
	Call    string // id of the call that started it
	Origin  tools.Origin
	Command string
	Started time.Time
}

// Short returns the id in the form that people see.
func (b BackgroundRun) Short() string { return b.ID[:shortID] }

// Completion is a background run that ended.
type Completion struct {
	BackgroundRun
	Elapsed   time.Duration
	Ended     string // "exit", "signal", "timeout", "cancelled", "stopped" (by the disk guard), "failed"
	ExitCode  *int   // nil unless Ended is "exit"
	Text      string // output, redacted and shortened, with notes about how the run ended
	Truncated bool
}

// Message returns the text that tells the model about the end, at the start of its next turn. The output in it is not
// marked as untrusted.
func (c Completion) Message() string {
	how := c.Ended
	if c.ExitCode != nil {
		how = fmt.Sprintf("exit code %d", *c.ExitCode)
	}
	return fmt.Sprintf("[background run %s ended: %s after %s]\n$ %s\n%s", c.Short(), how, c.Elapsed.Round(time.Second),
		c.Command, c.Text)
}

// Ledger records background runs, if possible beyond the end of the process. Its methods are called from many
// goroutines.
type Ledger interface {
	// Begun records a run before it starts; after an error the run does not start. The call that starts the run waits
	// for Begun.
	Begun(ctx context.Context, run BackgroundRun) error
	// Ended records how a run ended, once for each run that began. It returns when that is stored, or with an error
	// when ctx ends first. A run for which only Begun is recorded was interrupted.
	Ended(ctx context.Context, done Completion) error
}

// Memory is a Ledger that lasts as long as the process. The zero value is ready to use.
type Memory struct {
	mu    sync.Mutex
	ended []Completion
}

// Begun implements Ledger.
func (m *Memory) Begun(context.Context, BackgroundRun) error { return nil }

// Ended implements Ledger.
func (m *Memory) Ended(_ context.Context, done Completion) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = append(m.ended, done)
	return nil
}

// Completed returns the runs of a session that ended since the last call, in the order in which they ended. It returns
// each run once.
func (m *Memory) Completed(session string) []Completion {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []Completion
	m.ended = slices.DeleteFunc(m.ended, func(c Completion) bool {
		if c.Origin.Session == session {
			list = append(list, c)
		}
		return c.Origin.Session == session
	})
	return list
}

// background owns the background runs.
type background struct {
	mu      sync.Mutex
	closing bool
	running map[string]*backgroundRun
	wg      sync.WaitGroup
	once    sync.Once
	idle    chan struct{} // closed when it is closing and nothing runs
	hurry   sync.Once
	giveUp  chan struct{} // closed when Shutdown stops waiting for the ends of runs to be recorded
}

type backgroundRun struct {
	BackgroundRun
	permit

	session string // current name of the session; guarded by the lock of background
	once    sync.Once
	cancel  chan struct{}
	told    bool // it was told to end, or it has ended; guarded by the lock of background
}

func (b *backgroundRun) stopRun() { b.once.Do(func() { close(b.cancel) }) }

func (b *background) initOnce() {
	b.running, b.idle, b.giveUp = map[string]*backgroundRun{}, make(chan struct{}), make(chan struct{})
}

// startBackground starts a run and returns immediately.
func (r *Runner) startBackground(ctx context.Context, call *tools.Call, text, ws string) (*tools.Result, error) {
	var raw [16]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return nil, fmt.Errorf("make run id: %w", err)
	}
	run := &backgroundRun{
		cancel: make(chan struct{}), permit: permitOf(call), session: call.Origin.Session,
		BackgroundRun: BackgroundRun{
			ID: hex.EncodeToString(raw[:]), Call: call.ID, Origin: call.Origin, Command: text, Started: r.opts.Now(),
		},
	}
	ctx = context.WithoutCancel(ctx) // it outlives the turn; Shutdown ends it
	if err := r.bg.reserveRun(run, r.opts.MaxBackgroundRuns); err != nil {
		return nil, err
	}
	if err := r.opts.Ledger.Begun(ctx, run.BackgroundRun); err != nil {
		r.bg.removeRun(run)
		return nil, &tools.Error{
			Category: tools.PermanentFailure, Err: fmt.Errorf("note a background run: %w", err),
			Message:    "the run could not be noted, and was not started: nobody would hear of its end",
			Suggestion: "Try again in a minute.",
		}
	}
	r.bg.wg.Go(func() {
		done := r.runBackground(ctx, run, ws)
		r.bg.markOver(run)
		r.recordCompletion(ctx, done)
		r.bg.removeRun(run)
	})
	text = fmt.Sprintf("[background run %s started; it may run %s; its output comes with a later message]", run.Short(),
		r.opts.BackgroundTimeout)
	return &tools.Result{Text: text, Raw: map[string]string{"run_id": run.ID}}, nil
}

// runBackground runs a command to its end and returns the completion.
func (r *Runner) runBackground(ctx context.Context, run *backgroundRun, ws string) Completion {
	done := Completion{BackgroundRun: run.BackgroundRun, Ended: "failed"}
	o, err := r.executeJob(ctx, job{
		text: run.Command, ws: ws, timeout: r.opts.BackgroundTimeout, cancel: run.cancel,
		permit: run.permit, read: r.readableDirs(run.Origin),
	})
	done.Elapsed = max(0, r.opts.Now().Sub(run.Started))
	if err != nil {
		r.log.Error().Err(err).Str("run", run.ID).Str("session", run.Origin.Session).Msg("background run failed")
		done.Text = r.opts.Redact(tools.AsError(startFailure(err)).Message)
		return done
	}
	notes := r.endRemarks(o)
	if why := o.tooLittle(ws); run.reading && why.Code != "" {
		notes = append(notes, "[note] nobody was asked about it: "+
			why.String()+" Run it in the foreground, so that a person is asked.")
	}
	done.ExitCode = o.exitCode()
	switch {
	case o.ending == vanished:
		done.ExitCode = nil
		notes = append(notes, r.runError(o, nil).Message)
	case o.ending == timedOut:
		done.Ended, done.ExitCode = "timeout", nil
		notes = append(notes, fmt.Sprintf("[stopped after %s]", r.opts.BackgroundTimeout))
	case o.ending == filled:
		done.Ended, done.ExitCode = "stopped", nil
		notes = append(notes, "[stopped: "+o.full.Message+"]")
	case o.ending == cancelled:
		done.Ended, done.ExitCode = "cancelled", nil
	case done.ExitCode == nil || o.ending == flooded:
		done.Ended = "signal"
	default:
		done.Ended = "exit"
	}
	result := &tools.Result{
		Text: renderResult(o.text, o, nil, notes), Raw: r.resultEnvelope(o, done.ExitCode), ExitCode: done.ExitCode,
		Truncated: o.omitted > 0,
		Error:     done.ExitCode == nil || *done.ExitCode != 0,
	}
	done.Truncated = result.Truncated
	done.Text = r.shapeCompletion(ctx, run, result)
	return done
}

// shapeCompletion returns the text of a completion, and shortens it if no stage has done so.
func (r *Runner) shapeCompletion(ctx context.Context, run *backgroundRun, result *tools.Result) string {
	if r.opts.Shape == nil {
		text, _ := shortenText(r.opts.Redact(result.Text), maxCompletion)
		return text
	}
	args, err := json.Marshal(In{Command: run.Command, Background: true})
	if err != nil {
		args = []byte("{}")
	}
	call := &tools.Call{
		ID: "background/" + run.ID, Tool: Name, Args: args, Origin: run.Origin,
		Def: tools.Definition{Name: Name, Destructive: true}, Trail: &tools.Trail{},
	}
	return r.opts.Shape(ctx, call, result)
}

// recordCompletion records the end of a run in the ledger. If the runner has to stop first, the
// ledger still has the run as begun.
func (r *Runner) recordCompletion(ctx context.Context, done Completion) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.bg.wg.Go(func() {
		select {
		case <-r.bg.giveUp:
			cancel()
		case <-ctx.Done():
		}
	})
	if r.isClosing() && done.Ended == "cancelled" {
		done.Text += "\n[stopped because the service was stopped]"
	}
	log := r.log.With().Str("run", done.ID).Str("session", done.Origin.Session).Str("how", done.Ended).Logger()
	if err := r.opts.Ledger.Ended(ctx, done); err != nil {
		log.Error().Err(err).Msg("end of a background run not recorded; it will be reported as interrupted")
		return
	}
	log.Info().Msg("background run ended")
}

func (r *Runner) isClosing() bool {
	r.bg.mu.Lock()
	defer r.bg.mu.Unlock()
	return r.bg.closing
}

// markOver marks a run as ended while its end is still to be recorded.
func (b *background) markOver(run *backgroundRun) {
	b.mu.Lock()
	defer b.mu.Unlock()
	run.told = true
}

// reserveRun adds a run unless the limit is reached. Every run that was added is later removed by gone.
func (b *background) reserveRun(run *backgroundRun, most int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing {
		return tools.Refused(reason.New(reason.ShuttingDown), "Try again in a minute.")
	}
	full := func(code reason.Code, runs int) error {
		return tools.Refused(
			reason.New(code, fmt.Sprint(runs)), "Wait until one has ended, or run it without background.",
		)
	}
	if len(b.running) >= most {
		return full(reason.RunsFull, len(b.running))
	}
	own := 0
	for _, other := range b.running {
		if other.startedBy() == run.startedBy() {
			own++
		}
	}
	if own > 0 && own >= most-max(1, most/sharedPart) {
		return full(reason.RunsFullForOne, own)
	}
	b.running[run.ID] = run
	return nil
}

// sharedPart is the part of all background runs that one person leaves to others: a fourth of them, at least one.
const sharedPart = 4

// startedBy returns who started a run; the session if there is no person.
func (b BackgroundRun) startedBy() string { return cmp.Or(b.Origin.Caller, b.Origin.Session) }

// removeRun removes a run that has ended or did not begin.
func (b *background) removeRun(run *backgroundRun) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.running, run.ID)
	b.tellIdle()
}

// tellIdle closes idle once nothing runs and no new runs are accepted. The caller holds the lock.
func (b *background) tellIdle() {
	if b.closing && len(b.running) == 0 {
		b.once.Do(func() { close(b.idle) })
	}
}

// Background returns the active runs of a session, oldest first.
func (r *Runner) Background(session string) []BackgroundRun {
	r.bg.mu.Lock()
	defer r.bg.mu.Unlock()
	var list []BackgroundRun
	for _, run := range r.bg.running {
		if run.session == session {
			list = append(list, run.BackgroundRun)
		}
	}
	slices.SortFunc(list, func(a, b BackgroundRun) int {
		if c := a.Started.Compare(b.Started); c != 0 {
			return c
		}
		return slices.Compare([]byte(a.ID), []byte(b.ID))
	})
	return list
}

// Running reports whether the run with this full id is active, or its end is being recorded.
func (r *Runner) Running(id string) bool {
	r.bg.mu.Lock()
	defer r.bg.mu.Unlock()
	return r.bg.running[id] != nil
}

// Active returns the number of a session's runs that are active and were not told to end.
func (r *Runner) Active(session string) int {
	r.bg.mu.Lock()
	defer r.bg.mu.Unlock()
	n := 0
	for _, run := range r.bg.running {
		if run.session == session && !run.told {
			n++
		}
	}
	return n
}

// Cancel cancels background runs of a session: the one with this id or short id, or all for "". It returns the number
// of runs that were not being cancelled before. Their completions arrive as usual.
func (r *Runner) Cancel(session, id string) int {
	r.bg.mu.Lock()
	defer r.bg.mu.Unlock()
	n := 0
	for _, run := range r.bg.running {
		if run.session == session && !run.told && (id == "" || id == run.ID || id == run.Short()) {
			run.told = true
			run.stopRun()
			n++
		}
	}
	return n
}

// CancelRuns cancels the background runs with these full ids, as Cancel does.
func (r *Runner) CancelRuns(ids map[string]bool) {
	r.bg.mu.Lock()
	defer r.bg.mu.Unlock()
	for id, run := range r.bg.running {
		if ids[id] && !run.told {
			run.told = true
			run.stopRun()
		}
	}
}

// Idle reports whether no background run is active in any session.
func (r *Runner) Idle() bool {
	r.bg.mu.Lock()
	defer r.bg.mu.Unlock()
	return len(r.bg.running) == 0
}

// Rename moves the runs of renamed sessions to their new names.
func (r *Runner) Rename(name func(session string) string) {
	r.bg.mu.Lock()
	defer r.bg.mu.Unlock()
	for _, run := range r.bg.running {
		run.session = name(run.session)
	}
}

// Shutdown cancels all background runs and waits for them until ctx ends. New runs are refused from now on.
func (r *Runner) Shutdown(ctx context.Context) error {
	r.bg.mu.Lock()
	r.bg.closing = true
	for _, run := range r.bg.running {
		run.stopRun()
	}
	r.bg.tellIdle()
	r.bg.mu.Unlock()
	select {
	case <-r.bg.idle:
		r.bg.wg.Wait()
		r.tidy()
		return r.removeGit()
	case <-ctx.Done():
		r.bg.hurry.Do(func() { close(r.bg.giveUp) })
		return fmt.Errorf("wait for background runs: %w", ctx.Err())
	}
}
