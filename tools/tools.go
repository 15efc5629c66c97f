// Package tools declares what a tool is, what a call of one carries, and how it may fail. Stages that guard a call live
// in packages below, composed once in tools/chain; the built-in tools live beside them.
package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/grant"
)

// Definition is what a model, a person and a policy know of a tool.
type Definition struct {
	Name         string          // "bash", or "server:tool" for MCP
	Description  string          // for the model
	Schema       json.RawMessage // JSON Schema of the arguments: always an object
	OutputSchema json.RawMessage // of a structured result; may be nil
	ReadOnly     bool            // changes nothing: may run beside others and be repeated
	Destructive  bool            // may destroy what exists; shown on the approval card
	// its MCP server says that it only reads, trusted or not: enough for a person to approve it for a conversation
	Reads   bool
	Server  string         // MCP server id; "" for a built-in
	Trusted bool           // the MCP server's annotations may be believed
	Timeout time.Duration  // upper limit of one run; 0 = the tool limits itself
	Says    *act.Statement // what a tool of our own says of itself; nil = nothing. Read it with Stated
}

// Stated is what the tool says of itself. Only our own tools are believed: of a tool of an MCP server, as of one that
// says nothing, the zero value is given, which lowers no guard.
func (d Definition) Stated() act.Statement {
	if d.Says == nil || d.Server != "" {
		return act.Statement{}
	}
	return *d.Says
}

// Runs reports that the tool runs commands of a shell.
func (d Definition) Runs() bool { return d.Stated().Act == act.Runs }

// Hash identifies the definition: an approval binds it, so that a tool that changed meanwhile does not run on an old
// yes.
func (d Definition) Hash() string {
	h := sha256.New()
	for _, part := range []string{d.Name, d.Description, string(d.Schema), string(d.OutputSchema), d.Server} {
		fmt.Fprintf(h, "%d:%s", len(part), part) // with its length, so that no two definitions read the same
	}
	fmt.Fprintf(h, "%t %t %t", d.ReadOnly, d.Destructive, d.Trusted)
	if d.Reads {
		fmt.Fprint(h, " reads")
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Origin says for whom and from where a call is made. It is part of every call, log line and audit record.
type Origin struct {
	Channel string // "telegram", "terminal", …
	Session string // session key
	Chat    string // chat the answer goes to, for per-chat rules
	Turn    string // id of the turn
	Caller  string // "telegram:42"; "" only where there is no person (tools call without --caller)
	Admin   bool
	Alone   bool // nobody could approve a call: no approver, or nobody at the terminal
}

// Call is one call of a tool on its way through the chain. It is owned by one goroutine at a time.
type Call struct {
	ID     string          // unique within the session, stable over restarts
	Batch  int64           // journal number of the assistant message that asked for it
	Tool   string          // qualified name, as the model wrote it
	Args   json.RawMessage // as the model wrote them; the decode stage replaces them by the canonical form
	Origin Origin
	Trail  *Trail // never nil inside the chain
	// Definition is what the journal says the model was shown; the chain refuses the call when the tool has changed
	// since. Empty = unchecked.
	Definition string
	// Probe asks only whether the call may run now: the chain stops with ErrProbed before anything happens.
	Probe bool
	// Tools is what the turn changes of the tools that there are (allow-lists of chat and channel, tools of its own);
	// nil = nothing.
	Tools *Overlay
	// OnStart is called once, right before the tool runs: the journal's "started" record. An error stops the call.
	OnStart func(ctx context.Context) error
	// Progress takes a line of what the tool is doing, for the person who waits; may be nil. Must not block.
	Progress func(text string)
	// Ask is what the person wants in this turn, for a stage that has to judge what matters; may be empty.
	Ask string
	// Suspicious is the untrusted source whose content was flagged earlier in this conversation; "" = none. The gate
	// hands it to the policy.
	Suspicious string
	// Touched are the canonical paths that calls of this conversation have worked on: what may be read again after
	// flagged content.
	Touched []string
	// BatchN and CallN say which batch and which call of the conversation this is, counted from 1 since its beginning
	// or the last /clear. They come from the journal, so that a resumed or repeated call has the same numbers. 0 = not
	// part of a conversation.
	BatchN, CallN int
	// Began is the number of the journal entry with which the conversation began anew; 0 = from its beginning.
	Began int64
	// Earlier are the calls of this turn that had ended before the batch of this one was asked for, the oldest first.
	Earlier []Earlier

	// Unchanged says, right before the tool runs, whether what the call was decided by is still so; else it names what
	// changed. nil = yes.
	Unchanged func(ctx context.Context) (changed []string)

	// Set by the decode stage.
	Def     Definition
	Subject Subject
}

// Earlier is a call that has ended.
type Earlier struct {
	Tool string
	Args json.RawMessage
	Text string // of its result
}

// Subject is what policy looks at: the call in canonical form, said by the tool itself.
type Subject struct {
	Inputs []string // what permission rules are matched with: command text, canonical paths, URLs
	Paths  []string // canonical paths and URLs, for the rules of [tools.policy]
	// Files says for the paths that a command may touch what is there, see policy.Request.Files; nil = nobody looked.
	Files map[string][]string
	Show  string // what a person is shown when asked: the whole command, the path …
	Note  string // where and under which limits: "in the workspace of this chat · network off"
	// Dir is where the call works, set by the gate; "" = not known.
	Dir string
	// Scripts are the files whose content decides what the call does, as they were when it was decided; set by the
	// gate. An approval binds them.
	Scripts []grant.File
}

// Trail is what the stages found out about a call: the audit record in the making.
type Trail struct {
	Rule         string // the rule that decided
	Effect       string // allow, ask, deny
	Reason       string // the decision in one sentence for people
	Bared        bool   // allowed because the kernel keeps from the command what it may not read
	Suspicious   string // untrusted source that was flagged in this conversation
	ApprovedBy   string
	Offers       []grant.Offer // choices of a standing approval for a call that asks
	Server       string        // address of the MCP server, as the policy knows it
	Changed      []string      // files that are not what they were when a standing approval for this call was stored
	Judge        string        // allow, deny:<reason>, error:<text>
	Cached       bool
	Attempts     int // runs of the tool
	Category     Category
	ExitCode     *int
	Truncated    bool
	RolledBack   bool
	Injection    bool // the result carried marks of prompt injection
	MCPServer    string
	MCPErrorCode string
	Correlation  string
	Egress       []Egress
	// what the person has to be told besides the result, one sentence each (a declined question of a server)
	Notices []string
	// one line about the result for the person who watches: "[shell] 342 lines -> 28 lines, 91.8% filtered"
	Summary  string
	Started  bool
	Duration time.Duration
}

// Egress is one outgoing request of a tool, blocked ones included.
type Egress struct {
	URL     string `json:"url"` // without userinfo and query
	Host    string `json:"host"`
	Method  string `json:"method"`
	Status  int    `json:"status,omitempty"`
	Bytes   int64  `json:"response_bytes,omitempty"`
	Blocked string `json:"block_reason,omitempty"` // allowlist, blocklist, ssrf, scheme
	Hop     int    `json:"hop,omitempty"`
	Millis  int64  `json:"duration_ms"`
}

// Result is what a tool gives back.
type Result struct {
	Text      string // for the model; "" becomes "(no output)"
	Whole     string // the whole (redacted) text when a stage has left something out of Text; "" = Text is whole
	Raw       any    // JSON-able raw form (the shell's envelope); may be nil
	ExitCode  *int   // of a process; nil when there was none or a signal ended it
	Truncated bool
	Untrusted string // where foreign content came from ("https://…", "mcp:github"); "" = our own
	Error     bool   // the tool ran and reports a failure (non-zero exit): Text says what
	// Failure says why a run that began could not do its work (its time was up, a person stopped it); Text is what
	// there was until then. The chain puts its block before the text. It implies Error. nil = it ended by itself.
	Failure     *Error
	MIME        string   // content type of Text when it is not plain text
	Credentials int      // how many were hidden in Text
	Found       []string // tools that a search has found, which are shown from then on in the turn
	Files       []File   // pictures and the like, for the person; the model reads only that they are there
}

// File is something a tool made that is no text.
type File struct {
	Name string
	MIME string
	Data []byte
}

// Handler executes a call.
type Handler func(ctx context.Context, call *Call) (*Result, error)

// Middleware wraps a Handler; in a list the first is the outermost.
type Middleware func(next Handler) Handler

// Tool is one tool: its definition and how to run it. Run and Describe are safe for concurrent use and honour ctx.
type Tool struct {
	Definition Definition
	// Describe says what the policy has to look at. Args are valid against the schema. It must not change anything. nil
	// = the raw arguments.
	Describe func(ctx context.Context, call *Call) (Subject, error)
	// Check says why the call cannot run as things are, before a person is asked about it; nil = it may. It changes
	// nothing, and Run looks again. nil = no such reasons.
	Check func(ctx context.Context, call *Call) error
	// Run executes the call. A failure to do what was asked is an *Error; a process that ran and failed is a Result
	// with Error set.
	Run Handler
}
