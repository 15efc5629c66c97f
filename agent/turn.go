package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
)

// Turn is what the Runner has to know about the turn it advances.
type Turn struct {
	ID      string
	Origin  tools.Origin
	Request string         // short id that a person can quote to the operator
	System  string         // extra instructions of the chat
	Persona prompt.Persona // of the conversation
	Own     string         // how the person wants to be answered, in their words
	Group   bool           // several people read the answers
	Shared  bool           // several people speak in this session: label the speakers
	Model   string         // name of the provider that is asked first; "" = the configured order
	Tools   *tools.Overlay // changes to the set of tools: the allow-lists of chat and channel; nil = none
	// Child is the call that began the sub-agent for whose work this is, and Origin.Agent
	// its name; "" = the turn itself.
	Child  string
	Skills []string // what the prompt lists of skills; set by the Catalog before each model call
	// Shown are the tools of the next model call, in order, if another process could not tell: see View.Shown. Set by
	// the Catalog before each model call.
	Shown []string
}

// OutcomeKind says how a Run ended.
type OutcomeKind string

// The outcomes. All but Answered and Ended leave the turn open.
const (
	Answered OutcomeKind = "answered" // Entries hold the answer
	Ended    OutcomeKind = "ended"    // Entries hold an end entry: Text tells the person why
	Parked   OutcomeKind = "parked"   // Questions wait for people
	Later    OutcomeKind = "later"    // the model is unavailable: run again after RetryAfter
)

// Outcome is the result of a Run. Its Entries are not stored yet: the caller commits them together with what they
// cause, such as the outbox row of the answer.
type Outcome struct {
	Kind       OutcomeKind
	Text       string // Markdown for the person
	Plain      bool   // Text is not Markdown
	Reason     string // of Ended
	Entries    []journal.Entry
	Questions  []tools.Question
	RetryAfter time.Duration
	Err        error // of Later, and of Ended if the model has failed
	Stats      journal.Stats
	// Retold: the model's server refused the conversation as it was, and took it as plain text.
	Retold  bool
	LeftOut bool // the model did not read the oldest messages, because they could not be summed up
}

// EventType names what happens during a Run.
type EventType string

// The events. They only inform the person who is watching.
const (
	DeltaEvent EventType = "delta" // Text was added to the answer
	// Text so far is void: it belonged to a step with tools, or the call is being retried.
	ResetEvent        EventType = "reset"
	ToolStartedEvent  EventType = "tool_started"  // Tool with Show
	ToolProgressEvent EventType = "tool_progress" // Text
	// Tool with Show, which is empty if the call was refused before it was read; Failed; Text = a line about the result,
	// may be empty
	ToolFinishedEvent EventType = "tool_finished"
	ModelEvent        EventType = "model" // the model is being asked: Step
	// Text was added to what the model thinks before it answers. It is no part of the answer.
	ThoughtEvent EventType = "thought"
	PlanEvent    EventType = "plan" // Plan takes the place of the one before
)

// Event is one event of a Run.
type Event struct {
	Type   EventType
	Text   string
	Call   string
	Tool   string
	Verb   act.Verb // what the tool does, set when it has started or finished; "" = unknown
	Args   string
	Failed bool
	Step   int // model call within the turn, from 1
	Plan   []tools.PlanEntry
}

// Sink takes events. Emit never blocks and may be called from several goroutines.
type Sink interface {
	Emit(ctx context.Context, event Event)
}

// Executor runs tool calls through the chain. A call that waits for a person fails with *tools.Pending. With Call.Probe
// set, a call that may run ends with tools.ErrProbed.
type Executor interface {
	Execute(ctx context.Context, call *tools.Call) (*tools.Result, error)
	// Interrupted records a call whose outcome is unknown.
	Interrupted(ctx context.Context, call *tools.Call)
}

// Catalog says which tools a turn may see. A snapshot is valid for one model call; its elements are shared and must not
// be changed.
type Catalog interface {
	Tools(ctx context.Context, turn *Turn, view View) []Offer
}

// View is what a catalog can use to choose tools.
type View struct {
	Query string // what the person said in this turn
	// Succeeded names the tools that have run without failure in this conversation, each once, in the order of their
	// first success.
	Succeeded []string
	// Found names the tools that searches of this turn have found, in that order. A name can occur twice.
	Found []string
	// Shown are the tools that the turn was shown last, in order, as the journal has it; nil = all, or none yet. They
	// come first again, so that requests begin alike when another process goes on with the turn.
	Shown []string
	// Before returns the tools that had succeeded before the turn, which may be read after
	// its first step; nil = unknown.
	Before func() []string
	Step   int // model call within the turn, from 1
}

// Offer is a tool as the model is shown it. The journal stores the definition's hash, and an approval is bound to it.
// Description and Schema go into the request; they may include a field for thoughts and a hint of the output.
type Offer struct {
	tools.Definition
	Description string
	Schema      json.RawMessage
	// Named: the model knows only its name, from the description of another tool. It may call it, but the request does
	// not define it.
	Named bool
}

// Plain offers a definition unchanged.
func Plain(d tools.Definition) Offer {
	return Offer{Definition: d, Description: d.Description, Schema: d.Schema}
}

// Budget reserves the cost of a model call beforehand and settles it afterwards.
type Budget interface {
	// Reserve is idempotent by key (turn and step) within this process while the reservation is open. Another process
	// that goes on with the turn reserves again, and what a dead one has set aside ends by itself. Once
	// settled, the same key can be reserved again: a model call that failed or whose step was lost is repeated
	// and costs again. A denial is a *Denied.
	Reserve(ctx context.Context, turn *Turn, key string, estimate llm.Usage) error
	// Settle replaces the reservation by the actual usage. A call that failed before any text settles zero, one that
	// failed later an estimate, at the price UnknownUSD, and one that was given up while the server had its request,
	// without any text, costs what was reserved (cost.ReservedUSD). An error is logged and the turn continues.
	Settle(ctx context.Context, turn *Turn, key string, used llm.Usage, usd float64) error
	// Payer pays for what a turn spends besides the calls of its own model: the judge, summaries, embeddings.
	Payer(turn *Turn) cost.Payer
}

// UnknownUSD is the price of a call whose provider did not report its usage.
const UnknownUSD = cost.UnknownUSD

// Denied says that a budget is used up; Text is for the person.
type Denied = cost.Denied

// Journal is the journal of one session as seen by the holder of its lane (the lock that one worker holds on a
// session). It is for one goroutine; the Runner serialises the appends of a parallel batch.
type Journal interface {
	// Load reads the end of the journal: the last turn, and as many earlier ones as fit into room bytes (see
	// journal.Back).
	Load(ctx context.Context, room int) (journal.Tail, error)
	// Append stores entries durably and numbers them. It fails with ErrConflict if another worker wrote to the journal
	// or holds the lane.
	Append(ctx context.Context, entries ...journal.Entry) ([]journal.Entry, error)
}

// Asker is a Journal that can put questions to people while the turn goes on, so that nobody waits for a question until
// everything else has ended. The turn parks later with the same questions, which are asked once.
type Asker interface {
	Ask(ctx context.Context, questions []tools.Question, stats journal.Stats) error
}

// TurnInbox is a Journal that also reads what a person says while the turn runs.
type TurnInbox interface {
	// ReadInbox returns what was said and joins the turn: user entries with Joins set, which Append stores, alone or
	// after results. It is called before every step and costs nothing while nobody says anything. If revised is set,
	// the entries replace the message of the turn, so that calls of tools that have not begun must not run; otherwise
	// ReadInbox is called again until no call is open.
	ReadInbox(ctx context.Context) (said []journal.Entry, revised bool, err error)
}
