package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/window"
	"github.com/zephbot/zephbot/tools"
)

// ErrStopped is the cancellation cause of a turn that a person stopped. Any other cancellation leaves the turn for
// another worker.
var ErrStopped = errors.New("stopped by a person")

// ErrGone is the cancellation cause of a turn whose answer would reach nobody: the bot was blocked or removed from the
// chat. The turn ends.
var ErrGone = errors.New("nothing reaches the chat any more")

// Limits bound a turn. Zero values mean the documented default; negative ones no limit.
type Limits struct {
	Iterations    int // model calls with tools in one turn; default 10 (seed 003)
	Parallel      int // reading calls of one batch at once; default 4
	ContextTokens int // the model's window; default 128000, negative = unknown
	Repeats       int // equal steps in a row that end the turn; default 3
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

// Deps are what a Runner works with.
type Deps struct {
	Provider llm.Provider
	Tools    Executor
	Catalog  Catalog
	Budget   Budget                                  // nil = nothing is reserved
	Blobs    blob.Store                              // of what tools make that is no text; nil = it is not kept
	System   func(turn *Turn, withTools bool) string // the system prompt
	Now      func() time.Time
}

// Runner moves turns. It holds no state of a turn: everything is read from the journal, so any Runner may go on where
// another died. Safe for concurrent use.
type Runner struct {
	deps   Deps
	limits Limits
}

// NewRunner makes a Runner.
func NewRunner(deps Deps, limits Limits) *Runner {
	return &Runner{deps: deps, limits: limits.withDefaults()}
}

// Run moves the turn of a journal as far as it goes: to an answer, an end, a question to a person, or a model that is
// away. An error means that the store failed or that the turn belongs to another worker (journal.ErrConflict) or that
// ctx ended for another reason than ErrStopped: the turn stays as journalled.
func (r *Runner) Run(ctx context.Context, turn *Turn, of Journal, sink Sink) (Outcome, error) {
	// A stopped turn is read too: its open calls have to be closed.
	loading, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	tail, err := of.Load(loading, window.Room(r.limits.ContextTokens))
	cancel()
	if err != nil {
		return Outcome{}, fmt.Errorf("load the journal: %w", err)
	}
	s := newState(tail, turn.ID)
	step := &step{Runner: r, turn: turn, journal: of, sink: sink, state: s}
	if e := s.over(); e != nil { // before a stop is looked at: what is over cannot be stopped
		kind := Answered
		if e.Kind == journal.EndEntry {
			kind = Ended
		}
		return Outcome{Kind: kind, Text: e.Text, Reason: e.Reason, Stats: s.stats()}, nil
	}
	for {
		if ctx.Err() != nil {
			return r.interrupted(ctx, step, turn, context.Cause(ctx))
		}
		out, err := step.next(ctx)
		if err != nil {
			return r.interrupted(ctx, step, turn, err)
		}
		if out != nil {
			out.Stats = s.stats()
			s.carry(out.Entries)
			return *out, nil
		}
	}
}

// ending is the reason with which a cancelled turn ends; false where it is left to another worker instead.
func ending(ctx context.Context) (reason string, ends bool) {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrStopped):
		return journal.ReasonStopped, true
	case errors.Is(cause, ErrGone):
		return journal.ReasonGone, true
	default:
		return "", false
	}
}

// interrupted tells a turn that is to end from one that is interrupted.
func (r *Runner) interrupted(ctx context.Context, st *step, turn *Turn, err error) (Outcome, error) {
	reason, ends := ending(ctx)
	if !ends {
		return Outcome{}, err
	}
	out := Outcome{Kind: Ended, Reason: reason, Text: st.partial.String(), Entries: st.cancelled(ctx), Stats: st.state.stats()}
	out.Entries = append(out.Entries, journal.Entry{Turn: turn.ID, Kind: journal.EndEntry, At: r.deps.Now(), Reason: reason})
	st.state.carry(out.Entries)
	return out, nil
}

// step is the Runner at work on one turn.
type step struct {
	*Runner
	turn    *Turn
	journal Journal
	sink    Sink
	state   *state
	partial strings.Builder // text of the answer that grows

	mu    sync.Mutex
	begun map[string]bool // calls that have begun in this run; those that only read are not journalled as started
}

// next does the next thing the journal asks for. A nil outcome means: go on.
func (s *step) next(ctx context.Context) (*Outcome, error) {
	if len(s.state.current()) == 0 { // the message is gone, with a journal that was cleared: there is nothing to answer
		return s.end(journal.ReasonInternal, ""), nil
	}
	b := s.state.batch()
	if b != nil && len(b.open()) > 0 {
		return s.execute(ctx, b)
	}
	if b != nil {
		if out := s.limit(); out != nil {
			return out, nil
		}
	}
	return s.ask(ctx)
}

// limit ends a turn that runs in circles or for too long.
func (s *step) limit() *Outcome {
	stats := s.state.stats()
	if text, ok := repeated(s.state.current(), s.limits.Repeats); ok {
		return s.end(journal.ReasonLoop, text)
	}
	if s.limits.Iterations > 0 && stats.Steps >= s.limits.Iterations {
		return s.end(journal.ReasonLimit, "")
	}
	return nil
}

// end makes the outcome of a turn that ends without an answer. Text is what the sentence for the person needs.
func (s *step) end(reason, text string) *Outcome {
	return &Outcome{
		Kind: Ended, Reason: reason, Text: text,
		Entries: []journal.Entry{{Turn: s.turn.ID, Kind: journal.EndEntry, At: s.deps.Now(), Reason: reason}},
	}
}

// ask calls the model once.
func (s *step) ask(ctx context.Context) (*Outcome, error) {
	offers := s.deps.Catalog.Tools(ctx, s.turn, s.state.view())
	req := &llm.Request{
		System: s.deps.System(s.turn, len(offers) > 0), Tools: shown(offers), MaxTokens: s.limits.MaxTokens, User: opaque(s.turn.Origin),
		Party:   s.turn.Origin.Caller,
		OnReset: func() { s.partial.Reset(); s.sink.Emit(ctx, Event{Type: ResetEvent}) },
	}
	estimate := s.state.fit(req, s.turn.Shared, s.limits.ContextTokens, llm.AcceptsOf(s.deps.Provider))
	s.opens(req)
	if window.Over(estimate, s.limits.ContextTokens) {
		return s.end(journal.ReasonContext, ""), nil
	}
	stepNo := s.state.stats().Steps + 1
	key := fmt.Sprintf("%s/%d", s.turn.ID, stepNo)
	if out, err := s.reserve(ctx, key, llm.Usage{Input: estimate, Output: s.limits.MaxTokens}); out != nil || err != nil {
		return out, err
	}
	s.partial.Reset()
	s.sink.Emit(ctx, Event{Type: ModelEvent, Step: stepNo})
	began := s.deps.Now()
	resp, err := s.deps.Provider.Chat(ctx, req, func(text string) {
		s.partial.WriteString(text)
		s.sink.Emit(ctx, Event{Type: DeltaEvent, Text: text})
	})
	unstored := s.stored()
	if err != nil {
		return s.failed(ctx, key, estimate, err)
	}
	if resp.Stop == llm.StopLength && resp.Usage.Total() == 0 { // it was left before it had said what it cost
		resp.Usage = llm.Usage{Input: estimate, Output: window.Tokens(resp.Text)}
	}
	s.settle(ctx, key, resp.Usage, resp.USD)
	if unstored != nil {
		return nil, unstored
	}
	entry := journal.Entry{
		Turn: s.turn.ID, At: s.deps.Now(), Text: resp.Text, Usage: resp.Usage, USD: resp.USD, Model: resp.Model,
		Millis: s.deps.Now().Sub(began).Milliseconds(),
	}
	if len(resp.Uses) > 0 && resp.Stop != llm.StopRefusal {
		return nil, s.wish(ctx, entry, resp, offers)
	}
	return s.answer(entry, resp), nil
}

// stored waits for the beginning of the turn to be durable, where that was not awaited before the model was asked.
func (s *step) stored() error {
	pending, ok := s.journal.(Pending)
	if !ok {
		return nil
	}
	if err := pending.Stored(); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

func (s *step) reserve(ctx context.Context, key string, estimate llm.Usage) (*Outcome, error) {
	if s.deps.Budget == nil {
		return nil, nil
	}
	err := s.deps.Budget.Reserve(ctx, s.turn, key, estimate)
	if denied, ok := errors.AsType[*Denied](err); ok {
		return s.end(journal.ReasonBudget, denied.Text), nil
	}
	if err != nil {
		return nil, fmt.Errorf("reserve: %w", err)
	}
	return nil, nil
}

// settle outlives a cancelled turn: money that was spent is counted. A failure of the books is logged and no more: the
// answer is there and paid for, and the next reservation meets the same books.
func (s *step) settle(ctx context.Context, key string, used llm.Usage, usd float64) {
	if s.deps.Budget == nil {
		return
	}
	kept, cancel := keep(ctx)
	defer cancel()
	if err := s.deps.Budget.Settle(kept, s.turn, key, used, usd); err != nil {
		zerolog.Ctx(ctx).Error().Err(err).Str("key", key).Msg("model call not settled")
	}
}

// keep is a context for what has to be stored although the turn is being stopped or the service shuts down.
func keep(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

// failed says what a failure of the model means for the turn. A call that had begun to answer is settled by estimate:
// vendors charge for it.
func (s *step) failed(ctx context.Context, key string, estimate int, err error) (*Outcome, error) {
	var used llm.Usage
	if s.partial.Len() > 0 {
		used = llm.Usage{Input: estimate, Output: window.Tokens(s.partial.String())}
	}
	s.settle(ctx, key, used, 0)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	zerolog.Ctx(ctx).Warn().Err(err).Msg("the model failed")
	var e *llm.Error
	if !errors.As(err, &e) {
		return &Outcome{Kind: Later, Err: err}, nil
	}
	switch {
	case e.Kind == llm.TooLong:
		return s.end(journal.ReasonContext, ""), nil
	case e.Kind == llm.Unauthorized:
		return s.end(journal.ReasonKey, ""), nil
	case e.Kind == llm.Overtime:
		return s.end(journal.ReasonOvertime, ""), nil
	case e.Kind == llm.Oversize:
		return s.end(journal.ReasonOversize, ""), nil
	case !e.Retryable():
		return s.end(journal.ReasonModel, ""), nil
	}
	return &Outcome{Kind: Later, Err: err, RetryAfter: e.RetryAfter}, nil
}

// wish journals the model's wish to call tools.
func (s *step) wish(ctx context.Context, entry journal.Entry, resp *llm.Response, offers []Offer) error {
	known := map[string]tools.Definition{}
	for _, d := range offers {
		known[d.Name] = d.Definition
	}
	n := s.state.last() + 1
	entry.Kind = journal.AssistantEntry
	if resp.Stop == llm.StopLength {
		entry.Reason = journal.ReasonLength // a use may be half-written
	}
	for i, u := range resp.Uses {
		use := journal.Use{Call: fmt.Sprintf("c%d_%d", n, i), Model: u.ID, Name: u.Name, Args: rawArgs(u.Args), Extra: u.Extra}
		if d, ok := known[u.Name]; ok {
			use.Definition, use.ReadOnly = d.Hash(), d.ReadOnly
		}
		entry.Uses = append(entry.Uses, use)
	}
	s.partial.Reset()
	s.sink.Emit(ctx, Event{Type: ResetEvent})
	kept, cancel := keep(ctx)
	defer cancel()
	return s.append(kept, entry)
}

// answer ends the turn with what the model said.
func (s *step) answer(entry journal.Entry, resp *llm.Response) *Outcome {
	if strings.TrimSpace(resp.Text) == "" {
		reason := journal.ReasonEmpty
		if resp.Stop == llm.StopRefusal {
			reason = journal.ReasonRefusal
		}
		return s.endWith(entry, reason)
	}
	entry.Kind = journal.AnswerEntry
	if resp.Stop == llm.StopLength {
		entry.Reason = journal.ReasonLength
	}
	text := forPeople(resp.Text)
	return &Outcome{Kind: Answered, Text: text, Reason: entry.Reason, Entries: []journal.Entry{entry}}
}

// endWith keeps the usage of a model call that gave no answer.
func (s *step) endWith(entry journal.Entry, reason string) *Outcome {
	out := s.end(reason, "")
	e := &out.Entries[0]
	e.Usage, e.USD, e.Model, e.Millis = entry.Usage, entry.USD, entry.Model, entry.Millis
	return out
}

func (s *step) append(ctx context.Context, entries ...journal.Entry) error {
	stored, err := s.journal.Append(ctx, entries...)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	s.state.add(stored...)
	return nil
}

// opaque is a stable name of a conversation for the vendor: it helps its cache and its control of abuse, and tells it
// nobody's name.
func opaque(o tools.Origin) string {
	if o.Session == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(o.Session + "\x00" + o.Caller))
	return hex.EncodeToString(sum[:16])
}

func shown(offers []Offer) []llm.Tool {
	list := make([]llm.Tool, len(offers))
	for i, o := range offers {
		list[i] = llm.Tool{Name: o.Name, Description: o.Description, Schema: o.Schema}
	}
	return list
}

// rawArgs brings arguments into the form in which a journal gives them back, so that a resumed turn compares equal to
// one that was never interrupted. What is not JSON is kept as a JSON string, which the decode stage refuses with a
// clear word.
func rawArgs(args []byte) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	args = bytes.ToValidUTF8(args, []byte("\uFFFD"))
	if stored, err := json.Marshal(json.RawMessage(args)); err == nil {
		return stored
	}
	quoted, err := json.Marshal(string(args))
	if err != nil {
		return json.RawMessage("{}") // unreachable: every string can be written
	}
	return quoted
}
