package agent

// The calls of a step run: those that only read side by side, the others one at a time in the model's order.

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/tools"
)

// executeBatch runs the uses of a batch that have no result yet: read-only ones in parallel, the others one at a time
// in the model's order, up to the first that waits for a person. The questions of all uses are sent together.
func (s *step) executeBatch(ctx context.Context, b *batch) (*Outcome, error) {
	if err := s.closeUses(ctx, b); err != nil {
		return nil, err
	}
	b.step = s.state.turnStats().Steps
	open := s.state.openBatch().openUses()
	waiting, questions := s.probeUses(ctx, b, open)
	var readers, writers []journal.Use
	for _, u := range open {
		switch {
		case u.ReadOnly && waiting[u.Call]:
		case u.ReadOnly:
			readers = append(readers, u)
		default:
			writers = append(writers, u)
		}
	}
	late, err := s.sideBySide(ctx, b, readers)
	if err != nil {
		return nil, err
	}
	away := s.unavailableModel()
	questions = append(questions, late...)
	for i, u := range writers {
		if ctx.Err() != nil { // a stopped turn asks no more questions
			return nil, context.Cause(ctx)
		}
		// The first that waits is asked about again, now that everything before it has run:
		// what it would do is known then.
		asked, err := s.runUse(ctx, b, u)
		if err != nil {
			return nil, err
		}
		if waiting[u.Call] {
			questions = slices.DeleteFunc(questions, func(q tools.Question) bool { return q.Call == u.Call })
		}
		if questions = append(questions, asked...); len(asked) > 0 {
			if i > 0 { // what the calls behind it would do is shown as of now
				questions = s.probeAgain(ctx, b, writers[i+1:], questions)
			}
			break
		}
	}
	return waitsFor(ctx, open, questions, away)
}

// waitsFor returns what a batch waits for; nil = for nothing. A model that is unavailable is waited for first: what
// then still needs a person is asked again.
func waitsFor(ctx context.Context, open []journal.Use, questions []tools.Question, away *Outcome) (*Outcome, error) {
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case away != nil:
		return away, nil
	case len(questions) == 0:
		return nil, nil
	}
	order := map[string]int{}
	for i, u := range open {
		order[u.Call] = i
	}
	slices.SortStableFunc(questions, func(a, b tools.Question) int { return order[a.Call] - order[b.Call] })
	return &Outcome{Kind: Parked, Questions: questions}, nil
}

// closeUses writes a result for the uses that must not run: those that were running when another worker died, and those
// that were truncated in the model's answer.
func (s *step) closeUses(ctx context.Context, b *batch) error {
	if err := s.closeUnknown(ctx, b); err != nil {
		return err
	}
	return s.halfWritten(ctx, b)
}

// closeUnknown closes the calls that were running when another worker died, unless they may run again: those that only
// read, and those whose effect is stored once for each call.
func (s *step) closeUnknown(ctx context.Context, b *batch) error {
	for _, u := range b.openUses() {
		if !b.started[u.Call] || u.Again() {
			continue
		}
		s.deps.Tools.Interrupted(ctx, s.newCall(b, u))
		err := s.appendEntries(ctx, journal.Entry{
			Turn: s.turn.ID, Kind: journal.ResultEntry, At: s.deps.Now(),
			Call: u.Call, Tool: u.Name,
			Text: outcomeUnknown, Failed: true, Category: unknownOutcome, Ran: true,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// probeUses asks for every open use whether it may run now. A batch of one is not probed because
// running it gives the same answer.
func (s *step) probeUses(
	ctx context.Context, b *batch, open []journal.Use,
) (waiting map[string]bool, questions []tools.Question) {
	waiting = map[string]bool{}
	if len(open) < 2 {
		return waiting, nil
	}
	for _, u := range open {
		call := s.newCall(b, u)
		call.Probe = true
		_, err := s.deps.Tools.Execute(ctx, call)
		if pending, ok := errors.AsType[*tools.Pending](err); ok {
			waiting[u.Call] = true
			questions = append(questions, pending.Question)
		}
	}
	return waiting, questions
}

// probeAgain replaces the questions of calls by new ones, because others have run since they were asked.
func (s *step) probeAgain(
	ctx context.Context, b *batch, uses []journal.Use, questions []tools.Question,
) []tools.Question {
	for _, u := range uses {
		at := slices.IndexFunc(questions, func(q tools.Question) bool { return q.Call == u.Call })
		if at < 0 {
			continue
		}
		call := s.newCall(b, u)
		call.Probe = true
		_, err := s.deps.Tools.Execute(ctx, call)
		if pending, ok := errors.AsType[*tools.Pending](err); ok {
			questions[at] = pending.Question
		} else { // it is decided about when it runs
			questions = slices.Delete(questions, at, at+1)
		}
	}
	return questions
}

// sideBySide runs read-only uses in parallel, at most Limits.Parallel at once in the whole turn.
func (s *step) sideBySide(ctx context.Context, b *batch, uses []journal.Use) ([]tools.Question, error) {
	questions := make([][]tools.Question, len(uses))
	g, gctx := errgroup.WithContext(ctx)
	if s.slots == nil {
		s.slots = newSlots(s.limits.Parallel)
	}
	calls := make([]*tools.Call, len(uses))
	for i, u := range uses { // before any of them runs and appends: a call is built from the journal
		calls[i] = s.newCall(b, u)
	}
	for i, u := range uses {
		release := s.slots.takeSlot(gctx)
		if release == nil {
			break
		}
		g.Go(func() error {
			defer release()
			entry, asked, err := s.performUse(gctx, b, u, calls[i], nil)
			if err != nil {
				return err
			}
			if entry == nil {
				questions[i] = asked
				return nil
			}
			// a result that was read is kept, even if another call of the batch fails
			kept, cancel := storingContext(gctx)
			defer cancel()
			return s.appendEntries(kept, append(s.endAbandoned(kept, u), *entry)...)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // before all of them were begun
		return nil, context.Cause(ctx)
	}
	return slices.Concat(questions...), nil
}

// runUse executes one use that can change something. The journal has a started entry before it and the result after it.
func (s *step) runUse(ctx context.Context, b *batch, u journal.Use) ([]tools.Question, error) {
	entry, asked, err := s.performUse(ctx, b, u, s.newCall(b, u), func(ctx context.Context) error {
		return s.appendEntries(ctx, journal.Entry{
			Turn: s.turn.ID, Kind: journal.StartedEntry, At: s.deps.Now(), Call: u.Call, Tool: u.Name,
		})
	})
	if err != nil || entry == nil {
		return asked, err
	}
	// The work is done: its result must reach the journal even if the turn is being stopped or the service is shutting
	// down.
	kept, cancel := storingContext(ctx)
	defer cancel()
	return nil, s.appendEntries(kept, append(s.endAbandoned(kept, u), *entry)...)
}

// performUse walks the chain for one use. It returns its result, nil if the use has to wait, and the
// questions for which it waits. An error comes from the journal or the context, never from the tool: a
// failure of the tool is a result.
func (s *step) performUse(
	ctx context.Context, b *batch, u journal.Use, call *tools.Call, onStart func(context.Context) error,
) (*journal.Entry, []tools.Question, error) {
	held := s.allowDelegation(call)
	var startErr error
	call.OnStart = func(ctx context.Context) error {
		s.recordStart(u.Call)
		if onStart != nil && !call.Trail.Reading { // a call that can change nothing may be made again
			if startErr = onStart(ctx); startErr != nil {
				return startErr
			}
		}
		if u.Plans {
			return nil // it is shown once it has run
		}
		s.sink.Emit(ctx, Event{
			Type: ToolStartedEvent, Call: u.Call, Tool: u.Name, Verb: call.Def.Stated().Verb,
			Args: call.Subject.Show, Step: b.step,
		})
		return nil
	}
	call.Progress = func(text string) {
		s.sink.Emit(ctx, Event{Type: ToolProgressEvent, Call: u.Call, Tool: u.Name, Text: text})
	}
	result, err := s.deps.Tools.Execute(ctx, call)
	var pending *tools.Pending
	switch {
	case held.isOver():
		return nil, held.questions, held.err
	case errors.As(err, &pending):
		return nil, []tools.Question{pending.Question}, nil
	case startErr != nil:
		return nil, nil, startErr
	case err != nil && ctx.Err() != nil && !call.Trail.Started:
		return nil, nil, context.Cause(ctx)
	case err != nil && ctx.Err() != nil && u.Again():
		return nil, nil, context.Cause(ctx) // the call will be run again
	}
	entry := s.resultEntry(b, u, call, result, err)
	if err != nil && s.hadBegun(b, u) {
		entry = s.unrepeatedResult(ctx, b, u, entry, tools.AsError(err))
	}
	if err == nil && len(result.Files) > 0 {
		entry.Parts = s.keepFiles(ctx, result.Files)
	}
	markCutResult(ctx, &entry, result, err)
	if u.Plans && !entry.Failed {
		s.showPlan(ctx, u)
		return &entry, nil, nil
	}
	s.sink.Emit(ctx, Event{
		Type: ToolFinishedEvent, Call: u.Call, Tool: u.Name, Verb: call.Def.Stated().Verb, Args: call.Subject.Show,
		Failed: entry.Failed, Text: call.Trail.Summary,
	})
	return &entry, nil, nil
}

// showPlan shows the plan of a use that has run.
func (s *step) showPlan(ctx context.Context, u journal.Use) {
	if list, err := tools.ReadPlan(u.Args); err == nil { // checked by the call
		s.sink.Emit(ctx, Event{Type: PlanEvent, Call: u.Call, Plan: list})
	}
}

// showLastPlan shows the plan of a turn that goes on, also in another process.
func (s *step) showLastPlan(ctx context.Context) {
	uses, last := map[string]journal.Use{}, journal.Use{}
	for _, e := range s.state.currentEntries() {
		for _, u := range e.Uses {
			uses[u.Call] = u
		}
		if u := uses[e.Call]; e.Kind == journal.ResultEntry && u.Plans && !e.Failed {
			last = u
		}
	}
	if last.Plans {
		s.showPlan(ctx, last)
	}
}

// hadBegun reports whether a use may have had an effect before this run of the turn: it was running when another worker
// died. A call that only reads had none, unless it is the work of a sub-agent.
func (s *step) hadBegun(b *batch, u journal.Use) bool {
	if b.started[u.Call] && !u.ReadOnly {
		return true
	}
	return s.task == nil && s.state.hasChildren() && len(s.childStep(u.Call, nil).state.currentEntries()) > 0
}

func (s *step) newCall(b *batch, u journal.Use) *tools.Call {
	at, now := s.state.conversationStateAt(b.entry.N), s.state.conversationState()
	batches, calls := at.Of(at.Caller) // of the turn's owner
	calls -= b.entry.Counted(len(b.entry.Uses))
	own := slices.IndexFunc(b.entry.Uses, func(other journal.Use) bool { return other.Call == u.Call })
	known := &addresses{said: now.Said, seen: now.Seen, call: u.Call, sites: s.state.openedSites()}
	return &tools.Call{
		Addresses:  known,
		ID:         u.Call,
		Batch:      b.entry.N,
		Tool:       u.Name,
		Args:       u.Args,
		Definition: u.Definition,
		Origin:     s.turn.Origin,
		Trail:      &tools.Trail{},
		Tools:      s.turn.Tools,
		Room:       s.outputRoom(len(b.entry.Uses)),
		Ask:        s.wantedText(),
		Said:       s.state.typedText(),
		Foreign:    now.Foreign,
		Suspicious: now.Suspicious,
		Touched:    now.Touched,
		BatchN:     batches,
		CallN:      calls + b.entry.Counted(own) + 1,
		Began:      now.Began,
		Earlier:    s.state.earlierCalls(b.entry.N),
		Ahead:      s.changedBefore(own),
	}
}

// changedBefore returns what the uses of the open batch before the one at index own have changed in files.
func (s *step) changedBefore(own int) []tools.FileState {
	b := s.state.openBatch()
	if b == nil {
		return nil
	}
	var list []tools.FileState
	for i, u := range b.entry.Uses {
		if i == own {
			break
		}
		for _, l := range b.results[u.Call].Left {
			list = append(list, tools.FileState(l))
		}
	}
	return list
}

// recordStart records that a call is running.
func (s *step) recordStart(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun == nil {
		s.begun = map[string]bool{}
	}
	s.begun[call] = true
}

// closeCancelled closes the uses of an ending turn that have no result.
func (s *step) closeCancelled(ctx context.Context) []journal.Entry {
	b := s.state.openBatch()
	if b == nil {
		return nil
	}
	kept, cancel := storingContext(ctx)
	defer cancel()
	var entries []journal.Entry
	for _, u := range b.openUses() {
		entries = append(entries, s.endAbandoned(ctx, u)...)
		text := notBegun(ctx)
		s.mu.Lock()
		begun := s.begun[u.Call]
		s.mu.Unlock()
		switch {
		case b.started[u.Call]: // it was running when another worker died, which nobody has recorded yet
			s.deps.Tools.Interrupted(kept, s.newCall(b, u))
			text, _ = cutShort(ctx)
		case begun:
			text, _ = cutShort(ctx)
		}
		entries = append(entries, journal.Entry{
			Turn: s.turn.ID, Child: s.state.child, Kind: journal.ResultEntry, At: s.deps.Now(),
			Call: u.Call, Tool: u.Name, Ran: begun || b.started[u.Call],
			Text: text, Failed: true, Category: string(tools.Cancelled),
		})
	}
	return entries
}

// slots bounds how many calls of a turn run at once, those of its sub-agents included. A call that began a sub-agent
// only waits for it, so its slot is the sub-agent's: each can always run one call, and no call waits for one that waits
// for it. A nil *slots bounds nothing. Safe for concurrent use.
type slots struct {
	own    chan struct{} // of the call that began the sub-agent; nil = these are the turn's
	common chan struct{} // of the turn: one element for each free slot
}

// newSlots returns n free slots; negative = no limit.
func newSlots(n int) *slots {
	if n < 0 {
		return nil
	}
	return &slots{common: filledSlots(max(n, 1))}
}

func filledSlots(n int) chan struct{} {
	free := make(chan struct{}, n)
	for range n {
		free <- struct{}{}
	}
	return free
}

// inheritSlot returns the slots of a sub-agent that a call with a slot has begun.
func (s *slots) inheritSlot() *slots {
	if s == nil {
		return nil
	}
	return &slots{own: filledSlots(1), common: s.common}
}

// takeSlot waits for a free slot and returns what frees it, or nil if ctx ended first.
func (s *slots) takeSlot(ctx context.Context) (release func()) {
	if s == nil {
		return func() {}
	}
	select {
	case <-s.own: // first, because nobody else can use it
		return func() { s.own <- struct{}{} }
	default:
	}
	select {
	case <-s.own:
		return func() { s.own <- struct{}{} }
	case <-s.common:
		return func() { s.common <- struct{}{} }
	case <-ctx.Done():
		return nil
	}
}
