// Package policy decides whether a tool call may run: allow, ask a person, or deny.
//
// It is pure: no I/O, no clock, no goroutine, no context. The gate stage turns
// a call into a [Request] (canonical paths, command text, URLs) and obeys the
// [Decision]; the same request always gets the same answer.
//
// The answer is found in this order; the first denial ends it:
//
//  1. the outer rules, [tools.policy] and [tools.authorization]: a deny ends
//     the call, an allow passes it on;
//  2. the trust of whoever wants the call ([Trust]);
//  3. for commands the hard blocklist, the blocked commands and the network switch;
//  4. the autonomy level ([Level]);
//  5. the permission rules of the tool, or the built-in rules when it has none;
//  6. approvals stored by "Always" ([Grant]), which turn ask into allow;
//  7. what programs obey when they start (.bashrc, .git/hooks): writing it is
//     never allowed unasked.
package policy

import (
	"errors"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/pathrule"
)

// Effect is what a decision says about a call.
type Effect string

// The three effects, from mild to strict.
const (
	Allow Effect = "allow"
	Ask   Effect = "ask"
	Deny  Effect = "deny"
)

// rank orders effects by strictness; what is unknown is the strictest.
func (e Effect) rank() int {
	switch e {
	case Allow:
		return 0
	case Ask:
		return 1
	}
	return 2
}

// Level is security.autonomy_level.
type Level string

// The autonomy levels. The blocklist and deny rules hold at every level.
const (
	// ReadOnly lets only the six tools that read files and the web be called.
	ReadOnly Level = "readonly"
	// Supervised follows the rules and asks where no rule allows.
	Supervised Level = "supervised"
	// Full never asks.
	Full Level = "full"
)

// Request describes one tool call.
type Request struct {
	// Caller and Chat say who asks and where; they are part of the record and
	// do not change the answer, but that a grant may be limited to a caller.
	Caller, Chat string
	// Tool is the name as called; [Set.Canonical] is applied.
	Tool string
	// Says is what the tool says of itself; nil = what [Options.Tools] say of a
	// tool with that name. A tool that says nothing asks, whatever it is.
	Says *act.Statement
	// Args are the arguments as the model wrote them.
	Args map[string]any
	// Inputs is what permission rules are matched with: the command text,
	// canonical paths, URLs. The strictest answer over all of them wins. When
	// it is empty the arguments are looked at (command, file_path, path,
	// source, destination, url, uri, query).
	Inputs []string
	// Paths are the canonical paths the call touches; rules of [tools.policy]
	// with paths are matched with them and with what stands in Args.
	Paths []string
	// Env holds the names of the environment variables the call would see.
	Env []string
	// Trust is the trust of the skill or source behind the call; "" is trusted.
	Trust Trust
	// ReadOnly: the tool says of itself that it changes nothing.
	ReadOnly bool
	// TrustedServer: an MCP tool of a server with trust_level trusted.
	TrustedServer bool
	// Confined: the kernel sandbox is active for child processes.
	Confined bool
	// InsidePaths are the allowed roots (canonical, absolute). A reading
	// command is let through only when all its paths lie below one of them.
	InsidePaths []string
	// Dir is the working directory (canonical): relative paths of rules, of the
	// arguments and of commands start there. "" takes the first of InsidePaths.
	Dir string
	// Files says for the paths that a command may touch (see [CommandPaths])
	// what is there: the canonical paths, none when nothing is. Nil means that
	// nobody looked.
	Files map[string][]string
	// Bared: what the rules forbid to read is out of reach of the command by
	// the kernel, so that only the words it names have to be judged.
	Bared bool
	// Suspicious names the untrusted source whose content was flagged in this
	// conversation. An allow becomes ask for everything that changes something,
	// brings in something new or could carry something out.
	Suspicious string
	// Touched are the canonical paths this conversation has worked on; they may
	// be read again in spite of Suspicious.
	Touched []string
	// Grants are the standing approvals of the chat.
	Grants []Grant
	// Session names the conversation; grants may be limited to one.
	Session string
	// Scripts are the files that [Set.Named] lists, as they are now. A command of bash is covered by no grant without
	// them.
	Scripts []File
	// Server and Definition are the address of a tool's MCP server and the hash of the tool's definition.
	Server, Definition string
}

// Decision is the answer to a Request.
type Decision struct {
	Effect Effect `json:"effect"`
	// Rule is the trace for operators and the audit log, never for the model:
	// which rule of which table decided.
	Rule string `json:"rule"`
	// Reason is one plain sentence for people.
	Reason string `json:"reason"`
	// Changed names the files that are not what they were when a standing approval for this call was stored.
	Changed []string `json:"changed,omitempty"`
}

// Permission is one entry of [[tools.permissions.<tool>]] (seed 003).
type Permission struct {
	// Pattern is a glob over the whole input, see [CompileGlob]; letters match
	// in either case.
	Pattern string
	// Action is Allow, Ask or Deny.
	Action Effect
}

// Evaluation says how the outer rules are weighed.
type Evaluation string

// The evaluations of [tools.policy].
const (
	// FirstMatch takes the first rule that matches, policy rules before
	// authorization rules (seed 001, seed 003).
	FirstMatch Evaluation = "first_match"
	// DenyWins looks at all deny rules first; the order does not matter.
	DenyWins Evaluation = "deny_wins"
)

// Rules is [tools.policy] or [tools.authorization].
type Rules struct {
	// Enabled: the list is ignored when it is false.
	Enabled bool
	// DefaultEffect (allow or deny, "" = deny) decides what matches no rule.
	// It counts for the policy table only.
	DefaultEffect Effect
	// Evaluation "" is FirstMatch. It counts for the policy table only.
	Evaluation Evaluation
	// List holds at most 256 rules, both tables taken together.
	List []Rule
	// File names the policy file the list came from, "" for the config.
	File string
}

// Options configures a Set. The zero value is supervised, without rules,
// without network commands and without free reading commands.
type Options struct {
	Level Level
	// Tools are what our own tools say of themselves: which of them run
	// commands, whose rules hold for what a command does to a file, and their
	// aliases. Without them no input is read as a command.
	Tools []act.Tool
	// Permissions maps a tool, or a glob over tools such as "github:*", to its
	// rules. A tool's own entry beats a glob; of the globs the longest counts.
	Permissions map[string][]Permission
	// BlockedCommands (tools.shell) are denied by name at every level, also
	// beside permission rules; without permission rules for bash they are
	// denied wherever they stand in the text (seed 003).
	BlockedCommands []string
	// AllowedCommands are taken out of the built-in blocklist.
	AllowedCommands []string
	// ConfirmPatterns ask, when bash has no permission rules.
	ConfirmPatterns []string
	// AllowNetwork: network commands (curl, wget, nc …) are not denied outright
	// but ask like anything else; running a download stays blocked.
	AllowNetwork bool
	// AllowReading: reading commands run without asking, when bash has no
	// permission rules, the sandbox is active and all paths are inside.
	AllowReading bool
	// Policy and Authorization are the outer rules.
	Policy, Authorization Rules
	// Files are the globs of tools.file.deny_read and allow_read, which hold
	// for what commands read; the file tools obey them themselves. Nil denies
	// nothing.
	Files *pathrule.Rules
	// Reader remembers the texts of commands for all who read them in one call.
	// Nil remembers nothing.
	Reader *command.Reader
}

// Set is a compiled, immutable set of rules; it is safe for concurrent use.
type Set struct {
	level      Level
	outer      outer
	tables     map[string][]permission
	globTables []globTable
	denied     map[string]bool // programs that deny rules for bash begin with
	shell      shellRules
	startups   startups
	names      act.Names
	doers      []doer
	files      *pathrule.Rules
	limits     limits
	reader     *command.Reader
}

// New compiles the options. One wrong rule refuses everything: the error joins
// all problems, each with table, index, key and reason.
func New(o Options) (*Set, error) {
	s := &Set{
		level: o.Level, startups: newStartups(), names: act.NewNames(o.Tools), doers: doers(o.Tools),
		files: o.Files, reader: o.Reader,
	}
	var errs []error
	switch o.Level {
	case "":
		s.level = Supervised
	case ReadOnly, Supervised, Full:
	default:
		errs = append(errs, problemf("security.autonomy_level", "%q is unknown; use readonly, supervised or full",
			o.Level))
	}
	var err error
	if s.outer, err = compileOuter(s.names, o.Policy, o.Authorization); err != nil {
		errs = append(errs, err)
	}
	if s.tables, s.globTables, err = s.compilePermissions(o.Permissions); err != nil {
		errs = append(errs, err)
	}
	if err == nil {
		s.denied = s.deniedPrograms(o.Tools)
	}
	if s.shell, err = compileShell(o); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	s.limits = s.findLimits(o)
	return s, nil
}

// Decide answers a request. When an outer rule let the call pass, the trace
// names it first: "rule[0] allow: …; built-in: …".
func (s *Set) Decide(r Request) Decision {
	c := s.newCall(&r)
	passed, denied := s.outer.decide(c)
	if denied {
		return passed
	}
	d := s.inner(c)
	if passed.Rule != "" {
		d.Rule = passed.Rule + "; " + d.Rule
	}
	return d
}

// inner decides what the outer rules let pass.
func (s *Set) inner(c *call) Decision {
	r := c.req
	if d, done := trustDecision(r.Trust, c.act); done {
		return d
	}
	if d, done := s.shell.hard(c, c.runs() && len(s.table(c.tool)) == 0); done {
		return d
	}
	if d, done := s.levelDecision(c.act); done {
		return d
	}
	a := s.permit(c)
	if a.effect == Allow {
		if ask, found := s.startup(c); found {
			a = ask
		}
	}
	a = a.stricter(s.judgeFiles(c))
	switch {
	case a.effect == Ask && s.level == Full:
		return Decision{
			Effect: Allow,
			Rule:   "built-in: autonomy level full (" + a.rule + ")",
			Reason: "The autonomy level is full, so nothing is asked.",
		}
	case a.effect == Allow && r.Suspicious != "" && s.level != Full && !c.contained():
		return Decision{
			Effect: Ask,
			Rule:   "built-in: flagged content (" + a.rule + ")",
			Reason: "Content from " + shorten(r.Suspicious) +
				" tried to give instructions in this conversation, so this needs a person's approval.",
		}
	}
	return a.decision(c.req.InsidePaths)
}

// levelDecision denies what the level readonly does not know.
func (s *Set) levelDecision(a act.Act) (Decision, bool) {
	if s.level != ReadOnly || a.OnlyReads() {
		return Decision{}, false
	}
	return Decision{
		Effect: Deny,
		Rule:   "built-in: autonomy level readonly",
		Reason: "The autonomy level is readonly: only files and web pages may be read.",
	}, true
}

// Hides reports that every input of the tool would be denied, so that the
// model need not see it. says is as [Request.Says].
func (s *Set) Hides(tool string, says *act.Statement) bool {
	tool = s.Canonical(tool)
	if s.level == ReadOnly && !s.does(&Request{Says: says}, tool).OnlyReads() {
		return true
	}
	if s.outer.hides(tool) {
		return true
	}
	for _, p := range s.table(tool) {
		if p.action != Deny {
			return false
		}
		if p.glob.all {
			return true
		}
	}
	return false
}

// Status is what /policy status shows.
type Status struct {
	// Enabled is tools.policy.enabled, Authorization its counterpart.
	Enabled, Authorization bool
	// PolicyRules and AuthorizationRules count the rules in force.
	PolicyRules, AuthorizationRules int
	// PermissionTools and PermissionRules count [tools.permissions].
	PermissionTools, PermissionRules int
	Default                          Effect
	Evaluation                       Evaluation
	// File is the policy file, "" when the rules stand in the config.
	File  string
	Level Level
}

// Status says what is in force.
func (s *Set) Status() Status {
	st := s.outer.status()
	st.Level = s.level
	st.PermissionTools = len(s.tables) + len(s.globTables)
	for _, t := range s.tables {
		st.PermissionRules += len(t)
	}
	for _, t := range s.globTables {
		st.PermissionRules += len(t.rules)
	}
	return st
}
