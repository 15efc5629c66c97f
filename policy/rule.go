package policy

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/zephbot/zephbot/policy/act"
)

// Limits of the outer rules (seed 003).
const (
	// MaxRules is the maximum number of policy and authorization rules together.
	MaxRules = 256
	// MaxArgsMatch is the maximum length of an args_match in bytes.
	MaxArgsMatch = 1024
	// MaxPolicyFile is the maximum size of a policy file in bytes.
	MaxPolicyFile = 256 << 10
)

// Rule is one rule of [tools.policy] or [tools.authorization]. All conditions that are given must hold.
type Rule struct {
	// Effect is Allow or Deny.
	Effect Effect
	// Tools are globs over tool names; one of them must match.
	Tools []string
	// Paths are globs over paths and match case exactly. A deny rule matches if any path of the call does, an allow
	// rule if all of them do. A call without a path matches neither.
	Paths []string
	// Env: all these variables are set for the call.
	Env []string
	// Trust: the rule matches callers of at most this severity, so "quarantined" includes trusted and verified.
	Trust Trust
	// ArgsMatch is a regular expression (RE2, not anchored) for each top-level text argument.
	ArgsMatch string
	// Capabilities is reserved and has no effect (seed 003).
	Capabilities []string
	// Comment is repeated in the trace.
	Comment string
	// Line is the line in the policy file, 0 when unknown.
	Line int
}

// RawRule is a rule as written, in either spelling. Both spellings of one field may be given if they are equal.
type RawRule struct {
	Effect       string   `toml:"effect" mapstructure:"effect"`
	Action       string   `toml:"action" mapstructure:"action"`
	Tool         any      `toml:"tool" mapstructure:"tool"`   // text or list of texts
	Tools        any      `toml:"tools" mapstructure:"tools"` // text or list of texts
	Paths        []string `toml:"paths" mapstructure:"paths"`
	Env          []string `toml:"env" mapstructure:"env"`
	TrustLevel   string   `toml:"trust_level" mapstructure:"trust_level"`
	ArgsMatch    string   `toml:"args_match" mapstructure:"args_match"`
	Capabilities []string `toml:"capabilities" mapstructure:"capabilities"`
	Comment      string   `toml:"comment" mapstructure:"comment"`
}

// Rule combines the two spellings.
func (r RawRule) Rule() (Rule, error) {
	effect, action := r.Effect, r.Action
	if effect == "" {
		effect = action
	}
	if action != "" && action != effect {
		return Rule{}, fmt.Errorf("effect: %q and action %q contradict each other; keep one", effect, action)
	}
	tool, err := textList("tool", r.Tool)
	if err != nil {
		return Rule{}, err
	}
	tools, err := textList("tools", r.Tools)
	if err != nil {
		return Rule{}, err
	}
	if tool == nil {
		tool = tools
	}
	if tools != nil && strings.Join(tools, "\n") != strings.Join(tool, "\n") {
		return Rule{}, fmt.Errorf("tool: %q and tools %q contradict each other; keep one", tool, tools)
	}
	return Rule{
		Effect: Effect(effect), Tools: tool, Paths: r.Paths, Env: r.Env, Trust: Trust(r.TrustLevel),
		ArgsMatch: r.ArgsMatch, Capabilities: r.Capabilities, Comment: r.Comment,
	}, nil
}

// textList accepts a text or a list of texts.
func textList(key string, v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{v}, nil
	case []string:
		return v, nil
	case []any:
		out := make([]string, 0, len(v))
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil, fmt.Errorf("%s: %v is not a text", key, e)
			}
			out = append(out, s)
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s: must be a text or a list of texts, not %T", key, v)
}

// problemf returns one line of the error that New returns.
func problemf(where, format string, args ...any) error {
	return fmt.Errorf("%s: %w", where, fmt.Errorf(format, args...))
}

// rule is a compiled Rule.
type rule struct {
	effect Effect
	tools  []*Glob
	paths  []*Glob
	env    []string
	trust  int
	args   *regexp.Regexp
	needle string // text that every match of args contains; "" = unknown
	need   sketch // of needle
	name   string // "rule[3]"
	where  string // " (tools.authorization.rules[1])", with file, line and comment
}

// unconditional reports whether the rule depends only on the tool.
func (r *rule) unconditional() bool {
	return len(r.paths) == 0 && len(r.env) == 0 && r.args == nil && r.trust >= Blocked.Severity()
}

// ruleSource says where a list of rules was written.
type ruleSource struct{ table, file string }

// at returns the name of one rule: "tools.policy.rules[3]" or "policy.toml:12 rules[3]".
func (s ruleSource) at(i int, r Rule) string {
	switch {
	case s.file != "" && r.Line > 0:
		return fmt.Sprintf("%s:%d rules[%d]", s.file, r.Line, i)
	case s.file != "":
		return fmt.Sprintf("%s rules[%d]", s.file, i)
	}
	return fmt.Sprintf("%s.rules[%d]", s.table, i)
}

// compileRule compiles one rule and reports everything that is wrong with it.
func compileRule(names act.Names, r Rule, where string) (rule, error) {
	c := rule{effect: r.Effect, env: r.Env, trust: Blocked.Severity(), where: " (" + where + ")"}
	if r.Comment != "" {
		c.where = " (" + where + ": " + shorten(r.Comment) + ")"
	}
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, problemf(where+"."+key, format, args...))
	}
	switch r.Effect {
	case Allow, Deny:
	case "":
		bad("effect", "is missing; write allow or deny")
	default:
		bad("effect", "%q is unknown; use allow or deny", r.Effect)
	}
	if len(r.Tools) == 0 {
		bad("tool", "is missing; write the name of a tool, or * for all")
	}
	for _, t := range r.Tools {
		g, err := CompileGlob(names.Canonical(t), true)
		if err != nil {
			bad("tool", "%w", err)
		}
		c.tools = append(c.tools, g)
	}
	for _, p := range r.Paths {
		g, err := CompileGlob(fromHere(p), false)
		if err != nil {
			bad("paths", "%w", err)
		}
		c.paths = append(c.paths, g)
	}
	for _, e := range r.Env {
		if e == "" || strings.ContainsAny(e, "= ") {
			bad("env", "%q is no variable name", e)
		}
	}
	if r.Trust != "" {
		c.trust = r.Trust.Severity()
		if !r.Trust.Known() {
			bad("trust_level", "%q is unknown; use trusted, verified, quarantined or blocked", r.Trust)
		}
	}
	if err := c.compileArgs(r.ArgsMatch); err != nil {
		bad("args_match", "%w", err)
	}
	return c, errors.Join(errs...)
}

// fromHere removes a leading "./" from a pattern.
func fromHere(pattern string) string {
	if rest, ok := strings.CutPrefix(pattern, "./"); ok && rest != "" {
		return rest
	}
	return pattern
}

func (r *rule) compileArgs(expr string) error {
	if expr == "" {
		return nil
	}
	if len(expr) > MaxArgsMatch {
		return fmt.Errorf("has %d bytes; at most %d are allowed", len(expr), MaxArgsMatch)
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return err
	}
	r.needle = literalIn(parsed)
	r.need.add(r.needle)
	r.args, err = regexp.Compile(expr)
	return err
}

// matches reports whether the rule matches the call, and returns the tool pattern that matched.
func (r *rule) matches(f *facts) (string, bool) {
	glob := r.toolGlob(f)
	if glob == nil || f.severity > r.trust || !r.pathsMatch(f) {
		return "", false
	}
	for _, name := range r.env {
		if !f.env[name] {
			return "", false
		}
	}
	if !r.argsMatch(f) {
		return "", false
	}
	return glob.pattern, true
}

// toolGlob returns the pattern that matches the tool. A deny rule may also match the name as called, before resolving
// aliases.
func (r *rule) toolGlob(f *facts) *Glob {
	for _, g := range r.tools {
		if g.match(f.tool) || r.effect == Deny && g.match(f.called) {
			return g
		}
	}
	return nil
}

// pathsMatch reports whether the paths match: a deny needs one matching path, an allow needs all, so that a copy from
// an allowed place to another one is not allowed by half.
func (r *rule) pathsMatch(f *facts) bool {
	if len(r.paths) == 0 {
		return true
	}
	if r.effect == Deny {
		if !f.hay().mayAny(r.paths) {
			return false
		}
		for _, p := range f.touched() {
			if p.any(r.paths) {
				return true
			}
		}
		return false
	}
	paths := f.claimed()
	for _, p := range paths {
		if !p.any(r.paths) {
			return false
		}
	}
	return len(paths) > 0
}

func (r *rule) argsMatch(f *facts) bool {
	if r.args == nil {
		return true
	}
	for i := range f.texts {
		t := &f.texts[i]
		if !t.has.lacks(&r.need) && strings.Contains(t.text, r.needle) && r.args.MatchString(t.text) {
			return true
		}
	}
	return false
}

// shorten shortens a text for people to one line of at most 80 characters. It removes the middle, because both ends of
// a command say what it does.
func shorten(s string) string {
	const window = 400
	if len(s) > 2*window {
		s = s[:window] + "…" + s[len(s)-window:]
	}
	s = strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "�")
	const limit, head, tail = 80, 48, 31
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	from, to := 0, len(s)
	for range head {
		_, n := utf8.DecodeRuneInString(s[from:])
		from += n
	}
	for range tail {
		_, n := utf8.DecodeLastRuneInString(s[:to])
		to -= n
	}
	return s[:from] + "…" + s[to:]
}

// ParseRules parses a policy file: TOML with [[rules]], at most 256 KiB and 256 rules, in either spelling of [RawRule].
// Unknown keys are errors. The error joins all problems, each with the name of the file and the line.
func ParseRules(name string, data []byte) ([]Rule, error) {
	if len(data) > MaxPolicyFile {
		return nil, fmt.Errorf("%s: the file has %d bytes; at most %d are allowed", name, len(data), MaxPolicyFile)
	}
	var file struct {
		Rules []RawRule `toml:"rules"`
	}
	dec := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := dec.Decode(&file); err != nil {
		return nil, decodeProblem(name, err)
	}
	if len(file.Rules) > MaxRules {
		return nil, fmt.Errorf("%s: the file has %d rules; at most %d are allowed", name, len(file.Rules), MaxRules)
	}
	lines := ruleLines(data)
	src := ruleSource{file: name}
	rules := make([]Rule, 0, len(file.Rules))
	var errs []error
	for i, raw := range file.Rules {
		var line int
		if i < len(lines) {
			line = lines[i]
		}
		where := src.at(i, Rule{Line: line})
		r, err := raw.Rule()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s.%w", where, err))
			continue
		}
		r.Line = line
		if _, err := compileRule(act.Names{}, r, where); err != nil {
			errs = append(errs, err)
			continue
		}
		rules = append(rules, r)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return rules, nil
}

// decodeProblem adds file and line to an error of the TOML parser.
func decodeProblem(name string, err error) error {
	if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		var errs []error
		for i := range strict.Errors {
			line, _ := strict.Errors[i].Position()
			errs = append(errs, fmt.Errorf("%s:%d: unknown key %q", name, line, joinKey(strict.Errors[i].Key())))
		}
		return errors.Join(errs...)
	}
	if decode, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := decode.Position()
		name = fmt.Sprintf("%s:%d:%d", name, line, column)
	}
	return fmt.Errorf("%s: %w", name, err)
}

func joinKey(key toml.Key) string {
	var b bytes.Buffer
	for i, k := range key {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(k)
	}
	return b.String()
}

// ruleLines returns the line of each [[rules]] header. It finds none in a file that writes the rules as an inline
// array.
func ruleLines(data []byte) []int {
	var p unstable.Parser
	p.Reset(data)
	var lines []int
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.ArrayTable {
			continue
		}
		key := e.Key()
		if key.Next() && string(key.Node().Data) == "rules" {
			lines = append(lines, p.Shape(key.Node().Raw).Start.Line)
		}
	}
	return lines
}
