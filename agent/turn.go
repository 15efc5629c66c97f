package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
)

// Turn is what the Runner needs to know of the turn it moves.
type Turn struct {
	ID      string
	Origin  tools.Origin
	Request string         // short id that a person may quote to the operator
	System  string         // extra instructions of the chat
	Group   bool           // several people read
	Shared  bool           // several people speak in this session: label the speakers
	Tools   *tools.Overlay // what the turn changes of the tools: the allow-lists of chat and channel; nil = nothing
}

// OutcomeKind says how a Run ended.
type OutcomeKind string

// The outcomes. All but Answered, Ended leave the turn open.
const (
	Answered OutcomeKind = "answered" // Entries hold the answer
	Ended    OutcomeKind = "ended"    // Entries hold an end entry: Text tells the person why
	Parked   OutcomeKind = "parked"   // Questions wait for people
	Later    OutcomeKind = "later"    // the model is away: run again after RetryAfter
)

// Outcome is the result of a Run. Entries are not stored yet: the caller commits them together with what follows from
// them (the answer's outbox row).
type Outcome struct {
	Kind       OutcomeKind
	Text       string // Markdown for the person
	Plain      bool   // Text is not Markdown
	Reason     string // of Ended
	Entries    []journal.Entry
	Questions  []tools.Question
	RetryAfter time.Duration
	Err        error // of Later: for the log
	Stats      journal.Stats
}

// EventType names what happens during a Run.
type EventType string

// The events. They are for the person who watches; nothing depends on them.
const (
	DeltaEvent EventType = "delta" // Text was added to the answer that grows
	// forget the text so far: it belonged to a step with tools, or a retry begins
	ResetEvent        EventType = "reset"
	ToolStartedEvent  EventType = "tool_started"  // Tool with Show
	ToolProgressEvent EventType = "tool_progress" // Text
	ToolFinishedEvent EventType = "tool_finished" // Tool, Failed; Text = a line about the result, may be empty
	ModelEvent        EventType = "model"         // the model is being asked: Step
)

// Event is one thing that happens during a Run.
type Event struct {
	Type   EventType
	Text   string
	Call   string
	Tool   string
	Verb   act.Verb // what the tool does, when it has started; "" = nobody knows
	Args   string
	Failed bool
	Step   int // model call within the turn, from 1
}

// Sink takes events. Emit never blocks and may be called from several goroutines.
type Sink interface {
	Emit(ctx context.Context, event Event)
}

// Executor runs tool calls: the chain. A call that waits for a person fails with *tools.Pending; with Call.Probe set a
// call that may run ends with tools.ErrProbed.
type Executor interface {
	Execute(ctx context.Context, call *tools.Call) (*tools.Result, error)
	// Interrupted records a call whose outcome nobody knows.
	Interrupted(ctx context.Context, call *tools.Call)
}

// Catalog says which tools a turn may see. The snapshot holds for one model call; its elements are shared and must not
// be changed.
type Catalog interface {
	Tools(ctx context.Context, turn *Turn, view View) []Offer
}

// View is what a catalog may look at when it chooses.
type View struct {
	Query string // what the person said in this turn
	// Succeeded names the tools that have run without failure in this conversation, each once, in the order of their
	// first success.
	Succeeded []string
	// Found names the tools that searches of this turn have found, in their order; a name may come twice.
	Found []string
	Step  int // model call within the turn, from 1
}

// Offer is a tool as the model is shown it. The definition's hash is what the journal keeps and an approval binds;
// Description and Schema are what goes into the request: with a field for thoughts, a hint of the output.
type Offer struct {
	tools.Definition
	Description string
	Schema      json.RawMessage
}

// Plain offers a definition as it is.
func Plain(d tools.Definition) Offer {
	return Offer{Definition: d, Description: d.Description, Schema: d.Schema}
}

// Budget reserves what a model call may cost before it is made, and settles it after.
type Budget interface {
	// Reserve is idempotent by key (turn and step) while the reservation is open. Once settled, the same key may be
	// reserved again: a model call that failed or whose step was lost is made again, and costs again. A denial is a
	// *Denied.
	Reserve(ctx context.Context, turn *Turn, key string, estimate llm.Usage) error
	// Settle replaces the reservation by what was used; a call that failed before any text settles zero, one that
	// failed later an estimate. Its error is logged, the turn goes on.
	Settle(ctx context.Context, turn *Turn, key string, used llm.Usage, usd float64) error
}

// Denied says that a budget is used up; Text is for the person.
type Denied struct {
	Scope string
	Text  string
}

// Error implements error.
func (d *Denied) Error() string { return "quota of " + d.Scope + " is used up" }
