package bot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Decoder turns a stored update into a Message. Pure: the same bytes give the same message, so that a restart sees what
// was seen before.
type Decoder interface {
	Decode(raw []byte) (Message, error)
}

// Files gives what came along with messages. Safe for concurrent use.
type Files interface {
	// FileLimit is how many bytes a file may have that the channel gives; 0 = any number, or nobody knows before it is
	// asked for.
	FileLimit() int64
	// Fetch opens a file by the id of its Attachment. What it gives is read as it comes; close it. Errors, those of the
	// reader too, hold no secret of the channel. ErrFileTooLarge and ErrFileGone are for good; others may pass.
	Fetch(ctx context.Context, id string) (io.ReadCloser, error)
}

// Why a channel does not give a file; errors.Is works on them.
var (
	ErrFileTooLarge = errors.New("the file is larger than the channel gives out")
	ErrFileGone     = errors.New("the channel does not have the file any more")
)

// Composer turns the agent's Markdown into what a person sees: one Content a message, in order, each within the
// channel's limits.
type Composer interface {
	Compose(markdown string) []Content
}

// Sender executes one outbox row and says what became of it. Safe for concurrent use; one row of a chat at a time.
type Sender interface {
	// Send delivers the row: a new message, an edit when row.Edit is set, a toast when row.Query is. It returns the
	// message's id. Errors are *SendError.
	Send(ctx context.Context, row *Row) (message string, err error)
}

// Live shows what is not yet an answer. All of it may be repeated or lost. Errors are *SendError.
type Live interface {
	// Drafts says whether a growing draft can be shown in this place (Bot API sendMessageDraft: private chats).
	Drafts(place Place) bool
	// Draft shows content as a draft; the same id animates the same draft. It vanishes when a message is sent or after
	// some 30 s.
	Draft(ctx context.Context, place Place, id int64, content Content) error
	// Revise edits a message that is not an answer yet.
	Revise(ctx context.Context, place Place, message string, content Content) error
	// Typing shows that something is being done, for some 5 s.
	Typing(ctx context.Context, place Place) error
}

// SendOutcome says what a failed request has done.
type SendOutcome string

// The outcomes of a request that did not end well (telegram.md outcome table).
const (
	NotSent   SendOutcome = "not_sent"  // it certainly was not executed: repeat
	Throttled SendOutcome = "throttled" // 429: not executed, wait RetryAfter
	Refused   SendOutcome = "refused"   // executed never: repeating does not help
	Gone      SendOutcome = "gone"      // the person blocked the bot or the chat is no more: park the chat
	Moved     SendOutcome = "moved"     // the group has a new id: MovedTo
	Vague     SendOutcome = "unknown"   // the request was written, the answer never came
	Missing   SendOutcome = "missing"   // the message to edit is not there any more
	// the topic is closed or gone, the chat is not: repeating works without the topic
	NoTopic SendOutcome = "no_topic"
)

// SendError is a failed request.
type SendError struct {
	Outcome    SendOutcome
	RetryAfter time.Duration
	MovedTo    string
	Err        error
}

// Error implements error.
func (e *SendError) Error() string { return fmt.Sprintf("%s: %v", e.Outcome, e.Err) }

// Unwrap gives the cause.
func (e *SendError) Unwrap() error { return e.Err }

// OutcomeOf classifies any error of a Sender; an unknown one is Vague, because nobody can say that nothing was sent.
func OutcomeOf(err error) SendOutcome {
	if e, ok := errors.AsType[*SendError](err); ok {
		return e.Outcome
	}
	return Vague
}

// Priority orders requests that compete for a send budget.
type Priority int

// Priorities: an answer before a question before what only shows progress.
const (
	High Priority = iota
	Middle
	Low
)

// Pacer keeps the send budget of a chat and of the bot (contract: telegram.limits) and remembers what a 429 said. Safe
// for concurrent use.
//
// A request counts from when it was let go until a while after it is over: the server sees it at some moment in
// between, so its own count never exceeds the budget, however long the request was on its way. The caller calls done
// once, when the request is over or was not made after all.
type Pacer interface {
	// Wait returns when a request to the chat may go out, or with ctx's error. Low never takes what is kept for the
	// others.
	Wait(ctx context.Context, place Place, priority Priority) (done func(), err error)
	// Try is Wait without waiting for the budget; one on a server may be asked.
	Try(ctx context.Context, place Place, priority Priority) (done func(), ok bool)
	// Freeze stops all requests to the chat for a while; several chats frozen together freeze the bot.
	Freeze(place Place, wait time.Duration)
}
