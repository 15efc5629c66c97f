package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/zephbot/zephbot/policy/grant"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/policy/source"
)

// Category classifies a failed call (seed 003, error taxonomy). It decides whether we retry, and what the model is told
// to do.
type Category string

// The eleven categories.
const (
	ToolNotFound         Category = "tool_not_found"
	InvalidParameters    Category = "invalid_parameters"
	TypeMismatch         Category = "type_mismatch"
	PolicyBlocked        Category = "policy_blocked"
	ConfirmationRequired Category = "confirmation_required"
	PermanentFailure     Category = "permanent_failure"
	Cancelled            Category = "cancelled"
	RateLimited          Category = "rate_limited"
	ServerError          Category = "server_error"
	NetworkError         Category = "network_error"
	Timeout              Category = "timeout"
)

// Transient reports whether the same call may succeed later although nothing was changed.
func (c Category) Transient() bool {
	switch c {
	case RateLimited, ServerError, NetworkError, Timeout:
		return true
	default:
		return false
	}
}

// Quality reports whether the model made a mistake that another call may correct.
func (c Category) Quality() bool {
	return c == ToolNotFound || c == InvalidParameters || c == TypeMismatch
}

// Reformat reports whether it is worth one attempt to bring the same arguments into the right form (seed 003). A tool
// that does not exist has no such form.
func (c Category) Reformat() bool {
	return c == InvalidParameters || c == TypeMismatch
}

// Error is a failed call. Message and Suggestion are written for the model and may be shown to a person; they contain
// no internals and no secrets.
type Error struct {
	Category   Category
	Message    string
	Suggestion string // "" = that of the category
	Retryable  bool   // set only if we will retry
	// Untrusted is the source of words in Message that are not ours; None = there are none.
	Untrusted source.Source
	// Reason says to people why policy, a person or a quota refused the call, which is no failure of its tool; the zero
	// value if it was not refused.
	Reason reason.Reason
	Begun  bool // the call may have done its work, or a part of it
	// what was requested does not exist (a page, a host, a command): the model's mistake, not a failure of the tool
	Mistake bool
	Err     error // the cause, for the log; may be nil
	// RetryAfter is how long the other side asks us to wait before the next attempt; 0 = not specified.
	RetryAfter time.Duration
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Category, e.Message, e.Err)
	}
	return string(e.Category) + ": " + e.Message
}

// Denied reports whether the call was refused. There is no refusal without a reason that people can read.
func (e *Error) Denied() bool { return e.Reason.Code != "" || e.Reason.Detail != "" }

// Why returns what the error says to people: of a failure, that the call is not possible.
func (e *Error) Why() reason.Reason {
	if e.Denied() {
		return e.Reason
	}
	return reason.New(reason.CallImpossible, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an *Error with a message for the model.
func Errorf(c Category, format string, args ...any) *Error {
	return &Error{Category: c, Message: fmt.Sprintf(format, args...)}
}

// Refused returns the error of a call that is not allowed, which is no failure of its tool.
func Refused(why reason.Reason, suggestion string) *Error {
	return &Error{Category: PolicyBlocked, Message: why.String(), Reason: why, Suggestion: suggestion}
}

// ErrProbed is the outcome of a call with Probe set that may run now.
var ErrProbed = errors.New("the call may run")

// Pending is the error of a call that waits for a person. It is not a failure: the turn is parked.
type Pending struct {
	Question Question
}

// Error implements error.
func (p *Pending) Error() string { return "approval of " + p.Question.Tool + " is pending" }

// Walled is the error of a call that was permitted only where it could change nothing (Trail.Reading), and for which
// that was too little. Nothing has happened. The approve stage asks a person instead.
type Walled struct {
	Reason reason.Reason // what it tried
}

// Error implements error.
func (w *Walled) Error() string { return w.Reason.String() }

// Question is what a person has to decide.
type Question struct {
	Call string `json:"call"` // Call.ID
	Tool string `json:"tool"`
	Hash string `json:"hash"` // of tool, definition, arguments and caller, see approve.Hash
	Show string `json:"show"` // the whole command or input
	// Note says where the call would run and under which limits.
	Note reason.Reason `json:"notes,omitzero"`
	// EnglishNote is what older versions wrote instead of Note.
	EnglishNote string        `json:"note,omitempty"`
	Reason      reason.Reason `json:"because,omitzero"` // why the question is asked; use Why to read it
	// English is what older versions wrote instead of Reason.
	English    string `json:"reason,omitempty"`
	Caller     string `json:"caller"`
	Agent      string `json:"agent,omitempty"` // sub-agent that makes the call for the caller; "" = none
	Args       string `json:"args"`            // canonical arguments
	ReadOnly   bool   `json:"read_only,omitempty"`
	Command    bool   `json:"command,omitempty"` // Show is a shell command
	Destroys   bool   `json:"destroys,omitempty"`
	Suspicious string `json:"suspicious,omitempty"` // untrusted source that was flagged in this session
	// Deed is what the tool itself says that the call would do, from its arguments; nil = it does not say.
	Deed *Effect `json:"deed,omitempty"`
	// Effect is what the call would do; nil = that was not tried.
	Effect *Effect `json:"effect,omitempty"`
	// Again: the call was approved already, but what it would do is no longer what was shown.
	Again bool `json:"again,omitempty"`
	// Marked: the question is asked only because of Suspicious. Without that mark the call would run.
	Marked bool `json:"marked,omitempty"`
	// Offers are the choices of a standing approval; empty if none can cover the call.
	Offers []grant.Offer `json:"offers,omitempty"`
	// Whole is what can be approved for this session instead of one call: every call of the tool, if it only reads and
	// its definition and server are known, or a host to which the call may carry something.
	Whole *grant.Grant `json:"whole,omitempty"`
	// Form is what the caller is asked to answer, instead of an approval; nil = the question is about the call.
	Form *Form `json:"form,omitempty"`
	Basis
}

// Why returns why the question is asked, also of a question of an older version.
func (q *Question) Why() reason.Reason { return reason.Or(q.Reason, q.English) }

// Basis is what the policy's decision to ask was based on. It is stored as part of its Question.
type Basis struct {
	Inputs  []string     `json:"inputs,omitempty"`
	Dir     string       `json:"dir,omitempty"`
	Files   []grant.File `json:"files,omitempty"`
	Changed []string     `json:"changed,omitempty"` // files that changed since the call was allowed before
	// States is what was at the paths that the call works on when its Deed was found out;
	// nil = the Deed depends on none.
	States []FileState `json:"states,omitempty"`
	// Server and Definition are the address of the MCP server and the hash of the tool's definition.
	Server     string `json:"server,omitempty"`
	Definition string `json:"definition,omitempty"`
}

// AsError converts any error to an *Error and classifies the errors of the standard library that it knows (seed 003,
// tables for io and network).
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) && e != nil {
		return e
	}
	var pending *Pending
	if errors.As(err, &pending) && pending != nil {
		return &Error{Category: ConfirmationRequired, Message: "a person has to approve this call first", Err: err}
	}
	if walled, ok := errors.AsType[*Walled](err); ok {
		return &Error{Category: ConfirmationRequired, Message: walled.Error(), Err: err}
	}
	return &Error{Category: classify(err), Message: plain(err), Err: err}
}

func classify(err error) Category {
	var netErr net.Error
	var errno syscall.Errno
	switch {
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, fs.ErrPermission):
		return PolicyBlocked
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNABORTED),
		errors.Is(err, syscall.EPIPE),
		errors.Is(err, io.ErrClosedPipe):
		return NetworkError
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return ServerError
	case errors.As(err, &errno) && !isNetwork(err):
		// an errno also implements net.Error, but a missing file is not a network failure
		if errno == syscall.ETIMEDOUT {
			return Timeout
		}
		return PermanentFailure
	case errors.As(err, &netErr):
		if netErr.Timeout() {
			return Timeout
		}
		return NetworkError
	default:
		return PermanentFailure
	}
}

// StatusCategory classifies an HTTP status that is not a success (seed 003, HTTP table). What is neither the caller's
// mistake, nor forbidden, nor temporary is permanent.
func StatusCategory(status int) Category {
	switch {
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		return InvalidParameters
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return PolicyBlocked
	case status == http.StatusTooManyRequests:
		return RateLimited
	case status >= 500 && status <= 599:
		return ServerError
	default: // including 404 and 410
		return PermanentFailure
	}
}

// maxRetryAfter is the longest delay that a server can ask for.
const maxRetryAfter = 24 * time.Hour

// FromStatus returns the error of an HTTP answer that is not a success. It leaves out the server's own words, because
// they are foreign text. RetryAfter comes from the header (RFC 9110, 10.2.3), for temporary failures only. The caller
// sets Retryable, because only the caller knows whether the request may be repeated.
func FromStatus(status int, header http.Header) *Error {
	e := &Error{Category: StatusCategory(status), Message: fmt.Sprintf("The server answered with status %d.", status)}
	if text := http.StatusText(status); text != "" {
		e.Message = fmt.Sprintf("The server answered with status %d (%s).", status, text)
	}
	if !e.Category.Transient() {
		return e
	}
	if e.RetryAfter = retryAfter(header); e.RetryAfter > 0 {
		e.Message += fmt.Sprintf(" It asks to wait %s.", e.RetryAfter)
	}
	return e
}

// retryAfter parses a number of seconds, or a date. A date is compared with the server's own clock, so that a wrong
// clock on either side does not matter.
func retryAfter(header http.Header) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if value == "" {
		return 0
	}
	seconds, err := strconv.ParseUint(value, 10, 32)
	switch {
	case err == nil:
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	case strings.Trim(value, "0123456789") == "": // more seconds than fit in a number
		return maxRetryAfter
	default:
		return untilDate(value, header.Get("Date"))
	}
}

func untilDate(then, now string) time.Duration {
	until, err := http.ParseTime(then)
	if err != nil {
		return 0
	}
	since, err := http.ParseTime(now)
	if err != nil {
		return 0
	}
	return min(max(until.Sub(since), 0), maxRetryAfter)
}

// isNetwork reports whether err wraps an error of a network operation.
func isNetwork(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}

// plain describes an unknown error without internals.
func plain(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "the call was cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "the call took too long"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	case errors.Is(err, fs.ErrNotExist):
		return "no such file or directory"
	case errors.Is(err, fs.ErrExist):
		return "it exists already"
	case errors.Is(err, syscall.ENOSPC):
		return "no space left on the device"
	case errors.Is(err, syscall.ENOTDIR):
		return "not a directory"
	case errors.Is(err, syscall.EISDIR):
		return "it is a directory"
	case errors.Is(err, syscall.ENAMETOOLONG):
		return "the name is too long"
	}
	switch classify(err) {
	case Timeout:
		return "the call took too long"
	case NetworkError:
		return "the connection failed"
	case ServerError:
		return "it was busy for a moment"
	default:
		return "the tool failed for an internal reason; the log has the details"
	}
}

// suggestions are the default suggestions by category.
var suggestions = map[Category]string{
	ToolNotFound:         "Check the name against the list of available tools.",
	InvalidParameters:    "Review the tool schema and provide correct parameters.",
	TypeMismatch:         "Check the parameter types against the tool schema.",
	PolicyBlocked:        "This is not allowed here. Try another way, or tell the user what you could not do.",
	ConfirmationRequired: "A person has to approve this first.",
	PermanentFailure:     "Repeating the call will not help. Try another way.",
	Cancelled:            "The user cancelled this. Do not repeat it unless asked.",
	RateLimited:          "Too many requests. Wait before trying again.",
	ServerError:          "The other side failed. It may work later.",
	NetworkError:         "The connection failed. It may work later.",
	Timeout:              "It took too long. Try a smaller step.",
}

// maxFeedback limits message and suggestion, in characters, because they go into the model's context.
const maxFeedback = 2000

// Feedback returns the text that the model reads instead of a result (contract: tool error block, five lines).
func Feedback(err error) string {
	e := AsError(err)
	suggestion := e.Suggestion
	if suggestion == "" {
		suggestion = suggestions[e.Category]
	}
	if suggestion == "" {
		suggestion = suggestions[PermanentFailure]
	}
	var b strings.Builder
	b.WriteString("[tool_error]\n")
	fmt.Fprintf(&b, "category: %s\n", oneLine(string(e.Category)))
	fmt.Fprintf(&b, "error: %s\n", oneLine(e.Message))
	fmt.Fprintf(&b, "suggestion: %s\n", oneLine(suggestion))
	fmt.Fprintf(&b, "retryable: %t", e.Retryable)
	return b.String()
}

// oneLine replaces line breaks, including those of Unicode, so that the block always has five lines.
func oneLine(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '\n', '\r', '\v', '\f', 0x85, 0x2028, 0x2029:
			return true
		}
		return false
	}), "; ")
	n := 0
	for i := range s {
		if n == maxFeedback {
			return s[:i] + " …"
		}
		n++
	}
	return s
}
