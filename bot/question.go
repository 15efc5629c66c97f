package bot

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// ApprovalState is the state of a question.
type ApprovalState string

// States of a question. All but Open are final.
const (
	Open      ApprovalState = "pending"
	Approved  ApprovalState = "approved"
	Denied    ApprovalState = "denied"
	Expired   ApprovalState = "expired"
	Withdrawn ApprovalState = "cancelled"
)

// Scope of an approval.
const (
	Once    = "once"
	Session = "session"
	Always  = "always" // a rule was stored: StoredRule adds what limits it
	// Tool approves every call of a tool that only reads, in one conversation.
	Tool = "tool"
	// Host approves what goes to a host or to an MCP server, in one conversation.
	Host = "host"
	// Cleared approves the call and clears the mark of the flagged source that the question names (Body).
	Cleared = "cleared"
)

// StoredRule returns the scope of an approval with which a rule was stored: Always, and what limits the rule: so many
// later calls (0 = any number), and its end (zero = it has none).
func StoredRule(most int, until time.Time) string {
	scope := Always
	if most > 0 {
		scope += ":" + strconv.Itoa(most)
	}
	if !until.IsZero() {
		scope += ":" + until.UTC().Format(time.RFC3339)
	}
	return scope
}

// RuleStored returns what limits the rule that was stored with an approval of this scope, as StoredRule was told. It is
// false if none was stored.
func RuleStored(scope string) (most int, until time.Time, stored bool) {
	scope, limit, _ := strings.Cut(scope, ":")
	if scope != Always {
		return 0, time.Time{}, false
	}
	number, end, _ := strings.Cut(limit, ":")
	most, err := strconv.Atoi(number)
	if err != nil { // it has an end only
		most, end = 0, limit
	}
	until, _ = time.Parse(time.RFC3339, end)
	return most, until, true
}

// Approval is a question to a person, and its decision.
type Approval struct {
	ID      string // 22 characters, 128 random bits: used in callback data
	Short   string // for /approve: unique among open questions of a chat
	Session SessionKey
	Turn    string
	Call    string
	Place   Place
	Caller  string // who asked for the work
	Tool    string
	Hash    string          // of what is approved: tool, definition, arguments, caller
	Body    json.RawMessage // tools.Question
	State   ApprovalState
	Scope   string   // of the decision
	By      string   // caller id of the person who decided
	ByName  string   // display name of the person who decided
	Votes   []string // caller ids that approved so far, if several are needed
	Needed  int      // approvals needed, ≥ 1
	Created time.Time
	Expires time.Time
	Decided time.Time
	Row     int64 // outbox row of the card
}

// Decision decides an open question; the error is ErrDecided if it is no longer open. Votes are added to those stored,
// each once, so that two people who press at the same time on two replicas are both counted.
type Decision struct {
	ID string
	// Open only adds votes (By counts as one); the vote that completes Needed approves, as Applied.Decided reports
	State  ApprovalState
	Scope  string
	By     string
	ByName string
	Votes  []string
	At     time.Time
}
