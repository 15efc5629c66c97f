package agent

// A sub-agent has no journal of its own. Its entries are in the journal of its turn, marked with the call that began it
// (journal.Entry.Child), and its next step is derived from them as the turn's is from the others. So whatever ends,
// moves, keeps or deletes a turn does the same to its sub-agents, and a call of a sub-agent that waits for a person
// parks the turn like any other call. The call that began it only reads, so it is made again when the turn is resumed,
// and the sub-agent goes on where its entries end.

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/policy/source"
	"github.com/zephbot/zephbot/tools"
)

// delegationWait is why a call that gave work to a sub-agent has no result yet.
type delegationWait struct {
	set       bool
	questions []tools.Question // that the sub-agent waits for
	err       error            // of the journal
}

func (h *delegationWait) isOver() bool { return h != nil && h.set }

// recordWait records why there is no result, and returns the error with which the call
// leaves the chain without a trace.
func (h *delegationWait) recordWait(questions []tools.Question, err error) error {
	h.set, h.questions, h.err = true, questions, err
	return &tools.Pending{}
}

// allowDelegation lets a call of the turn give work to a sub-agent. A sub-agent's own calls cannot.
func (s *step) allowDelegation(call *tools.Call) *delegationWait {
	if s.task != nil {
		return nil
	}
	h := &delegationWait{}
	call.Delegate = func(ctx context.Context, task tools.Task) (*tools.Result, error) {
		child := s.childStep(call.ID, &task)
		child.turn.Tools = s.turn.Tools.Narrow(
			func(name string) bool { return name != call.Def.Name && task.Has(name) },
			func(name string) reason.Reason { return notGiven(name, call.Def.Name, task.Name) },
		)
		out, err := child.workOnTask(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, h.recordWait(nil, err)
		case out.Kind == Parked:
			return nil, h.recordWait(out.Questions, s.askNow(ctx, out.Questions))
		case out.Kind == Later:
			s.postponeModel(out)
			return nil, h.recordWait(nil, nil)
		}
		call.Trail.Summary = child.spentLine()
		return child.reportResult(&out), nil
	}
	return h
}

// askNow puts the questions of a sub-agent to people if other calls of the turn still run.
func (s *step) askNow(ctx context.Context, questions []tools.Question) error {
	asker, ok := s.journal.(Asker)
	if !ok || ctx.Err() != nil || len(s.state.openBatch().openUses()) < 2 {
		return nil
	}
	s.state.appending.Lock()
	defer s.state.appending.Unlock()
	if s.state.broken != nil {
		return s.state.broken
	}
	if err := asker.Ask(ctx, questions, s.state.turnStats()); err != nil && ctx.Err() == nil {
		return fmt.Errorf("ask: %w", err)
	}
	return nil
}

// notGiven says why a sub-agent cannot call a tool.
func notGiven(name, delegating, agent string) reason.Reason {
	if name == delegating {
		return reason.New(reason.AgentDelegates, name, agent)
	}
	return reason.New(reason.ToolNotGiven, name, agent)
}

// childStep returns the step of a sub-agent. Without a task, it can only be closed.
func (s *step) childStep(call string, task *tools.Task) *step {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.children[call]
	if c == nil {
		c = &step{Runner: s.Runner, journal: s.journal, slots: s.slots.inheritSlot()}
		c.state = &state{book: s.state.book, turn: s.state.turn, child: call, from: s.state.from}
		if s.children == nil {
			s.children = map[string]*step{}
		}
		s.children[call] = c
	}
	if task == nil && c.task == nil {
		task = &tools.Task{}
		if begun := c.state.currentEntries(); len(begun) > 0 {
			task.Name = begun[0].Speaker
		}
	}
	if task != nil {
		c.task = task
	}
	turn := *s.turn
	turn.Child, turn.Shared, turn.Group = call, false, false
	turn.Origin.Agent, turn.Origin.Parent = c.task.Name, call
	c.turn, c.wants = &turn, s.state.askedText()
	c.sink = muffled{to: s.sink, call: call, name: c.task.Name}
	return c
}

// postponeModel keeps what a sub-agent's unavailable model means for the turn: it waits for the longest of them.
func (s *step) postponeModel(out Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.later == nil || s.later.RetryAfter < out.RetryAfter {
		s.later = &Outcome{Kind: Later, Err: out.Err, RetryAfter: out.RetryAfter}
	}
}

// unavailableModel returns what postpone has kept.
func (s *step) unavailableModel() *Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.later
	s.later = nil
	return out
}

// workOnTask advances a sub-agent as far as possible. Unlike those of a turn, its last entries are stored.
func (s *step) workOnTask(ctx context.Context) (Outcome, error) {
	ctx = zerolog.Ctx(ctx).With().Str("agent", s.task.Name).Logger().WithContext(ctx)
	if len(s.state.currentEntries()) == 0 {
		err := s.appendEntries(ctx, journal.Entry{
			Turn: s.turn.ID, Kind: journal.UserEntry, At: s.deps.Now(), Text: s.task.Text, Speaker: s.task.Name,
		})
		if err != nil {
			return Outcome{}, err
		}
	}
	for {
		if e := s.state.endEntry(); e != nil {
			kind := Answered
			if e.Kind == journal.EndEntry {
				kind = Ended
			}
			return Outcome{Kind: kind, Text: e.Text, Reason: e.Reason}, nil
		}
		if ctx.Err() != nil {
			return Outcome{}, context.Cause(ctx)
		}
		out, err := s.takeStep(ctx)
		switch {
		case err != nil:
			return Outcome{}, err
		case out == nil:
		case out.Kind == Answered, out.Kind == Ended:
			kept, cancel := storingContext(ctx)
			err := s.appendEntries(kept, out.Entries...)
			cancel()
			if err != nil {
				return Outcome{}, err
			}
		default:
			return *out, nil
		}
	}
}

// nextOfTask takes the next step of a sub-agent.
func (s *step) nextOfTask(ctx context.Context, b *batch, open bool) (*Outcome, error) {
	if open {
		if err := s.overBudget(ctx, b); err != nil {
			return nil, err
		}
		return s.executeBatch(ctx, b)
	}
	if b != nil {
		if text, ok := repeatedSteps(s.state.currentEntries(), s.limits.Repeats); ok {
			return s.endWithout(journal.ReasonLoop, text), nil
		}
	}
	offers, more := s.deps.Catalog.Tools(ctx, s.turn, s.state.catalogView()), ""
	if used := s.usedUp(); used != "" {
		more = fmt.Sprintf(windUp, used)
	}
	return s.askWith(ctx, offers, more)
}

// windUp is the last thing that a sub-agent is told.
const windUp = "[the budget of this task is used up: %s. Call no more tools. " +
	"Give the result now, from what you have, and say what is missing]"

// usedUp says which limit of the budget is reached; "" = none.
func (s *step) usedUp() string {
	b, st := s.task.Budget, s.state.turnStats()
	switch {
	case st.Steps >= b.Steps:
		return fmt.Sprintf("%d steps", b.Steps)
	case s.requestedCalls() >= b.Calls:
		return fmt.Sprintf("%d tool calls", b.Calls)
	case st.Usage.Total() >= b.Tokens:
		return fmt.Sprintf("%d tokens", b.Tokens)
	case b.USD > 0 && st.USD >= b.USD:
		return fmt.Sprintf("%g USD", b.USD)
	default:
		return ""
	}
}

// requestedCalls counts the calls that the sub-agent's model has requested.
func (s *step) requestedCalls() int {
	n := 0
	for _, e := range s.state.currentEntries() {
		n += len(e.Uses)
	}
	return n
}

// overBudget closes the uses of a batch that exceed the number of calls.
func (s *step) overBudget(ctx context.Context, b *batch) error {
	most := s.task.Budget.Calls
	over := min(s.requestedCalls()-most, len(b.entry.Uses))
	if over <= 0 {
		return nil
	}
	refused := b.entry.Uses[len(b.entry.Uses)-over:]
	text := tools.Feedback(&tools.Error{
		Category:   tools.PolicyBlocked,
		Message:    fmt.Sprintf("the budget of %d tool calls is used up, so this did not run", most),
		Suggestion: "Give the result from what you have.",
	})
	var entries []journal.Entry
	for _, u := range b.openUses() {
		if b.started[u.Call] || !slices.ContainsFunc(refused, func(r journal.Use) bool { return r.Call == u.Call }) {
			continue
		}
		entries = append(entries, journal.Entry{
			Turn: s.turn.ID, Kind: journal.ResultEntry, At: s.deps.Now(), Call: u.Call, Tool: u.Name,
			Text: text, Failed: true, Category: string(tools.PolicyBlocked),
		})
	}
	if len(entries) == 0 {
		return nil
	}
	return s.appendEntries(ctx, entries...)
}

// reportResult is what the caller reads of a sub-agent that has ended. Its words are those of a model that may have
// read anything, so they are data to the caller.
func (s *step) reportResult(out *Outcome) *tools.Result {
	result := &tools.Result{Text: out.Text, Untrusted: source.Agent(s.task.Name)}
	if out.Kind == Answered {
		switch out.Reason {
		case journal.ReasonLength:
			result.Text += "\n(cut at the token limit)"
		case journal.ReasonFiltered:
			result.Text += "\n(broken off by a content filter of its model's provider)"
		}
		return result
	}
	result.Text = ""
	for _, e := range s.state.currentEntries() {
		if e.Kind == journal.AssistantEntry && strings.TrimSpace(e.Text) != "" {
			result.Text = e.Text
		}
	}
	why := noResult[out.Reason]
	if why == "" {
		why = "its model could not go on (" + out.Reason + ")"
	}
	result.Failure = &tools.Error{
		Category: tools.PermanentFailure, Mistake: true, // not a failure of the tool
		Message: "The sub-agent " + s.task.Name + " ended without a result: " + why + ".",
		Suggestion: "What it said last follows, if it said anything. Do the rest yourself, or tell the person " +
			"what is missing.",
	}
	return result
}

// noResult says why a sub-agent has no result.
var noResult = map[string]string{
	journal.ReasonLoop:    "it repeated the same calls",
	journal.ReasonContext: "what it read exceeds the model's window",
	journal.ReasonBudget:  "a quota of the person is used up",
	journal.ReasonEmpty:   "it said nothing",
	journal.ReasonStopped: "a person stopped it",
}

// spentLine is the line about a sub-agent for the person who watches.
func (s *step) spentLine() string {
	st := s.state.turnStats()
	return fmt.Sprintf("[%s] %d steps, %d tool calls, %d tokens", s.task.Name, st.Steps, st.Calls, st.Usage.Total())
}

// endAbandoned returns the entries that end the sub-agent of a use, if it has one that has not ended.
func (s *step) endAbandoned(ctx context.Context, u journal.Use) []journal.Entry {
	if s.task != nil || !s.state.hasChildren() {
		return nil
	}
	child := s.childStep(u.Call, nil)
	if len(child.state.currentEntries()) == 0 || child.state.endEntry() != nil {
		return nil
	}
	reason, ends := endingReason(ctx)
	if !ends {
		reason = journal.ReasonStopped
	}
	return append(child.closeCancelled(ctx), journal.Entry{
		Turn: s.turn.ID, Child: u.Call, Kind: journal.EndEntry, At: s.deps.Now(), Reason: reason,
	})
}

// costKey is the name under which the cost of a model call is reserved.
func (s *step) costKey(step int) string {
	if s.state.child != "" {
		return fmt.Sprintf("%s/%s/%d", s.turn.ID, s.state.child, step)
	}
	return fmt.Sprintf("%s/%d", s.turn.ID, step)
}

// wantedText is what the person wants, for stages that judge a call: a sub-agent's task is not the person's
// own words, so these come first.
func (s *step) wantedText() string {
	if s.task == nil {
		return s.state.askedText()
	}
	return s.wants + "\n[task of the sub-agent " + s.task.Name + "]\n" + s.task.Text
}

// muffled is the Sink of a sub-agent: of what it does, the person sees one line, with the call that began it. Its words
// are not part of the answer.
type muffled struct {
	to         Sink
	call, name string
}

// Emit implements Sink.
func (m muffled) Emit(ctx context.Context, e Event) {
	line := ""
	switch e.Type {
	case ModelEvent:
		line = "…"
	case ToolStartedEvent:
		line = strings.TrimSpace(e.Tool + " " + e.Args)
	case ToolProgressEvent:
		line = e.Tool + ": " + e.Text
	case DeltaEvent, ResetEvent, ToolFinishedEvent, ThoughtEvent, PlanEvent:
		return
	}
	m.to.Emit(ctx, Event{Type: ToolProgressEvent, Call: m.call, Text: m.name + " · " + line})
}
