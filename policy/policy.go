// Package policy decides whether a tool call may run: allow, ask a person, or deny.
//
// It is pure: no I/O, no clock, no goroutine, no context. The gate stage turns a call into a [Request] (canonical
// paths, command text, URLs) and enforces the [Decision]. The same request always gets the same answer.
//
// The following are applied in this order, and the first denial ends the decision:
//
//  1. the outer rules, [tools.policy] and [tools.authorization]: a deny ends the call, an allow lets it pass;
//  2. the trust level of the source of the call ([Trust]);
//  3. for commands, the hard blocklist, the blocked commands and the network switch;
//  4. the autonomy level ([Level]);
//  5. the permission rules of the tool, or the built-in rules if it has none;
//  6. approvals stored by "Always" ([Grant]), which turn an ask into an allow;
//  7. files that programs obey when they start (.bashrc, .git/hooks): writing one is never allowed
//     without asking.
package policy

import (
	"errors"
	"slices"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/netrule"
	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/policy/reason"
)

// Effect is what a decision says about a call.
type Effect string

// Effects, from mild to strict.
const (
	Allow Effect = "allow"
	Ask   Effect = "ask"
	Deny  Effect = "deny"
)

// rank orders effects by strictness. An unknown effect is the strictest.
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

// Autonomy levels. The blocklist and deny rules apply at every level.
const (
	// ReadOnly permits only the six tools that read files and the web.
	ReadOnly Level = "readonly"
	// Supervised follows the rules, and asks where no rule allows a call.
	Supervised Level = "supervised"
	// Full never asks.
	Full Level = "full"
)

// Request describes one tool call.
type Request struct {
	// Caller and Chat say who makes the call and where. They are recorded and do not affect the answer, except that a
	// grant may be limited to a caller.
	Caller, Chat string
	// Tool is the name as called. [Set.Canonical] is applied to it.
	Tool string
	// Says is the tool's statement; nil = the statement in [Options.Tools] for this name. A tool without a statement
	// asks.
	Says *act.Statement
	// Args are the arguments as the model wrote them.
	Args map[string]any
	// Inputs are matched by permission rules: the command text, canonical paths, URLs. The strictest answer for all of
	// them wins. If it is empty, the arguments are used (command, file_path, path, source, destination, url, uri,
	// query).
	Inputs []string
	// Paths are the canonical paths that the call touches. Rules of [tools.policy] with paths are matched against them
	// and against the paths in Args.
	Paths []string
	// Env lists the names of the environment variables that the call would see.
	Env []string
	// Trust is the trust level of the skill or source behind the call; "" is trusted.
	Trust Trust
	// ReadOnly: the tool states that it changes nothing.
	ReadOnly bool
	// TrustedServer: the MCP server of the tool has trust_level trusted.
	TrustedServer bool
	// Confined: the kernel can run a command so that it changes nothing and reaches nobody (sandbox.Level.Reading).
	Confined bool
	// Outside: the call runs in a program that is not ours, such as an editor, where nothing here restricts it. No
	// command runs there without a question unless a rule allows it.
	Outside bool
	// InsidePaths are the allowed roots (canonical, absolute). A reading command runs without a question only if all
	// its paths are below one of them.
	InsidePaths []string
	// Dir is the working directory (canonical), at which relative paths of rules, arguments and commands start. "" =
	// the first of InsidePaths.
	Dir string
	// Files maps the paths that a command may touch (see [CommandPaths]) to the canonical paths of what exists there,
	// or to none. Nil means that the disk was not inspected.
	Files map[string][]string
	// Level is the autonomy level of the conversation. It only restricts: a level that permits more than that of the
	// rules changes nothing. "" = that of the rules.
	Level Level
	// Bared: the kernel hides from the command what the rules forbid to read, so that only the words of the command
	// have to be judged.
	Bared bool
	// Suspicious is the untrusted source whose content was flagged in this session. An allow becomes an ask for
	// everything that changes something, brings in something new or could carry something out.
	Suspicious string
	// Foreign is the source of text in this session that the person has not written and that the call may be made
	// of; "" = there is none, or the call's text is the person's own words. An allow becomes an ask for what
	// keeps text for later conversations.
	Foreign string
	// Addresses are the web addresses that the call may open, or that it tells an MCP server.
	Addresses []Address
	// Costly: the call may cost more than is spent without a question.
	Costly bool
	// Reads: the MCP server of the tool states that it only reads, trusted or not.
	Reads bool
	// Touched are the canonical paths on which this session has worked. They may be read again in spite of Suspicious.
	Touched []string
	// Grants are the standing approvals of the chat.
	Grants []Grant
	// Session identifies the session; grants may be limited to one.
	Session string
	// Scripts is the current state of the files that [Set.Named] returns. Without it, no grant covers a bash command.
	Scripts []File
	// Server and Definition are the address of the tool's MCP server and the hash of the tool's definition.
	Server, Definition string
}

// Decision is the answer to a Request.
type Decision struct {
	Effect Effect `json:"effect"`
	// Rule is the trace for operators and the audit log, never for the model: which rule of which table decided.
	Rule string `json:"rule"`
	// Reason is why.
	Reason reason.Reason `json:"reason"`
	// Changed lists the files that changed since a standing approval for this call was stored.
	Changed []string `json:"changed,omitempty"`
	// Granted are the standing approvals without which the call would not be allowed.
	Granted []Grant `json:"-"`
	// Reading: the command is allowed only where it can change nothing and reach nobody. If that is too little
	// for it, a person has to be asked.
	Reading bool `json:"reading,omitempty"`
	// Whole is what a person may approve for the rest of the conversation instead of this
	// one call; nil = the call alone.
	Whole *Grant `json:"whole,omitempty"`
	// Watched: redirects have to be checked (Set.Follows).
	Watched bool `json:"watched,omitempty"`
}

// because returns a decision with its reason.
func because(effect Effect, rule string, why reason.Reason) Decision {
	return Decision{Effect: effect, Rule: rule, Reason: why}
}

// Permission is one entry of [[tools.permissions.<tool>]] (seed 003).
type Permission struct {
	// Pattern is a glob over the whole input, see [CompileGlob]. Letters match in any case. For commands, words
	// NAME=glob may come before: the rule is about commands before which these variables are set, with values that
	// match in this case. An allow rule covers no value that has blanks or is not known.
	Pattern string
	// Action is Allow, Ask or Deny.
	Action Effect
}

// Evaluation is the way in which the outer rules are evaluated.
type Evaluation string

// Evaluations of [tools.policy].
const (
	// FirstMatch applies the first rule that matches, policy rules before authorization rules (seed 001, seed 003).
	FirstMatch Evaluation = "first_match"
	// DenyWins applies all deny rules first, regardless of the order.
	DenyWins Evaluation = "deny_wins"
)

// Rules is [tools.policy] or [tools.authorization].
type Rules struct {
	// Enabled: the list is ignored if this is false.
	Enabled bool
	// DefaultEffect (allow or deny, "" = deny) applies to what matches no rule. It is used only for the policy table.
	DefaultEffect Effect
	// Evaluation: "" is FirstMatch. It is used only for the policy table.
	Evaluation Evaluation
	// List has at most 256 rules, counting both tables.
	List []Rule
	// File is the policy file that contains the list; "" for the config.
	File string
}

// Options configures a Set. The zero value is supervised and has no rules, no network commands and no free reading
// commands.
type Options struct {
	Level Level
	// Tools are the statements of the built-in tools: which of them run commands, whose rules apply to what a command
	// does to a file, and their aliases. Without them, no input is read as a command.
	Tools []act.Tool
	// Permissions maps a tool, or a glob over tools such as "github:*", to its rules. The tool's own entry takes
	// precedence over globs, and the longest glob over others.
	Permissions map[string][]Permission
	// BlockedCommands (tools.shell) are denied by name at every level, even if there are permission rules. Without
	// permission rules for bash, they are denied wherever they occur in the text (seed 003).
	BlockedCommands []string
	// AllowedCommands are removed from the built-in blocklist.
	AllowedCommands []string
	// ConfirmPatterns ask, if bash has no permission rules.
	ConfirmPatterns []string
	// AllowNetwork: network commands (curl, wget, nc …) are not denied outright, but ask like other commands. Running a
	// download stays blocked.
	AllowNetwork bool
	// Unasked says which commands run without a question if bash has no permission rules; "" is UnaskedNothing. All
	// their paths must be inside. Where the kernel cannot keep a command from changing anything, these are only the few
	// that cannot do so whatever their words.
	Unasked Unasked
	// Policy and Authorization are the outer rules.
	Policy, Authorization Rules
	// QuietHosts are domains, as in [netrule.Options], whose pages may be opened whatever the model puts into their
	// address.
	QuietHosts []string
	// Files are the globs of tools.file.deny_read and allow_read, for what commands read; the file tools enforce them
	// themselves. Nil denies nothing.
	Files *pathrule.Rules
	// Reader caches parsed commands, for all who parse them during one call. Nil caches nothing.
	Reader *command.Reader
}

// Set is a compiled, immutable set of rules. It is safe for concurrent use.
type Set struct {
	level      Level
	outer      outer
	tables     map[string][]permission
	globTables []globTable
	denied     map[string]bool // programs with which deny rules for bash begin
	shell      shellRules
	startups   startups
	names      act.Names
	doers      []doer
	files      *pathrule.Rules
	limits     limits
	reader     *command.Reader
	quietHosts []string
}

// New compiles the options. One wrong rule makes it fail: the error joins all problems, each with table, index, key and
// reason.
func New(o Options) (*Set, error) {
	s := &Set{
		level: o.Level, startups: newStartups(), names: act.NewNames(o.Tools), doers: doers(o.Tools),
		files: o.Files, reader: o.Reader, quietHosts: o.QuietHosts,
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
	if err := netrule.CheckDomains(o.QuietHosts); err != nil {
		errs = append(errs, problemf("tools.web.quiet_hosts", "%w", err))
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

// Decide decides a request. If an outer rule let the call pass, the trace names that rule first: "rule[0] allow: …;
// built-in: …".
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

// inner decides calls that pass the outer rules.
func (s *Set) inner(c *call) Decision {
	r := c.req
	if d, done := trustDecision(r.Trust, c.act); done {
		return d
	}
	if d, done := s.shell.hard(c, c.runs() && len(s.table(c.tool)) == 0); done {
		return d
	}
	level := s.level.stricter(r.Level)
	if d, done := level.decision(c.act); done {
		return d
	}
	a := s.permit(c)
	if a.effect == Allow {
		if ask, found := s.startup(c); found {
			a = ask
		}
	}
	a = a.stricter(s.judgeFiles(c))
	a = s.covered(c, a)
	switch {
	case a.effect == Ask && level == Full:
		return because(Allow, "built-in: autonomy level full ("+a.rule+")", reason.New(reason.AutonomyFull))
	case a.effect == Allow && level != Full:
		if d, asks := s.doubted(c, a); asks {
			return d
		}
	}
	d := a.decision(c.req.InsidePaths)
	d.Watched = d.Effect == Allow && level != Full && c.act == act.ReadsWeb && c.req.Foreign != ""
	return d
}

// FlaggedRule begins Decision.Rule of a call that is asked about only because content in its conversation was flagged:
// without Request.Suspicious it would run.
const FlaggedRule = "built-in: flagged content"

// covered asks about a command that could read, by a program's language that nobody here reads, what the rules forbid
// to read and the kernel does not hide.
func (s *Set) covered(c *call, a answer) answer {
	if a.effect != Allow || !a.reading || !s.limits.read.any || c.req.Bared {
		return a
	}
	for i := range c.scripts {
		if !c.scripts[i].Inert() {
			return answer{
				effect: Ask, rule: "built-in: what may not be read is not hidden", about: &c.scripts[i].Text,
				code: reason.MayReadDenied,
			}
		}
	}
	return a
}

// doubted asks about a call that is allowed, because a text that nobody in the
// conversation has written may be behind it.
func (s *Set) doubted(c *call, a answer) (Decision, bool) {
	r := c.req
	way, leads := s.wayOut(c, a)
	switch {
	case r.Suspicious != "" && !c.contained():
		rule := FlaggedRule
		if leads {
			rule = WayRule + ", flagged content"
		}
		return because(Ask, rule+" ("+a.rule+")", reason.New(reason.ContentFlagged, shorten(r.Suspicious))), true
	case leads:
		return way, true
	case r.Foreign != "" && c.act == act.Remembers:
		return because(
			Ask, "built-in: foreign content ("+a.rule+")", reason.New(reason.MemoryForeign, shorten(r.Foreign)),
		), true
	}
	return Decision{}, false
}

// stricter returns the stricter one of two levels. An unknown one is the strictest; "" is none.
func (l Level) stricter(other Level) Level {
	order := []Level{ReadOnly, Supervised, Full}
	switch at := slices.Index(order, other); {
	case other == "":
		return l
	case at < 0:
		return ReadOnly
	default:
		return order[min(at, max(0, slices.Index(order, l)))]
	}
}

// decision denies what the level readonly does not permit.
func (l Level) decision(a act.Act) (Decision, bool) {
	if l != ReadOnly || a.OnlyReads() {
		return Decision{}, false
	}
	return because(Deny, "built-in: autonomy level readonly", reason.New(reason.AutonomyReadonly)), true
}

// Hides reports whether every input of the tool would be denied, so that the model need not see it. says is like
// [Request.Says].
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
	// Enabled is tools.policy.enabled; Authorization is its counterpart.
	Enabled, Authorization bool
	// PolicyRules and AuthorizationRules count the active rules.
	PolicyRules, AuthorizationRules int
	// PermissionTools and PermissionRules count [tools.permissions].
	PermissionTools, PermissionRules int
	Default                          Effect
	Evaluation                       Evaluation
	// File is the policy file; "" if the rules are in the config.
	File  string
	Level Level
}

// Status returns a summary of the active rules.
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

// Trust is the trust level of the skill or source behind a call.
type Trust string

// Trust levels, from most to least trusted. The zero value is trusted.
const (
	Trusted     Trust = "trusted"
	Verified    Trust = "verified"
	Quarantined Trust = "quarantined"
	Blocked     Trust = "blocked"
)

// Known reports whether t is one of the four levels or empty.
func (t Trust) Known() bool {
	switch t {
	case "", Trusted, Verified, Quarantined, Blocked:
		return true
	}
	return false
}

// Severity returns 0 for trusted, 1 for verified, 2 for quarantined and 3 for blocked. An unknown level is as severe as
// blocked.
func (t Trust) Severity() int {
	switch t {
	case "", Trusted:
		return 0
	case Verified:
		return 1
	case Quarantined:
		return 2
	}
	return 3
}

// trustDecision denies what the trust level does not permit: blocked permits nothing, quarantined only tools that read
// and send nothing out. A tool without a statement is denied.
func trustDecision(t Trust, a act.Act) (Decision, bool) {
	switch sev := t.Severity(); {
	case sev >= Blocked.Severity():
		return because(Deny, "built-in: trust blocked", reason.New(reason.SourceBlocked)), true
	case sev == Quarantined.Severity() && !a.Quiet():
		return because(Deny, "built-in: trust quarantined", reason.New(reason.SourceQuarantined)), true
	}
	return Decision{}, false
}
