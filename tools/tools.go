// Package tools defines what a tool is, what a call carries, and how it can fail. The stages that guard a call are in
// packages below and are composed in tools/chain; the built-in tools are next to them.
package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/zephbot/zephbot/policy/source"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/grant"
	"github.com/zephbot/zephbot/policy/netrule"
	"github.com/zephbot/zephbot/policy/reason"
)

// Definition is what models, people and the policy know about a tool.
type Definition struct {
	Name         string          // "bash", or "server:tool" for MCP
	Description  string          // for the model
	Schema       json.RawMessage // JSON Schema of the arguments: always an object
	OutputSchema json.RawMessage // for a structured result; may be nil
	ReadOnly     bool            // changes nothing: can run concurrently with others and be retried
	// Repeatable: a call that runs again with the same turn and id has no further effect, so one
	// that was interrupted is run again.
	Repeatable  bool
	Destructive bool // may destroy existing data; shown on the approval card
	// its MCP server states that it only reads, whether the server is trusted or not: enough for a person to approve it
	// for a session
	Reads   bool
	Server  string         // MCP server id; "" for a built-in
	Trusted bool           // the annotations of the MCP server are believed
	Timeout time.Duration  // limit for one run; 0 = the tool limits itself
	Says    *act.Statement // statement of a built-in tool; nil = none. Use Stated to read it
	// Seldom says in a few words what a tool is for that few turns need. A model reads only these until it asks for the
	// tool (agent/catalog); "" = it is always shown.
	Seldom string
	// Outside: its commands run in another program (an editor), where our kernel sandbox does not confine them.
	Outside bool
}

// Stated returns the tool's statement. Only built-in tools are believed: for a tool of an MCP server, and for one
// without a statement, the result is the zero value, which relaxes no check.
func (d Definition) Stated() act.Statement {
	if d.Says == nil || d.Server != "" {
		return act.Statement{}
	}
	return *d.Says
}

// Runs reports whether the tool runs shell commands.
func (d Definition) Runs() bool { return d.Stated().Act == act.Runs }

// Hash identifies the definition. An approval includes it, so that a tool that changed meanwhile does not run on an old
// approval.
func (d Definition) Hash() string {
	h := sha256.New()
	for _, part := range []string{d.Name, d.Description, string(d.Schema), string(d.OutputSchema), d.Server} {
		fmt.Fprintf(h, "%d:%s", len(part), part) // prefixed by its length, so that no two definitions collide
	}
	fmt.Fprintf(h, "%t %t %t", d.ReadOnly, d.Destructive, d.Trusted)
	if d.Reads {
		fmt.Fprint(h, " reads")
	}
	if d.Outside {
		fmt.Fprint(h, " outside")
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Origin says for whom and from where a call is made. It is part of every call, log line and audit record.
type Origin struct {
	Channel string // "telegram", "terminal", …
	Session string // session key
	// Workspace is the id of the place of the session's files; "" = derived from Session, for callers that did not look
	// it up.
	Workspace string
	Chat      string // chat that gets the answer, for rules per chat
	Turn      string // id of the turn
	Caller    string // "telegram:42"; "" only if there is no person (tools call without --caller)
	Agent     string // name of the sub-agent that makes the call for the caller; "" = none
	Parent    string // call of the turn that began the sub-agent; "" = none
	Name      string // how the caller calls themselves; "" = not known. Untrusted
	// Private: the chat is the caller's alone, and nobody else reads it.
	Private bool
	Admin   bool
	Alone   bool // nobody can approve a call: there is no approver, or nobody at the terminal
	// Unattended: the caller does not wait for the turn, or has no buttons where it is answered, so that they cannot be
	// asked anything: a scheduled task, another bot, a program that runs the terminal.
	Unattended bool
}

// Call is one call of a tool. It is owned by one goroutine at a time.
type Call struct {
	ID     string          // unique within the session, stable across restarts
	Batch  int64           // journal number of the assistant message that requested it
	Tool   string          // qualified name, as the model wrote it
	Args   json.RawMessage // as the model wrote them; the decode stage replaces them by their canonical form
	Origin Origin
	Trail  *Trail // never nil within the chain
	// Definition is the hash of the definition that the model was shown, according to the journal. The chain refuses
	// the call if the tool has changed since. Empty = not checked.
	Definition string
	// Probe only asks whether the call may run now: the chain ends with ErrProbed before anything happens.
	Probe bool
	// Tools is how the turn modifies the set of tools (allow-lists of chat and channel, additional tools); nil = not at
	// all.
	Tools *Overlay
	// OnStart is called once, just before the tool runs, for the journal's "started" record. An error stops the call.
	OnStart func(ctx context.Context) error
	// Progress receives a line about what the tool is doing, for the person who waits. It may be nil and must not
	// block.
	Progress func(text string)
	// Delegate gives a task to a sub-agent and waits for its result, or for as long as the turn can go on: an error
	// that it returns must be returned as it is. nil = the caller cannot delegate.
	Delegate func(ctx context.Context, task Task) (*Result, error)
	// Room is how many tokens of the model's window the output may take; 0 = the caller knows no limit. What is longer
	// is put aside, and the model gets its beginning and its end.
	Room int
	// Ask is what the person wants in this turn, for stages that judge relevance; may be empty.
	Ask string
	// Said is what the person has written or said themselves in this turn: no quotation, no file, nothing forwarded.
	Said string
	// Foreign is the source of the latest text in this session that was not written by the people who talk in it, nor
	// by the model: a page, a file, the output of a command; "" = there is none.
	Foreign string
	// Suspicious is the untrusted source whose content was flagged earlier in this session; "" = none. The gate passes
	// it to the policy.
	Suspicious string
	// Addresses is what this session knows of web addresses, for this call; nil = nothing.
	Addresses Addresses
	// Follow returns why the call must not go on to the address that a redirect names; before is the address that
	// redirects. It is set by the gate; nil = every redirect may be followed. It is not safe for concurrent use.
	Follow func(before, to string) error
	// Touched are the canonical paths that calls of this session have worked on. They may be read again after flagged
	// content.
	Touched []string
	// BatchN and CallN number the batch and the call among those of the caller in the session, from 1, since its
	// beginning or the last /clear. They come from the journal, so that a resumed or repeated call has the same
	// numbers. 0 = the call is not part of a session.
	BatchN, CallN int
	// Began is the number of the journal entry at which the session was last cleared; 0 = never.
	Began int64
	// Earlier are the calls of this turn that had ended before this batch was requested, oldest first.
	Earlier []Earlier

	// Unchanged checks, just before the tool runs, whether everything that the decision depended on is still the same.
	// It returns what changed; nil = nothing.
	Unchanged func(ctx context.Context) (changed []string)

	// Layer identifies what a person has approved of a call that ran already without effect (Effect.Layer): the tool
	// applies exactly that instead of running. "" = it runs. Set by the approve stage.
	Layer string

	// Shown is what was at the paths that the call works on when a person approved what it does to them: the tool does
	// nothing if something else is there now. nil = no person has seen that. Set by the approve stage.
	Shown []FileState
	// Ahead is what calls of the same step that came before this one have done (Trail.Left), oldest first.
	Ahead []FileState

	// Reply is what came of the Form of the call (Subject.Form), for the tool. Set by the approve stage.
	Reply *FormReply

	// Set by the decode stage.
	Def     Definition
	Subject Subject
}

// Addresses is what a session knows of web addresses, for one call. Addresses are in the form of netrule.Plain.
// It is safe for concurrent use.
type Addresses interface {
	// Origin says who has brought an address into the conversation.
	Origin(normal string) netrule.Origin
	// Take counts a site (netrule.Site) of which the call opens an address because it was found, once for each call. It
	// returns false, and counts nothing, if other calls of the turn have taken the site netrule.MostOpened times.
	Take(site string) bool
	// Leave takes back what the call has taken.
	Leave()
}

// Earlier is a call that has ended.
type Earlier struct {
	Tool string
	Args json.RawMessage
	Text string // of its result
}

// Subject is what the policy checks: the call in canonical form, as described by the tool itself.
type Subject struct {
	Inputs []string // matched by permission rules: command text, canonical paths, URLs
	Paths  []string // canonical paths and URLs, for the rules of [tools.policy]
	// Files maps the paths that a command may touch to what is there, see policy.Request.Files; nil = not determined.
	Files map[string][]string
	Show  string        // what a person sees when asked: the whole command, the path …
	Note  reason.Reason // location and limits: "in the workspace · network off"
	// Deed returns what the call would do to files; nil = not known. It is set by the gate for a call that asks; nil =
	// its tool does not say.
	Deed func() *Effect
	// State returns what is at the paths that the call works on, so that an approval can be bound to it. It is set with
	// Deed; nil = its tool does not say.
	State func() ([]FileState, error)
	// Form is what the call asks the person whose turn it is; nil = nothing. It runs once they have answered, or will
	// not any more (Call.Reply).
	Form *Form
	// Costly: the call may cost more than is spent without a question.
	Costly bool
	Own    bool // the text that the call keeps consists of the person's own words (Call.Said)
	// Dir is the working directory of the call, set by the gate; "" = not known.
	Dir string
	// Scripts are the files whose content determines what the call does, as they were at the time of the decision; set
	// by the gate. An approval includes them.
	Scripts []grant.File
}

// Trail is what the stages record about a call. The audit record is made from it.
type Trail struct {
	// Explicit: an ask rule or a confirm pattern of the operator is about the call; nothing
	// runs before a person said yes.
	Explicit bool

	Rule       string        // the rule that decided
	Effect     string        // allow, ask, deny
	Reason     reason.Reason // of the decision
	Bared      bool          // allowed because the kernel hides from the command what it must not read
	Reading    bool          // allowed only where it can change nothing and reach nobody
	Suspicious string        // untrusted source that was flagged in this session
	ApprovedBy string
	Offers     []grant.Offer // choices of a standing approval, for a call that asks
	// Whole is what a person may approve for the rest of the conversation instead of this one call; nil = nothing.
	Whole *grant.Grant
	// Granted are the standing approvals without which the call would not be allowed.
	Granted    []grant.Grant
	Server     string   // address of the MCP server, for the policy
	Changed    []string // files that changed since a standing approval for this call was stored
	Judge      string   // allow, deny:<reason>, error:<text>
	Cached     bool
	Attempts   int // runs of the tool
	Category   Category
	ExitCode   *int
	Truncated  bool
	RolledBack bool
	Injection  bool // the result contained signs of prompt injection
	// Cleared is the source whose mark the person who approved the call has cleared: what was flagged was no order.
	Cleared string
	// Layer identifies what was applied instead of running the call, because the person who approved it had seen it
	// (Effect.Layer); "" = the call ran.
	Layer        string
	MCPServer    string
	MCPErrorCode string
	Correlation  string
	Egress       []Egress
	// what the person has to be told in addition to the result, one sentence each (a declined question of a server)
	Notices []string
	// one line about the result, for the person who watches: "[shell] 342 lines -> 28 lines, 91.8% filtered"
	Summary string
	// Left is what the call has changed in files, as far as its tool says so.
	Left     []FileState
	Started  bool
	Duration time.Duration
	Audit    string // hash of the call's line in the audit log; "" = it has none
}

// Approved reports whether a person approved the call: now, or as one of those that a standing approval covers.
func (t *Trail) Approved() bool {
	return t != nil && (t.ApprovedBy != "" || strings.HasPrefix(t.Rule, grant.RulePrefix))
}

// Egress is one outgoing request of a tool, including blocked ones.
type Egress struct {
	URL     string `json:"url"` // without userinfo and query
	Host    string `json:"host"`
	Method  string `json:"method"`
	Status  int    `json:"status,omitempty"`
	Bytes   int64  `json:"response_bytes,omitempty"`
	Blocked string `json:"block_reason,omitempty"` // allowlist, blocklist, ssrf, scheme, redirect
	Hop     int    `json:"hop,omitempty"`
	Millis  int64  `json:"duration_ms"`
}

// Result is the result of a tool.
type Result struct {
	Text      string // for the model; "" becomes "(no output)"
	Whole     string // the whole (redacted) text, if a stage has left something out of Text; "" = Text is complete
	Raw       any    // raw form that can be encoded as JSON (the shell's envelope); may be nil
	ExitCode  *int   // of a process; nil when there was none or a signal ended it
	Truncated bool
	// Untrusted is the source of Text as far as the tool knows it; None = our own, or Source derives it from the call.
	Untrusted source.Source
	Error     bool // the tool ran and reports a failure (non-zero exit), described in Text
	// Failure says why a run that began could not do its work, for example a timeout or a stop by a person. Text is the
	// output until then; the chain puts the error before it. Failure implies Error. nil = the run ended by itself.
	Failure     *Error
	MIME        string   // content type of Text when it is not plain text
	Credentials int      // how many were hidden in Text
	Said        []string // what the caller has written themselves, as the call asked them to
	Found       []string // tools found by a search, which are shown for the rest of the turn
	// Links are web addresses that Text names in a shorter form: relative to its page.
	Links []string
	Files []File // images and the like, for the person; the model only reads that they exist
}

// File is output that is not text. Its content is in Data, or was stored for the session and is named by Hash: then the
// tool sends it to the people of the chat, and models do not get it.
type File struct {
	Name    string
	MIME    string
	Data    []byte
	Hash    string // SHA-256 in lower-case hex; "" = the content is in Data
	Size    int64  // bytes behind Hash
	Caption string // shown with the file; "" = the tool and the name of the file are
}

// Remembered is the source of texts that people have had the agent remember (Result.Untrusted). They are data like any
// foreign text, but a person has accepted them already.
const Remembered = source.Memory

// Source returns where the text of the call's result comes from: what the tool said, or what follows from what its
// calls do, so that no tool that reads files or runs commands can forget it. None = our own words.
func (c *Call) Source(result *Result) source.Source {
	if result != nil && result.Untrusted != source.None {
		return result.Untrusted
	}
	if c.Def.Server != "" {
		return source.MCP(c.Def.Server)
	}
	switch says := c.Def.Stated(); says.Act {
	case act.Runs:
		return source.Command
	case act.ReadsFile:
		return source.File(c.Subject.file())
	case act.Inspects:
		return source.Files
	case act.Searches:
		if says.Verb == act.Search {
			return source.Files
		}
		return source.Names
	}
	return source.None
}

// file returns the path of the file that is the only one, as seen from the working directory.
func (s *Subject) file() string {
	if len(s.Paths) != 1 {
		return ""
	}
	if rel, err := filepath.Rel(s.Dir, s.Paths[0]); err == nil && s.Dir != "" && filepath.IsLocal(rel) {
		return rel
	}
	return s.Paths[0]
}

// Handler executes a call.
type Handler func(ctx context.Context, call *Call) (*Result, error)

// Middleware wraps a Handler. In a list, the first is the outermost.
type Middleware func(next Handler) Handler

// Tool is a definition with the functions that run it. Run and Describe are safe for concurrent use and honour ctx.
type Tool struct {
	Definition Definition
	// Describe returns what the policy has to check. The arguments are valid for the schema. Describe must not change
	// anything. nil = the raw arguments.
	Describe func(ctx context.Context, call *Call) (Subject, error)
	// Check returns why the call cannot run at present, before a person is asked about it; nil = it can. It changes
	// nothing, and Run checks again. A nil Check never refuses.
	Check func(ctx context.Context, call *Call) error
	// Changes returns what Run may change, so that it can be kept before. It changes nothing. nil = it is not known.
	Changes func(ctx context.Context, call *Call) (Changes, error)
	// Preview returns what Run would do to a text file. It changes nothing. nil = it is not known.
	Preview func(ctx context.Context, call *Call) (Preview, error)
	// Deed returns what Run would do to files, for the people who decide about the call. It changes nothing.
	// nil = it is not known beforehand.
	Deed func(ctx context.Context, call *Call) (Effect, error)
	// State returns what is at the paths that Run works on, as far as Deed depends on it. It changes nothing.
	// nil = Deed depends on no file.
	State func(ctx context.Context, call *Call) ([]FileState, error)
	// Run executes the call. If it cannot do what was asked, it returns an *Error. A process that ran and failed is a
	// Result with Error set.
	Run Handler
}
