package agent

// What the journal, the model and people get of a call: its result, or that its outcome is unknown.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/window"
	"github.com/zephbot/zephbot/policy/source"
	"github.com/zephbot/zephbot/tools"
)

// resultEntry builds the journal entry of a finished call. It runs in parallel with other calls,
// so it must not read the journal.
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
	if call.Def.Server == "" {
		e.Words = result.Said
	}
	e.Touched, e.Seen = touchedFiles(call), foundAddresses(call, result)
	return e
}

// refusalOf says to people why a call did not run; nil when it ran, failed, or a person
// who was asked did not approve it.
func refusalOf(call *tools.Call, err *tools.Error) *journal.Refusal {
	t := call.Trail
	judged := t.Judge != "" && t.Judge != "allow"
	switch {
	case !err.Denied() || t.Started:
		return nil
	case t.Effect == "deny" && t.Reason.Known():
		return &journal.Refusal{Reason: t.Reason, Rule: t.Rule}
	case t.Effect == "deny":
		return &journal.Refusal{Reason: err.Why(), Rule: t.Rule}
	case t.Effect == "ask" && call.Origin.Alone:
		return &journal.Refusal{Reason: err.Why(), Rule: t.Rule}
	case t.Effect == "ask" && !judged:
		return nil
	default:
		return &journal.Refusal{Reason: err.Why()}
	}
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

// outputShare is the part of the window that the outputs of one batch may take, and leastRoom what
// each may take even so, in tokens.
const (
	outputShare = 0.20
	leastRoom   = 200
)

// outputRoom returns how many tokens each output of a batch may take: together a fifth of the window, and no more than
// half of what system prompt and tools leave of it, as far as a request of this run has shown their size.
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

// keepFiles stores the files that a tool made and has not stored itself, for the journal, the person and
// the model. A file that cannot be stored is still listed by name, so that the person is told and the
// call, which has run, has a result.
func (s *step) keepFiles(ctx context.Context, files []tools.File) []llm.Part {
	kept, cancel := storingContext(ctx)
	defer cancel()
	parts := make([]llm.Part, 0, len(files))
	for _, f := range files {
		if f.Hash != "" {
			parts = append(parts, llm.Part{
				Kind:     llm.KindOfType(f.MIME),
				Type:     f.MIME,
				Name:     f.Name,
				Hash:     f.Hash,
				Size:     f.Size,
				Text:     f.Caption,
				Outgoing: true,
			})
			continue
		}
		part := llm.Part{Kind: llm.KindOfType(f.MIME), Type: f.MIME, Name: f.Name, Size: int64(len(f.Data))}
		if s.deps.Blobs != nil {
			ref, err := s.deps.Blobs.Put(kept, s.turn.Origin.Session, bytes.NewReader(f.Data))
			if err != nil {
				zerolog.Ctx(ctx).Error().Err(err).Str("file", f.Name).Msg("file of a tool could not be stored")
			}
			part.Hash = ref.Hash
		}
		parts = append(parts, part)
	}
	return parts
}

// unrepeatedResult is the result of a call that was running when another worker died, and that could not be repeated:
// whoever refuses it now knows nothing of what it has done.
func (s *step) unrepeatedResult(
	ctx context.Context, b *batch, u journal.Use, e journal.Entry, why *tools.Error,
) journal.Entry {
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

// unknownOutcome is the category of a result whose outcome is unknown.
const unknownOutcome = "unknown"

// What the model reads for calls whose outcome is unknown. Each text begins with the marker; the advice is for the
// model alone and is never shown to a person. No text may say that a call did not run if it has started.
const (
	unknownMark = llm.OutcomeUnknown + "\n"
	unknownPart = "It may have finished, or not, or in part. It was not repeated."
	tellPerson  = " Tell the person so; ask whether to check first or to run it again."
	askPerson   = " Do not repeat it unless the person asks for that."
	noteFailed  = "\n\nBefore it failed, this call may have done its work, or a part of it. " +
		"Look at what is there before you repeat it."

	// outcomeUnknown is for a call that was running when the process died.
	outcomeUnknown = unknownMark + "This call was running when the service was interrupted. " + unknownPart + tellPerson
	// notRun is for a call that never started, in a turn that ended without closing it.
	notRun = "(no result: the work was interrupted before this was run)"
	// readCut is for a read-only call in a turn that ended without closing it.
	readCut = unknownMark + "This call, which only reads, was interrupted. It may have ended, but its result is lost."
)

// notRepeated is for a call that was running when the process died, and that was refused or failed when it was to be
// repeated.
func notRepeated(why string) string {
	return unknownMark +
		"This call was running when the service was interrupted. It may have finished, or not, or in part. " +
		"Repeating it did not succeed: " + strings.TrimSuffix(why, ".") + "." + tellPerson
}

// cutShort returns what the model reads for a call that was cut off, and the category.
func cutShort(ctx context.Context) (text, category string) {
	switch reason, _ := endingReason(ctx); reason {
	case journal.ReasonStopped:
		return unknownMark + "The person stopped this call while it ran. " + unknownPart + askPerson,
			string(tools.Cancelled)
	case journal.ReasonOvertaken:
		return unknownMark + "The person's next message ended this call while it ran. " + unknownPart + askPerson,
			string(tools.Cancelled)
	case journal.ReasonGone:
		return unknownMark + "The bot was blocked or removed from the chat while this call ran, so it was ended. " +
			unknownPart + askPerson, string(tools.Cancelled)
	}
	if errors.Is(context.Cause(ctx), ErrRevised) {
		return unknownMark + "The person changed the message while this call ran, so it was ended. " + unknownPart,
			string(tools.Cancelled)
	}
	// nobody asked for this, so the category is not "cancelled"
	return unknownMark + "This call was ended half-way because the service was restarted. " +
		unknownPart + tellPerson, unknownOutcome
}

// notBegun is what the model reads for a call that had not started when its turn was ended.
func notBegun(ctx context.Context) string {
	switch reason, _ := endingReason(ctx); reason {
	case journal.ReasonGone:
		const gone = "the bot was blocked or removed from the chat before this ran"
		return tools.Feedback(tools.Errorf(tools.Cancelled, gone))
	case journal.ReasonOvertaken:
		return tools.Feedback(tools.Errorf(tools.Cancelled, "the person's next message ended this before it ran"))
	}
	return tools.Feedback(tools.Errorf(tools.Cancelled, "the person stopped this before it ran"))
}

// doubtText follows the error block of a call that can change something and failed in a way that leaves open how far it
// got.
func doubtText(e *tools.Error) string {
	switch e.Category {
	case tools.Timeout, tools.NetworkError, tools.ServerError, tools.Cancelled:
		return noteFailed
	}
	if e.Begun {
		return noteFailed
	}
	return ""
}

// forPeople removes from a text what was meant for the model alone. Otherwise a model that repeats what it read would
// pass its own instructions on to a person.
func forPeople(text string) string {
	if !strings.Contains(text, llm.OutcomeUnknown) && !strings.Contains(text, tellPerson[1:]) {
		return text
	}
	return strings.NewReplacer(
		unknownMark, "", llm.OutcomeUnknown, "", noteFailed, "",
		tellPerson, "", tellPerson[1:], "", askPerson, "",
	).Replace(text)
}

// shownResult is what a person sees of a result. Our own error block is reduced to what happened, without the advice
// for the model; "" if nothing of it is useful to a person.
func shownResult(e journal.Entry) string {
	if !e.Failed || (e.Category == "" && !strings.HasPrefix(e.Text, "[tool_error]")) {
		return e.Text
	}
	for line := range strings.Lines(e.Text) {
		if reason, ok := strings.CutPrefix(line, "error: "); ok {
			return strings.TrimSpace(strings.ReplaceAll(reason, llm.OutcomeUnknown, ""))
		}
	}
	return ""
}

// maxShownSchema bounds the schema that the model is shown again after a mistake, in bytes.
const maxShownSchema = 2000

// stopAt is the number of steps with mistakes in one turn after which the model is told to stop calling a tool.
const stopAt = 3

// The sentences of a self-reflection (seeds 000 and 003). They follow the error block, which is unchanged.
const (
	reflectOnCall = "\n\nSay in one sentence what was wrong with this call, then make the corrected call."
	reflectOnName = "\n\nSay in one sentence what was wrong with this call, " +
		"then call a tool that you were offered, or answer without it."
	reflectNoMore = "\n\nThis tool has been called wrongly too often in this turn. " +
		"Do not call it again: tell the person what you could not do, and why."
)

// reflectionText returns the text after the error block of a mistake that the model made itself, or "" for any other
// failure, such as a server that is down. failed counts the earlier steps of the turn in which calls of the tool ended
// with such a mistake. It counts steps rather than calls because the model reads the results of a step together and
// could not have corrected itself in between.
func reflectionText(c tools.Category, def tools.Definition, failed int) string {
	switch {
	case !c.Quality():
		return ""
	case failed+1 >= stopAt:
		return reflectNoMore
	case c == tools.ToolNotFound:
		return reflectOnName
	}
	text := reflectOnCall
	if failed > 0 {
		if schema := compactSchema(def.Schema); schema != "" {
			text += "\nThe schema of its arguments: " + schema
		}
	}
	return text
}

// withoutReflection returns the error block alone. The sentences after it change from step to step even if the mistake
// is the same.
func withoutReflection(e journal.Entry) string {
	if !e.Failed || !tools.Category(e.Category).Quality() {
		return e.Text
	}
	block, _, _ := strings.Cut(e.Text, "\n\n")
	return block
}

// compactSchema writes a schema in one line. If it is too long, it is written without descriptions; if it still is,
// compact returns "", because the model has the schema from the request and half a schema would mislead it.
func compactSchema(schema json.RawMessage) string {
	var line bytes.Buffer
	if len(schema) == 0 || json.Compact(&line, schema) != nil {
		return ""
	}
	if line.Len() <= maxShownSchema {
		return line.String()
	}
	var tree any
	d := json.NewDecoder(&line)
	d.UseNumber()
	if d.Decode(&tree) != nil {
		return ""
	}
	short, err := json.Marshal(withoutDescriptions(tree, false))
	if err != nil || len(short) > maxShownSchema {
		return ""
	}
	return string(short)
}

// withoutDescriptions removes descriptions from a schema. Names of properties are never removed; names reports that
// the keys of v are property names.
func withoutDescriptions(v any, names bool) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			switch key {
			case "description", "title", "examples", "$comment", "$schema", "$id":
				if !names {
					continue
				}
			}
			inner := key == "properties" || key == "patternProperties" || key == "$defs" || key == "definitions"
			out[key] = withoutDescriptions(value, !names && inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = withoutDescriptions(value, false)
		}
		return out
	default:
		return v
	}
}

// halfWritten closes the uses that were incomplete when an answer was cut at the token limit. What was written may be
// half a command, so it must not be repaired and run.
func (s *step) halfWritten(ctx context.Context, b *batch) error {
	if b.entry.Reason != journal.ReasonLength {
		return nil
	}
	for _, u := range b.openUses() {
		if b.started[u.Call] || wholeArguments(u, b.entry.Uses) {
			continue
		}
		text := tools.Feedback(&tools.Error{
			Category:   tools.InvalidParameters,
			Message:    "your answer was cut at the token limit before this call was complete, so it was not run",
			Suggestion: "Make the call again, with shorter arguments or in several steps.",
		})
		err := s.appendEntries(ctx, journal.Entry{
			Turn: s.turn.ID, Kind: journal.ResultEntry, At: s.deps.Now(),
			Call: u.Call, Tool: u.Name,
			Text: text, Failed: true, Category: string(tools.InvalidParameters),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wholeArguments reports whether the arguments of a use are a complete JSON object. "{}" in the last use counts as
// incomplete, because its arguments may not have started.
func wholeArguments(u journal.Use, uses []journal.Use) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal(u.Args, &object) != nil || object == nil {
		return false
	}
	return len(object) > 0 || u.Call != uses[len(uses)-1].Call
}
