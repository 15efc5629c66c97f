// Package llm defines the interface to a language model: messages, tool uses, providers and their errors. It imports
// the standard library only. Each vendor's protocol is implemented in a package below it.
package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Role says who speaks in a Message.
type Role string

// The roles of a conversation.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool" // a Result; Message.Result is set
)

// Message is one entry of the conversation as the model sees it.
type Message struct {
	Role Role
	Text string
	// Parts, of a user's message, follow the text. The text of a message is not a part, so that a message of text alone
	// costs nothing extra.
	Parts  []Part
	Uses   []ToolUse // assistant only: the tools that it requests, in its order
	Result *ToolResult
	// Extra, of an assistant's message, is data that its vendor requires back with it, such as reasoning; opaque. An
	// adapter sends back what its own host has given and leaves out the rest.
	Extra json.RawMessage
}

// ToolUse is the model's request to call a tool.
type ToolUse struct {
	ID string `json:"id"` // unique within its message, as the model or its adapter named it
	// Own is the id that the model itself gave, if ID is another one; for models that count on their own ids.
	Own  string          `json:"own,omitempty"`
	Name string          `json:"name"` // qualified name, as in Tool.Name
	Args json.RawMessage `json:"args"` // as the model wrote them: can be malformed JSON
	// Extra is data that the vendor requires back with this use (Gemini's thought signature); opaque.
	Extra json.RawMessage `json:"extra,omitempty"`
}

// OutcomeUnknown begins the text of a result if the call may have run, but nobody knows how far it got. The text after
// it is meant for the model, not for people.
const OutcomeUnknown = "[outcome unknown]"

// ToolResult answers the ToolUse with the same ID.
type ToolResult struct {
	ID    string
	Name  string
	Text  string // never empty when it is sent: adapters replace it by "(no output)"
	Error bool
	Parts []Part // pictures and other contents that belong to the text
}

// Tool is a definition as offered to the model.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments object
}

// Request is one call of the model.
type Request struct {
	System    string
	Messages  []Message
	Tools     []Tool
	MaxTokens int    // of the answer; 0 = the provider's own setting
	User      string // stable opaque id of the end user, for the vendor's abuse control; may be empty
	Prefer    string // name of the provider that a router asks first; "" or an unknown name = its own order
	// Window is the size of the window, in tokens, that Messages were chosen for; 0 = any.
	Window int
	Size   int // of the whole request, in tokens, as its maker estimates; 0 = unknown
	// Smaller returns Messages for a smaller window and the size of the request with them, as Size. fits is false if
	// the request does not fit into that window whatever is left out; Messages are then as few as possible. A router
	// calls it before it asks a provider with a smaller window, or after one that found the conversation too long. It
	// is called while Chat runs, by one goroutine at a time; nil = Messages cannot be shortened.
	Smaller func(window int) (messages []Message, size int, fits bool)
	Party   string // who asks, for fair turns among waiting requests; never sent; may be empty
	// Conversation is what the request belongs to, so that one that fails again and again does not count as several;
	// never sent; "" = User or Party is the best that is known.
	Conversation string
	// Again means that the last answer to this conversation was empty. Some servers say nothing where others refuse
	// what does not fit: if a large request is answered with nothing once more, a router tries a shorter one.
	Again bool
	// Open reads the content of a part by its hash; nil = no part has one. It is called while Chat runs and its request
	// is being sent, by one goroutine at a time. The caller must close the reader.
	Open func(ctx context.Context, hash string) (io.ReadCloser, error)
	// OnReset is called by a router before it starts over after text had reached onDelta: the text so far is void, and
	// the answer starts from the beginning. It is called from the goroutine that calls onDelta. With nil, a failure
	// after streamed text is final.
	OnReset func()
	// TextTools are tools that the server is not told of but that calls in the text of the answer
	// may name; set by package fenced.
	TextTools []Tool
	// OnThought is called with what the model thinks before it answers, as it arrives; nil = it is dropped. Called from
	// the goroutine that calls onDelta. Thoughts are progress and never part of an answer.
	OnThought func(text string)
}

// Usage counts tokens as reported by the provider; all zero if it reported none.
type Usage struct {
	Input       int `json:"input"`        // all input tokens, cached ones included
	CachedInput int `json:"cached_input"` // of Input, read from the vendor's cache
	Output      int `json:"output"`
}

// Add sums two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{Input: u.Input + v.Input, CachedInput: u.CachedInput + v.CachedInput, Output: u.Output + v.Output}
}

// Total is input plus output.
func (u Usage) Total() int { return u.Input + u.Output }

// Stop says why the model stopped.
type Stop string

// The stop reasons. A stream that ends without one is an error (Truncated), never an answer.
const (
	StopEnd     Stop = "end"     // the answer is complete
	StopTools   Stop = "tools"   // it waits for tool results
	StopLength  Stop = "length"  // token limit reached: the text is cut
	StopRefusal Stop = "refusal" // the vendor's filter ended it
)

// Response is the model's whole answer.
type Response struct {
	Text string
	// Unmade: the answer contains calls that cannot be made, as text: of tools that were not offered, or written so
	// that they cannot be read. They are part of Text, of which onDelta got only what is before them.
	Unmade bool
	// Filtered: with StopRefusal, the vendor's filter broke the answer off, and Text is its beginning. Without it, Text
	// is what the model said to decline.
	Filtered bool
	Thoughts string // what the model thought before its answer, as far as the vendor shows it; never shown as an answer
	Uses     []ToolUse
	Extra    json.RawMessage // for Message.Extra of later requests; nil = nothing has to be sent back
	Stop     Stop
	Usage    Usage
	Provider string // configured name, e.g. "main"
	Model    string
	USD      float64 // cost at the configured prices; 0 if none are configured
	// Retold: the server had refused the messages and answered when their history was plain text (history.PlainText).
	Retold bool
}

// Provider is a language model. Chat streams text to onDelta (which may be nil and is called from one goroutine, in
// order, before Chat returns) and returns the whole answer. It honours ctx. Errors are *Error or context errors. Safe
// for concurrent use.
type Provider interface {
	Name() string
	Chat(ctx context.Context, req *Request, onDelta func(text string)) (*Response, error)
}

// Embedder turns texts into vectors of equal length.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Kind classifies a provider's failure.
type Kind string

// The kinds of failure, from the caller's point of view.
const (
	Unavailable Kind = "unavailable"  // overloaded, 5xx, connection: try again later
	RateLimited Kind = "rate_limited" // 429: try again after RetryAfter
	Timeout     Kind = "timeout"      // no answer in time: can be retried
	// Overtime: the answer was still arriving when the time of the whole call was over. A retry would take as long.
	Overtime     Kind = "overtime"
	Oversize     Kind = "oversize"     // the answer exceeds the size limit
	Truncated    Kind = "truncated"    // the stream ended without a stop reason: can be retried
	Invalid      Kind = "invalid"      // the request was rejected: a retry does not help
	Unauthorized Kind = "unauthorized" // key missing or wrong, or not allowed for this model
	TooLong      Kind = "too_long"     // the conversation does not fit the model's window
	// NoCredit: the account at the provider has no money or quota left. A retry does not help until somebody pays.
	NoCredit     Kind = "no_credit"
	UnknownModel Kind = "unknown_model" // the provider has no such model, or not for this key
	Region       Kind = "region"        // the provider does not serve this country or region
	// WrongAddress: what answers at the provider's address is no model server with this API, such as a website, another
	// API or a gateway that lets nobody through.
	WrongAddress Kind = "wrong_address"
)

// Advice is what the operator can do about a failure of this kind, for logs; "" = nothing but wait, or nobody knows.
func (k Kind) Advice() string {
	switch k {
	case NoCredit:
		return "the account at the provider has no credit or quota left: pay there, or name a fallback in llm.fallback"
	case Unauthorized:
		return "the provider does not accept the key: correct api_key of this provider, or the variable that holds it"
	case UnknownModel:
		return "the provider has no such model, or not for this key: correct model of this provider; zephbot doctor " +
			"lists its models"
	case Region:
		return "the provider does not serve the country of this machine: use another provider, or another base_url"
	case WrongAddress:
		return "what answers at base_url of this provider is no model server with this API: correct base_url (most " +
			"end with /v1) or type, or look for a proxy in between"
	case TooLong:
		return "the conversation does not fit into the model's window: set context_tokens of this provider, or " +
			"use fewer tools"
	default:
		return ""
	}
}

// Unreached says why no connection to a server could be made.
type Unreached string

// Why there is no connection; "" = there was one, or nobody knows.
const (
	UnreachedName    Unreached = "name"    // its name has no address here
	UnreachedRefused Unreached = "refused" // its machine refuses the connection: nothing listens at the port
	UnreachedRoute   Unreached = "route"   // there is no way to it, or nothing on the way answers
	UnreachedSecure  Unreached = "secure"  // it does not speak TLS, or its certificate is not trusted
	UnreachedProxy   Unreached = "proxy"   // the proxy of the environment does not let the request through
)

// Error is a provider's failure. Its text is for logs: it may name hosts, never keys.
type Error struct {
	Kind       Kind
	Provider   string
	Server     string        // host of the server that was asked, with its port if that is not the usual one; "" = unknown
	Unreached  Unreached     // why no connection to it could be made
	Status     int           // HTTP status, 0 when there was none
	RetryAfter time.Duration // 0 = not given
	Streamed   bool          // some text had already been handed to onDelta
	Window     int           // how many tokens the provider takes, if it said so with TooLong; 0 = unknown
	Size       int           // how many tokens it counted in the request, if it said so with TooLong; 0 = unknown
	// Answer is the longest answer, in tokens, that the account can still pay, if the provider said
	// so with NoCredit; 0 = unknown.
	Answer int
	// Unexplained: neither words nor a code that are known say why the request was rejected, or the answer ended before
	// it began. Some servers do that to a request that is too long.
	Unexplained bool
	// Blank: the answer had a status of success and nothing in it. Once, that may be a hiccup; a router counts it as
	// WrongAddress in the end.
	Blank bool
	// Budget: Window is not the model's window, but how many tokens this account may use in a time; the request alone
	// is larger, so that waiting does not help.
	Budget bool
	// UnderWay: the server may have worked on the request, and nobody knows what that has cost.
	UnderWay bool
	Err      error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("model %s: %s (status %d): %v", e.Provider, e.Kind, e.Status, e.Err)
	}
	return fmt.Sprintf("model %s: %s: %v", e.Provider, e.Kind, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case Unavailable, RateLimited, Timeout, Truncated:
		return true
	default:
		return false
	}
}

// ErrUnderWay goes with the error of a context that has ended a call while the server had its request:
// nobody knows what the call has cost.
var ErrUnderWay = errors.New("its request was under way")

// MayHaveCost reports whether nobody knows what a call that failed has cost: the server had its request,
// and did not say that it failed.
func MayHaveCost(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.UnderWay || errors.Is(err, ErrUnderWay)
}

// KindOf classifies any error; a context deadline is Timeout, an unknown error Unavailable.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	default:
		return Unavailable
	}
}
