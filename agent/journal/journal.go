// Package journal defines the contents of a session's journal: its entries and what they add up to. It is a leaf
// package, so that code that stores or reads journals does not depend on the engine that writes them.
package journal

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/policy/netrule"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/policy/source"
)

// Kind says what a journal entry records.
type Kind string

// The kinds of entries. The last entry of a turn decides its next step.
const (
	UserEntry      Kind = "user"      // a message of a person: call the model
	AssistantEntry Kind = "assistant" // the model requests tools: execute the uses without a result
	StartedEntry   Kind = "started"   // a call is about to run
	ResultEntry    Kind = "result"    // a call has ended
	AnswerEntry    Kind = "answer"    // the answer: the turn is over
	// EndEntry ends a turn without an answer of the model: Text was told to the person, Reason says why.
	EndEntry Kind = "end"
	// SummaryEntry begins the conversation that the model sees: entries before it are no longer read, except the last
	// Keeps of them. Text sums up the others, "" = the model is told nothing about them.
	// ConversationState is what still counts of them, nil = nothing. /new and /clear start a new
	// conversation with an entry that has none of these.
	SummaryEntry Kind = "summary"
	ResetEntry   Kind = "reset" // written by /new and /clear before there were summaries; read like an empty one
)

// Entry is one line of a session's journal. Entries are numbered from 1 without gaps and are never changed.
type Entry struct {
	N    int64  `json:"-"`
	Turn string `json:"turn"`
	// Child is the call of the turn that began the sub-agent to whose work the entry belongs; "" = the turn's own.
	Child string    `json:"child,omitempty"`
	Kind  Kind      `json:"kind"`
	At    time.Time `json:"at"`
	Text  string    `json:"text,omitempty"` // what was said; of a result: what the model reads
	// user: name, where several people share a session; of a task: the sub-agent's
	Speaker string `json:"speaker,omitempty"`
	Caller  string `json:"caller,omitempty"` // user: caller id
	// News, of a user entry: what tools have finished in the background since the last turn.
	News string `json:"news,omitempty"`
	// Recalled, of a user entry: what the model is reminded of besides, from earlier conversations.
	Recalled *Recalled `json:"recalled,omitempty"`
	// Foreign, of a user entry: where text in it comes from that its sender has not
	// written, such as a forwarded message.
	Foreign source.Source `json:"foreign,omitempty"`
	Quote   *Quote        `json:"quote,omitempty"` // user: what was replied to
	// Talk, of a user entry: what people said to each other in the group since the conversation last read it.
	Talk []Remark `json:"talk,omitempty"`
	// Scheduled, of a user entry: it is the text of a scheduled task, which a model may have written.
	Scheduled bool `json:"scheduled,omitempty"`
	// Joins says how a user entry came into a turn that an earlier one had begun; "" = this one began it.
	Joins Joining `json:"joins,omitempty"`
	// Heard are the messages that a user entry was made from, in order. It finds the turn of a message that was edited.
	Heard    []Heard `json:"heard,omitempty"`
	Uses     []Use   `json:"uses,omitempty"`     // assistant
	Call     string  `json:"call,omitempty"`     // started, result: Use.Call
	Tool     string  `json:"tool,omitempty"`     // started, result: qualified name
	Failed   bool    `json:"failed,omitempty"`   // result: it is an error block or a failed command
	Category string  `json:"category,omitempty"` // result: of the error
	Rule     string  `json:"rule,omitempty"`     // result: the policy rule that decided
	// result: the call did not run because it was refused, other than by a person who was asked
	Refusal *Refusal `json:"refusal,omitempty"`
	By      string   `json:"by,omitempty"` // result: who approved
	// Cleared, of a result: the flagged source whose mark By has cleared when they approved
	// the call. It no longer counts.
	Cleared string `json:"cleared,omitempty"`
	Ran     bool   `json:"ran,omitempty"`   // result: the tool was started, or its result was remembered
	Audit   string `json:"audit,omitempty"` // result: hash of the call's line in the audit log
	Millis  int64  `json:"ms,omitempty"`    // result, assistant, answer: how long it took
	// Source is where the text comes from that nobody in the conversation has written: of a result, its text; of a user
	// entry, what is Flagged in it. None = it is our own or a person's; reads and commands of older versions have none.
	Source source.Source `json:"source,omitempty"`
	// Brought, of a result: the text may contain what nobody in the conversation has written.
	Brought bool `json:"brought,omitempty"`
	// Flagged, of a result or user entry: the text from Source, or the News, tries to give instructions.
	Flagged bool     `json:"flagged,omitempty"`
	Notices []string `json:"notices,omitempty"` // result: what else the person was told
	Touched []string `json:"touched,omitempty"` // result: canonical paths of files that the call worked on
	// Words, of a result: what the person has written themselves, as the call asked them to.
	Words []string `json:"words,omitempty"`
	// Said, of an entry that has lost its texts (reduced): the web addresses that a person has written there.
	Said netrule.Keys `json:"-"`
	// Seen, of a result: the web addresses in what a call has read of the web, of a search or of a file.
	Seen netrule.Keys `json:"seen,omitempty"`
	// Wrote, of a result: the call may have changed files: those in Touched, or any if it names none.
	Wrote bool `json:"wrote,omitempty"`
	// Left, of a result: what the call has changed in files, as far as its tool says so.
	Left []Left `json:"left,omitempty"`
	// Opened, of a result: the sites of which the call opened an address only because it was
	// seen (ConversationState.Seen).
	Opened []string `json:"opened,omitempty"`

	Found []string `json:"found,omitempty"` // result: tools that a search has found
	// Shown, of an assistant entry: the tools that the model was shown, in order, if the turn has not recorded these
	// before. Empty = as before, or all that there are.
	Shown []string `json:"shown,omitempty"`

	// Parts are contents that are not text. Of a result: what the tool made, which is sent to the person in the commit
	// of the entry; a part without a hash could not be stored. Of a user entry: attachments.
	Parts  []llm.Part `json:"parts,omitempty"`
	Reason string     `json:"reason,omitempty"` // end: stopped, limit, loop, budget, model, panic, cancelled, expired
	Usage  llm.Usage  `json:"usage,omitzero"`   // assistant, answer
	USD    float64    `json:"usd,omitempty"`
	Model  string     `json:"model,omitempty"`
	// Extra, of an assistant or answer entry, is what the model's server wants back with it (llm.Message.Extra):
	// opaque, at most MaxExtra bytes. People are never shown it.
	Extra json.RawMessage `json:"extra,omitempty"`
	// Thoughts, of an assistant, answer or end entry, are what the model thought before it, bounded by Thoughts.
	// Neither people nor models read them as something that was said.
	Thoughts string `json:"thoughts,omitempty"`
	// Retold, of an assistant, answer or end entry: a server refused the messages before it and answered when they were
	// plain text. Plain text they are in all later requests, so that no later message meets the same refusal.
	Retold bool `json:"retold,omitempty"`

	// Unsummed, of an assistant, answer or end entry: before it, the model was asked to sum
	// up the conversation and did not.
	Unsummed bool `json:"unsummed,omitempty"`

	// Keeps, of a summary: how many entries directly before it the model still reads after it. They are whole turns. It
	// is a count and not a number, because journals that are joined are numbered again. With Keeps, the summary does
	// not end the conversation but shortens it: everything that counts of the entries before it goes on counting.
	Keeps int `json:"keeps,omitempty"`

	// Parted, of a summary that begins anew (Anew): a search finds what was said before it. Without it, as /clear and
	// versions before there was a search wrote it, nothing before it is found.
	Parted bool `json:"parted,omitempty"`

	// State is carried by summaries and by some entries that end a turn, so that entries before it need not be read.
	State *ConversationState `json:"standing,omitempty"`
}

// Left is a change of a file by a call: the states before and after it (tools.FileState).
type Left struct {
	Path   string `json:"path"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// maxThoughts bounds Entry.Thoughts, in bytes.
const maxThoughts = 16 << 10

// Thoughts returns the beginning and the end of thoughts, as far as they are kept.
func Thoughts(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxThoughts {
		return text
	}
	const mark = "\n…\n"
	half := (maxThoughts - len(mark)) / 2
	head, tail := half, len(text)-half
	for !utf8.RuneStart(text[head]) {
		head--
	}
	for !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + mark + text[tail:]
}

// MaxExtra bounds Entry.Extra, in bytes. What is longer is not kept.
const MaxExtra = 1 << 20

// Recalled is what was remembered in earlier conversations and may matter to a message.
type Recalled struct {
	IDs  []string `json:"ids"`  // of the memories
	Text string   `json:"text"` // as the model reads it, a line or more for each
}

// Remark is something that a person said in a group, and not to the assistant. The model is shown it as material.
type Remark struct {
	At     string `json:"at,omitempty"` // the time of day, as the model reads it
	Caller string `json:"caller"`
	Name   string `json:"name,omitempty"`
	Text   string `json:"text"`
}

// Joining is how a message came into a turn that runs.
type Joining string

// The ways of joining a turn.
const (
	Edited    Joining = "edited"    // the person changed the message that began the turn: Text is how it reads now
	Meanwhile Joining = "meanwhile" // the person said it while the turn was running
	Declined  Joining = "declined"  // who declined the call Call of Tool, maybe in an earlier turn, says why
)

// Heard is a message of a person, and the arrival that brought it.
type Heard struct {
	Message string `json:"m"` // id on the channel
	Arrival string `json:"a"` // id of the arrival
}

// Begins reports whether a reader of the journal can start here.
func (e *Entry) Begins() bool { return e.Kind == SummaryEntry && e.Keeps == 0 || e.Kind == ResetEntry }

// Spoken reports whether the entry is what a person said or what was answered.
func (e *Entry) Spoken() bool { return e.Kind == UserEntry || e.Kind == AnswerEntry }

// Shortens reports whether the entry is a summary that takes the place of entries some way before it: of those up to
// the number Floor.
func (e *Entry) Shortens() bool { return e.Kind == SummaryEntry && e.Keeps > 0 }

// Floor returns the number of the last entry that a summary with Keeps takes the place of.
func (e *Entry) Floor() int64 { return e.N - int64(e.Keeps) - 1 }

// Anew reports whether nothing before this entry counts any more.
func (e *Entry) Anew() bool { return e.Begins() && e.State == nil }

// Refusal says to people why a call did not run. The model never sees it.
type Refusal struct {
	Reason reason.Reason `json:"because,omitzero"` // use Why to read it
	Rule   string        `json:"rule,omitempty"`   // that refused; "" = no rule did: the tool itself, or a limit of it
	// English is what older versions wrote instead of Reason.
	English string `json:"why,omitempty"`
}

// Why returns the reason, also of an entry of an older version.
func (r *Refusal) Why() reason.Reason { return reason.Or(r.Reason, r.English) }

// Quote is the message that a person replied to. The model is shown it as an untrusted quotation.
type Quote struct {
	Author string `json:"author"`
	Caller string `json:"caller,omitempty"` // who that is, as in Entry.Caller; "" = not known
	Own    bool   `json:"own,omitempty"`    // the assistant's own words
	Text   string `json:"text"`             // "" = it has none: what came with it is among the parts (llm.Part.Quoted)
	// Elsewhere: it was written in another chat, Chat, whose title may not be known.
	Elsewhere bool   `json:"elsewhere,omitempty"`
	Chat      string `json:"chat,omitempty"`
}

// Use is a tool use and what is known about it.
type Use struct {
	Call  string          `json:"call"` // our id: unique in the session ("12.0": batch and index)
	Model string          `json:"id"`   // the model's id
	Name  string          `json:"name"`
	Args  json.RawMessage `json:"args"`
	Extra json.RawMessage `json:"extra,omitempty"`
	// Definition is the hash of the definition that the model was shown; "" if it named no known tool.
	Definition string `json:"def,omitempty"`
	ReadOnly   bool   `json:"ro,omitempty"`
	// Repeatable: it changes something, but running it again with the same id changes nothing more (tools.Definition).
	Repeatable bool `json:"again,omitempty"`
	// Plans: it shows a plan, which its arguments have, and counts for nobody (act.Plans).
	Plans bool `json:"plan,omitempty"`
}

// Counted returns how many of the first n uses count against limits.
func (e *Entry) Counted(n int) (count int) {
	for i := range e.Uses[:n] {
		if !e.Uses[i].Plans {
			count++
		}
	}
	return count
}

// Again reports whether the use can be run again if its outcome is unknown.
func (u *Use) Again() bool { return u.ReadOnly || u.Repeatable }

// ErrConflict means that another worker wrote to the journal: this Runner has lost the turn and must stop.
var ErrConflict = errors.New("the journal was written by another worker")

// Stats sums up a turn so far, from its journal.
type Stats struct {
	Steps int // model calls with tool uses
	Calls int // tool calls with a result
	Ran   int // those of them that ran
	// calls that were refused, other than by a person who was asked
	Refused int
	Usage   llm.Usage
	USD     float64
}
