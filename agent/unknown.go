package agent

import (
	"context"
	"strings"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/tools"
)

// unknownOutcome is the category of a result that nobody knows.
const unknownOutcome = "unknown"

// What the model reads of calls whose outcome nobody knows. Each begins with the mark; the advice is for the model
// alone and never reaches a person as it is. Nothing here may say of a call that has begun that it did not run.
const (
	unknownMark = llm.OutcomeUnknown + "\n"
	unknownPart = "It may have finished, or not, or in part. It was not repeated."
	tellPerson  = " Tell the person so; ask whether to check first or to run it again."
	askPerson   = " Do not repeat it unless the person asks for that."
	noteFailed  = "\n\nBefore it failed, this call may have done its work, or a part of it. Look at what is there before you repeat it."

	// outcomeUnknown is of a call that was running when the process died.
	outcomeUnknown = unknownMark + "This call was running when the service was interrupted. " + unknownPart + tellPerson
	// notRun is of a call that was never begun, in a turn that ended without closing it.
	notRun = "(no result: the work was interrupted before this was run)"
	// readCut is of a call that only reads, in a turn that ended without closing it.
	readCut = unknownMark + "This call, which only reads, was interrupted. It may have ended, but its result is lost."
)

// cutShort is what the model reads of a call that was ended half-way, with its category.
func cutShort(ctx context.Context) (text, category string) {
	switch reason, _ := ending(ctx); reason {
	case journal.ReasonStopped:
		return unknownMark + "The person stopped this call while it ran. " + unknownPart + askPerson, string(tools.Cancelled)
	case journal.ReasonGone:
		return unknownMark + "The bot was blocked or removed from the chat while this call ran, so it was ended. " + unknownPart + askPerson, string(tools.Cancelled)
	default: // nobody wished for that, so it is not "cancelled"
		return unknownMark + "This call was ended half-way because the service was restarted. " + unknownPart + tellPerson, unknownOutcome
	}
}

// notBegun is what the model reads of a call that had not begun when its turn was ended.
func notBegun(ctx context.Context) string {
	if reason, _ := ending(ctx); reason == journal.ReasonGone {
		return tools.Feedback(tools.Errorf(tools.Cancelled, "the bot was blocked or removed from the chat before this ran"))
	}
	return tools.Feedback(tools.Errorf(tools.Cancelled, "the person stopped this before it ran"))
}

// doubt follows on the block of a call that may change something and failed in a way that leaves open how far it had
// come.
func doubt(c tools.Category) string {
	switch c {
	case tools.Timeout, tools.NetworkError, tools.ServerError, tools.Cancelled:
		return noteFailed
	default:
		return ""
	}
}

// forPeople takes out of a text what was told to the model alone: a model that repeats what it read would give a person
// orders that were meant for it.
func forPeople(text string) string {
	if !strings.Contains(text, llm.OutcomeUnknown) && !strings.Contains(text, tellPerson[1:]) {
		return text
	}
	return strings.NewReplacer(unknownMark, "", llm.OutcomeUnknown, "", tellPerson, "", tellPerson[1:], "", askPerson, "", noteFailed, "").Replace(text)
}

// shownResult is what a person is shown of a result: a block of ours is cut down to what happened, without the advice
// that follows on it for the model; "" where there is nothing that a person could use.
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
