// Package journal holds what a session's journal is made of: its entries and what they sum up to. It is a leaf, so that
// whoever stores or reads journals needs nothing of the engine that writes them.
package journal

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
)

// Kind says what a journal entry records.
type Kind string

// The kinds of entries. Which one comes last in a turn decides its next step.
const (
	UserEntry      Kind = "user"      // a message of a person: call the model
	AssistantEntry Kind = "assistant" // the model wants tools: execute those without a result
	StartedEntry   Kind = "started"   // a call is about to run
	ResultEntry    Kind = "result"    // a call has ended
	AnswerEntry    Kind = "answer"    // the answer: the turn is over
	// the turn is over without an answer of the model: Text was told to the person, Reason says why
	EndEntry Kind = "end"
	// SummaryEntry begins the conversation that the model sees: what is before is read no more. Text sums up what was
	// before, "" = nothing of it is told. Standing is what still counts of it, nil = nothing: /new and /clear begin
	// anew with an entry that has neither.
	SummaryEntry Kind = "summary"
	ResetEntry   Kind = "reset" // what /new and /clear wrote before there were summaries; read like an empty one
)

// Entry is one line of a session's journal. Entries are numbered from 1 without gaps and never changed.
type Entry struct {
	N       int64     `json:"-"`
	Turn    string    `json:"turn"`
	Kind    Kind      `json:"kind"`
	At      time.Time `json:"at"`
	Text    string    `json:"text,omitempty"`    // what was said; of a result: what the model reads
	Speaker string    `json:"speaker,omitempty"` // user: name, where several people share a session
	Caller  string    `json:"caller,omitempty"`  // user: caller id
	// user: what tools have finished in the background since the last turn
	News     string `json:"news,omitempty"`
	Quote    *Quote `json:"quote,omitempty"`    // user: what was replied to
	Uses     []Use  `json:"uses,omitempty"`     // assistant
	Call     string `json:"call,omitempty"`     // started, result: Use.Call
	Tool     string `json:"tool,omitempty"`     // started, result: qualified name
	Failed   bool   `json:"failed,omitempty"`   // result: it is an error block or a failed command
	Category string `json:"category,omitempty"` // result: of the error
	Rule     string `json:"rule,omitempty"`     // result: the policy rule that decided
	By       string `json:"by,omitempty"`       // result: who approved
	Millis   int64  `json:"ms,omitempty"`       // result, assistant, answer: how long it took
	Source   string `json:"source,omitempty"`   // result: untrusted source of the text
	// result, user: the text from Source, or the News, tries to give instructions
	Flagged bool     `json:"flagged,omitempty"`
	Notices []string `json:"notices,omitempty"` // result: what the person was told besides
	Touched []string `json:"touched,omitempty"` // result: canonical paths of files that the call worked on

	Found []string `json:"found,omitempty"` // result: tools that a search has found

	// Parts are what is no text. Of a result: what the tool made, which goes to the person in the commit of the entry;
	// one without a hash could not be kept. Of a user entry: what came along.
	Parts  []llm.Part `json:"parts,omitempty"`
	Reason string     `json:"reason,omitempty"` // end: stopped, limit, loop, budget, model, panic, cancelled, expired
	Usage  llm.Usage  `json:"usage,omitzero"`   // assistant, answer
	USD    float64    `json:"usd,omitempty"`
	Model  string     `json:"model,omitempty"`

	// Standing is carried by some entries that end a turn, so that nobody need read what is before, and by summaries.
	Standing *Standing `json:"standing,omitempty"`
}

// Begins says whether a reader of the journal may start here.
func (e *Entry) Begins() bool { return e.Kind == SummaryEntry || e.Kind == ResetEntry }

// Anew says whether nothing that was before counts any more.
func (e *Entry) Anew() bool { return e.Begins() && e.Standing == nil }

// Quote is what a person replied to: shown to the model as an untrusted quotation.
type Quote struct {
	Author string `json:"author"`
	Own    bool   `json:"own,omitempty"` // the assistant's own words
	Text   string `json:"text"`
}

// Use is a tool use with what we know of it.
type Use struct {
	Call  string          `json:"call"` // our id: unique in the session ("12.0": batch and index)
	Model string          `json:"id"`   // the model's id
	Name  string          `json:"name"`
	Args  json.RawMessage `json:"args"`
	Extra json.RawMessage `json:"extra,omitempty"`
	// hash of the definition the model was shown; "" when it named no known tool
	Definition string `json:"def,omitempty"`
	ReadOnly   bool   `json:"ro,omitempty"`
}

// ErrConflict means that somebody else wrote to the journal: this runner has lost the turn and must stop.
var ErrConflict = errors.New("the journal was written by another worker")

// Stats sums up a turn so far, from its journal.
type Stats struct {
	Steps int // model calls with tool uses
	Calls int // tool calls with a result
	Usage llm.Usage
	USD   float64
}
