// Package agent runs the conversation. A turn is a state machine over a stored journal, advanced by a Runner that knows
// no channel and no store.
package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/window"
	"github.com/zephbot/zephbot/tools"
)

// ErrStopped is the cancellation cause of a turn that a person stopped. Any other cancellation leaves the turn for
// another worker.
var ErrStopped = errors.New("stopped by a person")

// ErrGone is the cancellation cause of a turn whose answer cannot be delivered: the bot was blocked or removed from the
// chat. The turn ends.
var ErrGone = errors.New("the chat cannot be reached any more")

// ErrOvertaken is the cancellation cause of a turn that the next message of its person ends.
var ErrOvertaken = errors.New("overtaken by the person's next message")

// Limits bound a turn. Zero means the documented default; a negative value means no limit.
type Limits struct {
	Iterations    int // model calls with tools in one turn; default 10 (seed 003)
	Parallel      int // read-only calls at once, those of sub-agents included; default 4
	ContextTokens int // the model's window; default 128000, negative = unknown
	Repeats       int // equal steps in a row after which the turn ends; default 3
	MaxTokens     int // of one answer; 0 = the provider's setting
}

func (l Limits) withDefaults() Limits {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&l.Iterations, 10)
	def(&l.Parallel, 4)
	def(&l.ContextTokens, 128000)
	def(&l.Repeats, 3)
	return l
}

// Deps are the dependencies of a Runner.
type Deps struct {
	Provider llm.Provider
	Tools    Executor
	Catalog  Catalog
	Budget   Budget                                  // nil = nothing is reserved
	Blobs    blob.Store                              // for files that tools make; nil = files are not stored
	System   func(turn *Turn, withTools bool) string // the system prompt
	Bot      string                                  // name of the bot: a person with that name is marked as one
	Now      func() time.Time
	// Observe is told how long a phase of a turn took, once it is over; nil = nobody is. It must not block.
	Observe func(ctx context.Context, phase string, took time.Duration)
	Compaction
}

// The phases of a turn that a Runner observes. Those of the model's calls are observed where they are made (route).
const (
	ContextPhase = "context" // what the model is sent is read, chosen and rendered
	ToolsPhase   = "tools"   // the tool uses of a step, side by side or one by one
)

// Runner advances turns. It holds no state of a turn: everything is read from the journal, so any Runner can continue
// after another died. Safe for concurrent use.
type Runner struct {
	deps   Deps
	limits Limits
}

// NewRunner returns a Runner.
func NewRunner(deps Deps, limits Limits) *Runner {
	return &Runner{deps: deps, limits: limits.withDefaults()}
}

// Run advances the turn of a journal as far as possible: to an answer, an end, a question for a person, or a model that
// is unavailable. An error means that the store failed, that the turn belongs to another worker (journal.ErrConflict),
// or that ctx ended for a reason other than ErrStopped. The turn then stays as journalled.
func (r *Runner) Run(ctx context.Context, turn *Turn, of Journal, sink Sink) (Outcome, error) {
	ctx = cost.WithPayer(ctx, r.payerOf(turn))
	began := time.Now()
	// A stopped turn is loaded too: its open calls have to be closed.
	loading, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	tail, err := of.Load(loading, window.Room(r.limits.ContextTokens))
	cancel()
	if err != nil {
		return Outcome{}, fmt.Errorf("load the journal: %w", err)
	}
	s := newState(newBook(of, tail), turn.ID)
	s.bot = r.deps.Bot
	step := &step{Runner: r, turn: turn, journal: of, sink: sink, state: s, loading: time.Since(began)}
	if e := s.endEntry(); e != nil { // checked before a stop: a finished turn cannot be stopped
		kind := Answered
		if e.Kind == journal.EndEntry {
			kind = Ended
		}
		return Outcome{Kind: kind, Text: e.Text, Reason: e.Reason, Stats: s.turnStats()}, nil
	}
	step.showLastPlan(ctx)
	for {
		if ctx.Err() != nil {
			return r.handleInterrupt(ctx, step, turn, context.Cause(ctx))
		}
		out, err := step.takeStep(ctx)
		if err != nil {
			return r.handleInterrupt(ctx, step, turn, err)
		}
		if out != nil {
			out.Stats, out.LeftOut, out.Retold = s.turnStats(), step.leftOut, step.retold
			step.markFailedSummary(out.Entries)
			s.carryState(out.Entries)
			return *out, nil
		}
	}
}

// payerOf returns who pays for what the turn spends besides the calls of its own model.
func (r *Runner) payerOf(turn *Turn) cost.Payer {
	if r.deps.Budget == nil {
		return cost.Unlimited{}
	}
	return r.deps.Budget.Payer(turn)
}

// endingReason returns the reason with which a cancelled turn ends, or false if the turn is left to another worker.
func endingReason(ctx context.Context) (reason string, ends bool) {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrStopped):
		return journal.ReasonStopped, true
	case errors.Is(cause, ErrOvertaken):
		return journal.ReasonOvertaken, true
	case errors.Is(cause, ErrGone):
		return journal.ReasonGone, true
	default:
		return "", false
	}
}

// handleInterrupt distinguishes a turn that has to end from one that was only interrupted.
func (r *Runner) handleInterrupt(ctx context.Context, st *step, turn *Turn, err error) (Outcome, error) {
	reason, ends := endingReason(ctx)
	if !ends {
		return Outcome{}, err
	}
	out := Outcome{
		Kind: Ended, Reason: reason, Text: st.partial.String(),
		Entries: st.closeCancelled(ctx), Stats: st.state.turnStats(),
	}
	end := journal.Entry{Turn: turn.ID, Kind: journal.EndEntry, At: r.deps.Now(), Reason: reason}
	out.Entries = append(out.Entries, end)
	st.markFailedSummary(out.Entries[len(out.Entries)-1:])
	st.state.carryState(out.Entries)
	return out, nil
}

// step is a Runner's work on one turn.
type step struct {
	*Runner
	turn     *Turn
	journal  Journal
	sink     Sink
	state    *state
	partial  strings.Builder // text of the answer so far
	thinking strings.Builder // thoughts of the model call so far
	summed   bool            // a summary was tried in this run
	unsummed bool            // it failed, and no entry says so yet
	retold   bool            // a server took the conversation as plain text only
	fixed    int             // tokens of system prompt and tools in the last request; 0 = there was none
	leftOut  bool            // messages were left out because there is no summary of them
	loading  time.Duration   // spent on reading the journal, until it is observed

	mu    sync.Mutex
	begun map[string]bool // calls that have started in this run; read-only calls are not journalled as started

	task     *tools.Task // what a sub-agent has to do; nil = the step is one of the turn itself
	wants    string      // what the person wants in the turn
	slots    *slots      // for calls that run side by side
	children map[string]*step
	later    *Outcome // a sub-agent's model was unavailable
}

// takeStep takes the next step that the journal requires. A nil outcome means: continue.
func (s *step) takeStep(ctx context.Context) (*Outcome, error) {
	if len(s.state.currentEntries()) == 0 { // the message was cleared with the journal: there is nothing to answer
		return s.endWithout(journal.ReasonInternal, ""), nil
	}
	b := s.state.openBatch()
	open := b != nil && len(b.openUses()) > 0
	if s.task != nil {
		return s.nextOfTask(ctx, b, open)
	}
	if joined, err := s.joinMessages(ctx, b, open); joined || err != nil {
		return nil, err
	}
	if open {
		defer s.observePhase(ctx, ToolsPhase, time.Now())
		return s.executeBatch(ctx, b)
	}
	if b != nil {
		if out := s.limitSteps(); out != nil {
			return out, nil
		}
	}
	return s.askModel(ctx)
}

// observePhase reports a phase that began at a time and is over.
func (s *step) observePhase(ctx context.Context, phase string, began time.Time) {
	if s.deps.Observe != nil {
		s.deps.Observe(ctx, phase, time.Since(began))
	}
}

// limitSteps ends a turn that repeats itself or has too many steps.
func (s *step) limitSteps() *Outcome {
	stats := s.state.turnStats()
	if text, ok := repeatedSteps(s.state.currentEntries(), s.limits.Repeats); ok {
		return s.endWithout(journal.ReasonLoop, text)
	}
	if s.limits.Iterations > 0 && stats.Steps >= s.limits.Iterations {
		return s.endWithout(journal.ReasonLimit, "")
	}
	return nil
}

// endWithout returns the outcome of a turn that ends without an answer. text is filled
// into the sentence for the person.
func (s *step) endWithout(reason, text string) *Outcome {
	return &Outcome{
		Kind: Ended, Reason: reason, Text: text,
		Entries: []journal.Entry{{Turn: s.turn.ID, Kind: journal.EndEntry, At: s.deps.Now(), Reason: reason}},
	}
}

// appendEntries stores entries of the turn, or of its sub-agent.
func (s *step) appendEntries(ctx context.Context, entries ...journal.Entry) error {
	return s.state.appendEntries(ctx, func(int64) []journal.Entry { return entries })
}

// volatile matches the part of a result that differs between equal results: the id under which a long output was
// stored.
var volatile = regexp.MustCompile(`overflow:[0-9a-fA-F-]{36}`)

// repeatedSteps reports whether the last n steps of the turn were the same, call by call and result by result (seed
// 003: doom loop), and returns their output as a person sees it.
func repeatedSteps(entries []journal.Entry, n int) (text string, ok bool) {
	if n <= 0 {
		return "", false
	}
	var sums []string
	var last string
	for i, e := range entries {
		if e.Kind != journal.AssistantEntry {
			continue
		}
		h := sha256.New()
		results := resultsOf(&entries[i], entries[i+1:])
		for _, u := range e.Uses {
			fmt.Fprintf(h, "use %q %s\n", u.Name, u.Args)
		}
		for _, u := range e.Uses {
			fmt.Fprintf(h, "result %q\n", volatile.ReplaceAllString(withoutReflection(results[u.Call]), "overflow:"))
			last = shownResult(results[u.Call])
		}
		sums = append(sums, string(h.Sum(nil)))
	}
	if len(sums) < n {
		return "", false
	}
	for _, sum := range sums[len(sums)-n:] {
		if sum != sums[len(sums)-1] {
			return "", false
		}
	}
	return last, true
}
