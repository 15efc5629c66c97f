package agent

import (
	"context"
	"errors"
	"strings"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/tools"
)

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
	return unknownMark + "This call was running when the service was interrupted. It may have finished, or not, or in part. " +
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
