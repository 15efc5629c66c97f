package bot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Decoder decodes a stored update to a Message. It is pure: the same bytes give the same message, also after a restart.
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
// channel's limits. language is the reader's, an IETF tag. What would flood a chat is shortened, and ends with a file
// that has all of it.
type Composer interface {
	Compose(markdown string, to Place, language string) []Content
	// Divide does so with what is formatted already, such as the reply to a command. What fits into one message, and
	// what has a file, is returned as it is.
	Divide(content Content, to Place, language string) []Content
}

// Sender executes one outbox row and reports its outcome. Safe for concurrent use, with one row of a chat at a time.
type Sender interface {
	// Send delivers the row: a new message, an edit if row.Edit is set, or a toast if row.Query is set. It returns the
	// id of the message. Errors are *SendError.
	Send(ctx context.Context, row *Row) (message string, err error)
}

// Live shows what is not an answer yet. All of it may be repeated or lost. Errors are *SendError.
type Live interface {
	// Drafts reports whether a growing draft can be shown in this place (Bot API sendMessageDraft: private chats).
	Drafts(place Place) bool
	// Draft shows content as a draft; a call with the same id animates the same draft. It disappears when a message is
	// sent or after about 30 s.
	Draft(ctx context.Context, place Place, id int64, content Content) error
	// Revise edits a message that is not an answer yet.
	Revise(ctx context.Context, place Place, message string, content Content) error
	// Typing shows for about 5 s that the bot is working.
	Typing(ctx context.Context, place Place) error
}

// Reactor shows small signs on messages of people. Errors are *SendError.
type Reactor interface {
	// React sets the bot's one reaction on a message, "" removes it. It may be repeated.
	React(ctx context.Context, place Place, message, emoji string) error
}

// SendOutcome is what a failed request has done.
type SendOutcome string

// The outcomes of a failed request (telegram.md outcome table).
const (
	NotSent   SendOutcome = "not_sent"  // certainly not executed: repeat
	Throttled SendOutcome = "throttled" // 429: not executed, wait RetryAfter
	Refused   SendOutcome = "refused"   // never executed: repeating does not help
	Gone      SendOutcome = "gone"      // the person blocked the bot or the chat no longer exists: park the chat
	Moved     SendOutcome = "moved"     // the group has a new id: MovedTo
	Vague     SendOutcome = "unknown"   // the request was written, but no response arrived
	Missing   SendOutcome = "missing"   // the message to edit no longer exists
	// The topic is closed or deleted, but the chat exists: repeat without the topic.
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

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }

// OutcomeOf classifies any error of a Sender. An unknown error is Vague, because something may have been sent.
func OutcomeOf(err error) SendOutcome {
	if e, ok := errors.AsType[*SendError](err); ok {
		return e.Outcome
	}
	return Vague
}

// Priority orders requests that compete for a send budget.
type Priority int

// Priorities: answers before questions before progress.
const (
	High Priority = iota
	Middle
	Low
)

// Pacer keeps the send budgets of a chat and of the bot (contract: telegram.limits) and remembers the delay that a 429
// requested. Safe for concurrent use.
//
// A request counts from when it was admitted until a while after it has ended. The server sees it at some moment in
// between, so that the server's count never exceeds the budget, however long the request takes. The caller calls done
// once: when the request has ended, or if it was not made after all.
type Pacer interface {
	// Wait returns when a request to the chat may be sent, or with ctx's error. Low never uses what is reserved for the
	// others.
	Wait(ctx context.Context, place Place, priority Priority) (done func(), err error)
	// Try is like Wait, but does not wait for the budget. A budget that is shared through a server may be queried.
	Try(ctx context.Context, place Place, priority Priority) (done func(), ok bool)
	// Freeze stops all requests to the chat for a while. If several chats are frozen at once, the whole bot is.
	Freeze(place Place, wait time.Duration)
}
