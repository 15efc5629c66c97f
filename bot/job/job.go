// Package job works beside turns: it does what people ask for in the background, in one process at a time, and also if
// that process dies.
//
// A job is a fact, which the Change with the request stores. Who works on it claims it first, so that no two processes
// do, and the next one sees that it was begun. The Change that sends what has become of it deletes the job, and is
// refused if somebody has stopped it meanwhile.
package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/turn"
)

const (
	keptFor   = time.Hour // after that, nobody waits for a job any more
	atOnce    = 8         // jobs of a Runner that are worked on
	storeTime = 10 * time.Second
)

// Job is what somebody has asked for.
type Job struct {
	Session bot.SessionKey `json:"session"`
	Message bot.Message    `json:"message"`        // who asked, and where the result belongs
	Text    string         `json:"text,omitempty"` // what it is about, where the message does not say that
	Owner   string         `json:"owner"`          // the process that works on it
	Begun   bool           `json:"begun,omitempty"`

	Key string `json:"-"` // names it in its bucket
	// Resumed: a process that is dead had begun it, and nobody knows what that has cost.
	Resumed bool   `json:"-"`
	stored  string // the job as the store has it; "" = it is not stored
}

// Deps are the dependencies of a Runner. All are required.
type Deps struct {
	Store   facts.Store
	Keeper  facts.Keeper
	Wake    func(place bot.Place)
	Current func(session bot.SessionKey) bot.SessionKey // the name of a session whose chat may have moved
	Owner   string                                      // this process
	Lives   func(owner string) bool
	Now     func() time.Time
	Log     zerolog.Logger
}

// Runner works on the jobs of a bucket. Safe for concurrent use. It works while Run runs.
type Runner struct {
	deps   Deps
	bucket string
	work   func(ctx context.Context, j *Job) []bot.Row

	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // bounds the goroutines of the Runner; nil = Run does not run
	working sync.WaitGroup
	begun   map[string]started // by key: what this process works on
	slots   chan struct{}
	running chan struct{} // closed once Run runs
	runs    sync.Once
}

type started struct {
	stored bool // it is a job, which is stopped by deleting it
	cancel context.CancelFunc
}

// NewRunner returns what works on the jobs of a bucket. work does a job and returns what is sent; if its context has
// ended, the job is stopped, or left to the next process.
func NewRunner(deps Deps, bucket string, work func(ctx context.Context, j *Job) []bot.Row) *Runner {
	return &Runner{
		deps: deps, bucket: bucket, work: work,
		begun: map[string]started{}, slots: make(chan struct{}, atOnce), running: make(chan struct{}),
	}
}

// Running is closed once Run runs: before that, Go does nothing.
func (r *Runner) Running() <-chan struct{} { return r.running }

// Note returns the fact of a job with a key of its own, and what begins it once that is stored.
func (r *Runner) Note(j Job) (turn.Beside, error) {
	j.Owner = r.deps.Owner
	fact, err := r.factOf(&j)
	if err != nil {
		return turn.Beside{}, err
	}
	j.stored = fact.Value
	return turn.Beside{Facts: []bot.Fact{fact}, Then: func() { r.start(j) }}, nil
}

// Effect returns what a command does that asks for a job.
func (r *Runner) Effect(j Job) (turn.Effect, error) {
	noted, err := r.Note(j)
	return turn.Effect{
		Change: bot.Change{Facts: noted.Facts},
		Then: func(context.Context, *bot.Applied) (turn.Effect, error) {
			noted.Then()
			return turn.Effect{}, nil
		},
	}, err
}

func (r *Runner) factOf(j *Job) (bot.Fact, error) {
	raw, err := json.Marshal(j)
	if err != nil {
		return bot.Fact{}, fmt.Errorf("note a job: %w", err)
	}
	return bot.Fact{Bucket: r.bucket, Key: j.Key, Value: string(raw), Expires: r.deps.Now().Add(keptFor)}, nil
}

// Run works on jobs until ctx ends, beginning with what a dead process has left, and what was asked for before Run ran.
func (r *Runner) Run(ctx context.Context) error {
	r.mu.Lock()
	r.ctx = ctx
	r.mu.Unlock()
	r.runs.Do(func() { close(r.running) })
	if err := r.takeUp(ctx, func(owner string) bool {
		return owner == r.deps.Owner || !r.deps.Lives(owner)
	}); err != nil && ctx.Err() == nil {
		r.deps.Log.Error().Err(err).Msg("what was asked for before the start is not taken up")
	}
	<-ctx.Done()
	r.mu.Lock()
	r.ctx = nil
	r.mu.Unlock()
	r.working.Wait()
	return nil
}

// Follow takes up what dead processes have left, and ends what somebody has stopped in another process.
func (r *Runner) Follow(ctx context.Context) error {
	return r.takeUp(ctx, func(owner string) bool { return owner != r.deps.Owner && !r.deps.Lives(owner) })
}

func (r *Runner) takeUp(ctx context.Context, of func(owner string) bool) error {
	r.mu.Lock()
	gone := maps.Clone(r.begun)
	r.mu.Unlock()
	list, err := r.jobs(ctx)
	if err != nil {
		return err
	}
	for _, j := range list {
		delete(gone, j.Key)
		if of(j.Owner) {
			r.start(j)
		}
	}
	for _, s := range gone {
		if s.stored {
			s.cancel()
		}
	}
	return nil
}

// jobs returns the jobs of all processes, each with the name that its session has now.
func (r *Runner) jobs(ctx context.Context) ([]Job, error) {
	stored, err := r.deps.Store.FactsOf(ctx, r.bucket, "", r.deps.Now())
	if err != nil {
		return nil, fmt.Errorf("read what is asked for: %w", err)
	}
	var list []Job
	for _, f := range stored {
		var j Job
		if err := json.Unmarshal([]byte(f.Value), &j); err != nil {
			r.deps.Log.Error().Err(err).Str("job", f.Key).Msg("a job is not readable")
			continue
		}
		j.Session, j.Key, j.stored = r.deps.Current(j.Session), f.Key, f.Value
		list = append(list, j)
	}
	return list, nil
}

// Stopping returns the facts that end the jobs of a session that somebody has asked for, "" = anybody, in whichever
// process. Stopped follows once they are stored. They are refused with ErrConflict if a job has gone on meanwhile.
func (r *Runner) Stopping(ctx context.Context, session bot.SessionKey, caller string) ([]bot.Fact, error) {
	list, err := r.jobs(ctx)
	var ends []bot.Fact
	for _, j := range list {
		if j.Session == session && (caller == "" || j.Message.Caller == caller) {
			ends = append(ends, bot.Fact{Bucket: r.bucket, Key: j.Key, Was: &j.stored})
		}
	}
	return ends, err
}

// Stopped ends those of these jobs that this process works on.
func (r *Runner) Stopped(ends []bot.Fact) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, end := range ends {
		if s, works := r.begun[end.Key]; works && end.Bucket == r.bucket {
			s.cancel()
		}
	}
}

// start works on a job in the background. What is not begun because the service ends is found by the next start.
func (r *Runner) start(j Job) {
	j.Session = r.deps.Current(j.Session)
	if chat := j.Session.Chat(); chat != "" && chat != j.Message.Place.Chat {
		j.Message.Place.Chat, j.Message.Message = chat, ""
	}
	r.begin(j.Key, true, func(ctx context.Context) {
		if r.claim(ctx, &j) {
			if rows := r.work(ctx, &j); ctx.Err() == nil {
				r.end(ctx, &j, rows)
			}
		}
	})
}

// Go works in the background on what is not worth a job, once at a time for a key.
func (r *Runner) Go(key string, work func(ctx context.Context)) { r.begin(key, false, work) }

func (r *Runner) begin(key string, stored bool, work func(ctx context.Context)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, works := r.begun[key]; works || r.ctx == nil {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	r.begun[key] = started{stored, cancel}
	r.working.Go(func() {
		defer func() {
			cancel()
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.begun, key)
		}()
		select {
		case r.slots <- struct{}{}:
			defer func() { <-r.slots }()
			work(ctx)
		case <-ctx.Done():
		}
	})
}

// claim reports whether this process may work on a job: nobody else has claimed or stopped it.
func (r *Runner) claim(ctx context.Context, j *Job) bool {
	before := j.stored
	j.Resumed, j.Begun, j.Owner = j.Begun, true, r.deps.Owner
	mark, err := r.factOf(j)
	if err == nil {
		mark.Was, j.stored = &before, mark.Value
		err = r.deps.Keeper.Insist(ctx, func() error { return r.storeClaim(ctx, mark) })
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, bot.ErrConflict) {
		r.deps.Log.Error().Err(err).Str("job", j.Key).Msg("a job is not begun")
	}
	return err == nil
}

// storeClaim stores a claim. One that is stored already, because a reply of the store was lost, counts.
func (r *Runner) storeClaim(ctx context.Context, mark bot.Fact) error {
	_, err := r.deps.Store.Apply(ctx, &bot.Change{Facts: []bot.Fact{mark}})
	if !errors.Is(err, bot.ErrConflict) {
		return err //nolint:wrapcheck // only claim sees it
	}
	stored, readErr := r.deps.Store.Fact(ctx, mark.Bucket, mark.Key, r.deps.Now())
	if readErr == nil && stored == mark.Value {
		return nil
	}
	return cmp.Or(readErr, err)
}

// end deletes a job and sends what has become of it, unless somebody has deleted it before.
func (r *Runner) end(ctx context.Context, j *Job, rows []bot.Row) {
	r.Send(ctx, j.Message.Place, &bot.Change{
		Facts: []bot.Fact{{Bucket: r.bucket, Key: j.Key, Was: &j.stored}}, Send: rows,
	})
}

// Send stores what is sent to a place, also if ctx has ended.
func (r *Runner) Send(ctx context.Context, place bot.Place, change *bot.Change) {
	kept, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	err := r.deps.Keeper.Keep(kept, change)
	switch {
	case errors.Is(err, bot.ErrConflict): // stopped, or erased; or it was stored, and the reply was lost
	case err != nil:
		r.deps.Log.Error().Err(err).Msg("what was asked for is not stored")
		return
	}
	r.deps.Wake(place)
}
