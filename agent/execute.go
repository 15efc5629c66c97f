package agent

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/window"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/policy/source"
	"github.com/zephbot/zephbot/tools"
)

// executeBatch runs the uses of a batch that have no result yet: read-only ones in parallel, the others one at a time in the
// model's order, up to the first that waits for a person. The questions of all uses are sent together.
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
		// The first that waits is asked about again, now that everything before it has run: what it would do is known then.
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

// waitsFor returns what a batch waits for; nil = for nothing. A model that is unavailable is waited for first: what then
// still needs a person is asked again.
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

// closeUnknown closes the calls that were running when another worker died, unless they may run again: those that only read,
// and those whose effect is stored once for each call.
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

// probeUses asks for every open use whether it may run now. A batch of one is not probed because running it gives the same
// answer.
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
func (s *step) probeAgain(ctx context.Context, b *batch, uses []journal.Use, questions []tools.Question) []tools.Question {
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
			kept, cancel := storingContext(gctx) // a result that was read is kept, even if another call of the batch fails
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

// performUse walks the chain for one use. It returns its result, nil if the use has to wait, and the questions for which
// it waits. An error comes from the journal or the context, never from the tool: a failure of the tool is a result.
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
	s.sink.Emit(ctx, Event{
		Type: ToolFinishedEvent, Call: u.Call, Tool: u.Name,
		Failed: entry.Failed, Text: call.Trail.Summary,
	})
	return &entry, nil, nil
}

// hadBegun reports whether a use may have had an effect before this run of the turn: it was running when another worker
// died. A call that only reads had none, unless it is the work of a sub-agent.
func (s *step) hadBegun(b *batch, u journal.Use) bool {
	if b.started[u.Call] && !u.ReadOnly {
		return true
	}
	return s.task == nil && s.state.hasChildren() && len(s.childStep(u.Call, nil).state.currentEntries()) > 0
}

// unrepeatedResult is the result of a call that was running when another worker died, and that could not be repeated: whoever
// refuses it now knows nothing of what it has done.
func (s *step) unrepeatedResult(ctx context.Context, b *batch, u journal.Use, e journal.Entry, why *tools.Error) journal.Entry {
	if !u.ReadOnly {
		s.deps.Tools.Interrupted(ctx, s.newCall(b, u))
	}
	e.Text, e.Category, e.Refusal, e.Ran = notRepeated(why.Message), unknownOutcome, nil, true
	return e
}

// markCutResult marks the result of a call that was cut off because its turn ended. Output printed before that is kept.
func markCutResult(ctx context.Context, entry *journal.Entry, result *tools.Result, err error) {
	failure, output := err, ""
	if err == nil && result.Failure != nil { // it started, and its output was kept
		failure = result.Failure
		_, output, _ = strings.Cut(result.Text, tools.Feedback(result.Failure))
	}
	if failure == nil || ctx.Err() == nil || !cutByContext(failure) { // the call ended on its own
		return
	}
	entry.Text, entry.Category = cutShort(ctx)
	entry.Text += output
}

// cutByContext reports whether a call ended because its context did.
func cutByContext(err error) bool {
	return errors.Is(err, context.Canceled) || tools.AsError(err).Category == tools.Cancelled
}

// refusalOf says to people why a call did not run; nil when it ran, failed, or a person who was asked did not approve it.
func refusalOf(call *tools.Call, err *tools.Error) *journal.Refusal {
	t := call.Trail
	judged := t.Judge != "" && t.Judge != "allow"
	switch {
	case !err.Denied || t.Started:
		return nil
	case t.Effect == "deny":
		return &journal.Refusal{Reason: reason.Or(t.Reason, err.Message), Rule: t.Rule}
	case t.Effect == "ask" && call.Origin.Alone:
		return &journal.Refusal{Reason: err.Why(), Rule: t.Rule}
	case t.Effect == "ask" && !judged:
		return nil
	default:
		return &journal.Refusal{Reason: err.Why()}
	}
}

// resultEntry builds the journal entry of a finished call. It runs in parallel with other calls, so it must not read the
// journal.
func (s *step) resultEntry(b *batch, u journal.Use, call *tools.Call, result *tools.Result, err error) journal.Entry {
	e := journal.Entry{
		Turn: s.turn.ID, Kind: journal.ResultEntry, At: s.deps.Now(),
		Call: u.Call, Tool: u.Name, Flagged: call.Trail.Injection,
		Rule: call.Trail.Rule, By: call.Trail.ApprovedBy, Cleared: call.Trail.Cleared,
		Ran: call.Trail.Started || call.Trail.Cached, Audit: call.Trail.Audit,
		Millis: call.Trail.Duration.Milliseconds(), Notices: call.Trail.Notices,
		Opened: s.state.openedSites().takenSites(u.Call), Wrote: mayWrite(call),
	}
	if e.Wrote {
		e.Touched = touchedFiles(call)
	}
	for _, l := range call.Trail.Left {
		e.Left = append(e.Left, journal.Left(l))
	}
	if err != nil {
		te := tools.AsError(err)
		e.Text = tools.Feedback(te) + reflectionText(te.Category, call.Def, b.failed[u.Name])
		e.Failed = true
		e.Category = string(te.Category)
		e.Refusal = refusalOf(call, te)
		if call.Trail.Started && !u.ReadOnly {
			e.Text += doubtText(te)
		}
		e.Source, e.Brought = te.Untrusted, te.Untrusted != source.None
		if e.Flagged && e.Source == source.None {
			e.Source = call.Source(nil)
		}
		return e
	}
	e.Text, e.Failed, e.Source = result.Text, result.Error, call.Source(result)
	e.Brought = call.Def.Stated().Act.Brings() || e.Source != source.None && e.Source != source.Memory
	if result.Failure != nil {
		e.Category = string(result.Failure.Category)
	}
	if call.Def.Server == "" {
		e.Found = result.Found
	}
	e.Touched, e.Seen = touchedFiles(call), foundAddresses(call, result)
	return e
}

// mostTouched bounds the paths of one call that the journal keeps. After flagged content, work on a path that was
// dropped needs a new approval; nothing else depends on it.
const mostTouched = 32

// touchedFiles lists the files that a call of a built-in tool worked on.
func touchedFiles(call *tools.Call) []string {
	if call.Def.Server != "" {
		return nil
	}
	var list []string
	for _, path := range call.Subject.Paths {
		if !strings.Contains(path, "://") && len(list) < mostTouched {
			list = append(list, path)
		}
	}
	return list
}

// outputShare is the part of the window that the outputs of one batch may take, and leastRoom what each may take even so,
// in tokens.
const (
	outputShare = 0.20
	leastRoom   = 200
)

// outputRoom returns how many tokens each output of a batch may take: together a fifth of the window, and no more than half of
// what system prompt and tools leave of it, as far as a request of this run has shown their size.
func (s *step) outputRoom(uses int) int {
	budget := s.windowSize()
	if budget <= 0 {
		return 0
	}
	most := int(float64(budget) * outputShare)
	if s.fixed > 0 {
		most = min(most, (int(float64(budget)*window.Limit)-s.fixed)/2)
	}
	return max(most/max(uses, 1), leastRoom)
}

func (s *step) newCall(b *batch, u journal.Use) *tools.Call {
	at, now := s.state.standingAt(b.entry.N), s.state.standing()
	batches, calls := at.Of(at.Caller) // of the turn's owner
	calls -= len(b.entry.Uses)
	own := slices.IndexFunc(b.entry.Uses, func(other journal.Use) bool { return other.Call == u.Call })
	known := &addresses{said: now.Said, seen: now.Seen, call: u.Call, sites: s.state.openedSites()}
	return &tools.Call{
		Addresses: known,
		ID:        u.Call, Batch: b.entry.N, Tool: u.Name, Args: u.Args, Definition: u.Definition,
		Origin: s.turn.Origin, Trail: &tools.Trail{}, Tools: s.turn.Tools,
		Room: s.outputRoom(len(b.entry.Uses)), Ask: s.wantedText(), Said: s.state.typedText(), Foreign: now.Foreign, Suspicious: now.Suspicious,
		Touched: now.Touched, BatchN: batches, CallN: calls + own + 1,
		Began: now.Began, Earlier: s.state.earlierCalls(b.entry.N), Ahead: s.changedBefore(own),
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
