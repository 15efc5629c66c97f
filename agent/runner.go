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

// ErrGone is the cancellation cause of a turn whose answer cannot be delivered: the bot was blocked or removed from the
// chat. The turn ends.
var ErrGone = errors.New("the chat cannot be reached any more")

// Limits bound a turn. Zero means the documented default; a negative value means no limit.
type Limits struct {
	Iterations    int // model calls with tools in one turn; default 10 (seed 003)
	Parallel      int // read-only calls of one batch at once; default 4
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
	Now      func() time.Time
}

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
	// A stopped turn is loaded too: its open calls have to be closed.
	loading, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	tail, err := of.Load(loading, window.Room(r.limits.ContextTokens))
	cancel()
	if err != nil {
		return Outcome{}, fmt.Errorf("load the journal: %w", err)
	}
	s := newState(tail, turn.ID)
	step := &step{Runner: r, turn: turn, journal: of, sink: sink, state: s}
	if e := s.over(); e != nil { // checked before a stop: a finished turn cannot be stopped
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

// ending returns the reason with which a cancelled turn ends, or false if the turn is left to another worker.
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

// interrupted distinguishes a turn that has to end from one that was only interrupted.
func (r *Runner) interrupted(ctx context.Context, st *step, turn *Turn, err error) (Outcome, error) {
	reason, ends := ending(ctx)
	if !ends {
		return Outcome{}, err
	}
	out := Outcome{
		Kind: Ended, Reason: reason, Text: st.partial.String(),
		Entries: st.cancelled(ctx), Stats: st.state.stats(),
	}
	end := journal.Entry{Turn: turn.ID, Kind: journal.EndEntry, At: r.deps.Now(), Reason: reason}
	out.Entries = append(out.Entries, end)
	st.state.carry(out.Entries)
	return out, nil
}

// step is a Runner's work on one turn.
type step struct {
	*Runner
	turn    *Turn
	journal Journal
	sink    Sink
	state   *state
	partial strings.Builder // text of the answer so far

	mu    sync.Mutex
	begun map[string]bool // calls that have started in this run; read-only calls are not journalled as started
}

// next takes the next step that the journal requires. A nil outcome means: continue.
func (s *step) next(ctx context.Context) (*Outcome, error) {
	if len(s.state.current()) == 0 { // the message was cleared with the journal: there is nothing to answer
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

// limit ends a turn that repeats itself or has too many steps.
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

// end returns the outcome of a turn that ends without an answer. text is filled into the sentence for the person.
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
		System:    s.deps.System(s.turn, len(offers) > 0),
		Tools:     shown(offers),
		MaxTokens: s.limits.MaxTokens, User: opaque(s.turn.Origin),
		Party:   s.turn.Origin.Caller,
		Prefer:  s.turn.Model,
		OnReset: func() { s.partial.Reset(); s.sink.Emit(ctx, Event{Type: ResetEvent}) },
	}
	estimate := s.state.fit(req, s.turn.Shared, s.limits.ContextTokens, llm.AcceptsFor(s.deps.Provider, req.Prefer))
	s.opens(req)
	if window.Over(estimate, s.limits.ContextTokens) {
		return s.end(journal.ReasonContext, ""), nil
	}
	stepNo := s.state.stats().Steps + 1
	key := fmt.Sprintf("%s/%d", s.turn.ID, stepNo)
	reserved := llm.Usage{Input: estimate, Output: s.limits.MaxTokens}
	if out, err := s.reserve(ctx, key, reserved); out != nil || err != nil {
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
	if resp.Stop == llm.StopLength && resp.Usage.Total() == 0 { // the call was abandoned before it reported its usage
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

// stored waits until the beginning of the turn is durable, if the model was called before that.
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

// settle runs even if the turn is cancelled, so that money that was spent is counted. An error is only logged: the
// answer exists and is paid for, and the next reservation will meet the same error.
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

// keep returns a context for storing results while the turn is being stopped or the service is shutting down.
func keep(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

// failed decides what a failed model call means for the turn. If the model had started to answer, the call is settled
// by an estimate, because vendors charge for it.
func (s *step) failed(ctx context.Context, key string, estimate int, err error) (*Outcome, error) {
	var used llm.Usage
	if s.partial.Len() > 0 {
		used = llm.Usage{Input: estimate, Output: window.Tokens(s.partial.String())}
	}
	s.settle(ctx, key, used, 0)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	zerolog.Ctx(ctx).Warn().Err(err).Msg("model call failed")
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

// wish journals the model's request to call tools.
func (s *step) wish(ctx context.Context, entry journal.Entry, resp *llm.Response, offers []Offer) error {
	known := map[string]tools.Definition{}
	for _, d := range offers {
		known[d.Name] = d.Definition
	}
	n := s.state.last() + 1
	entry.Kind = journal.AssistantEntry
	if resp.Stop == llm.StopLength {
		entry.Reason = journal.ReasonLength // the last use may be incomplete
	}
	for i, u := range resp.Uses {
		use := journal.Use{
			Call: fmt.Sprintf("c%d_%d", n, i), Model: u.ID, Name: u.Name,
			Args: rawArgs(u.Args), Extra: u.Extra,
		}
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

// answer ends the turn with the model's answer.
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

// endWith ends the turn after a model call without an answer and keeps its usage.
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

// opaque returns a stable pseudonym of a conversation for the vendor. It serves the vendor's cache and abuse detection
// and reveals no identity.
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

// rawArgs normalises arguments to the form in which a journal returns them, so that a resumed turn compares equal to an
// uninterrupted one. Arguments that are not JSON become a JSON string, which the decode stage rejects with a clear
// message.
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
		return json.RawMessage("{}") // unreachable: every string can be encoded
	}
	return quoted
}
