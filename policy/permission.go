package policy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/reason"
)

// permission is a compiled Permission.
type permission struct {
	glob   *Glob // of the whole pattern
	action Effect
	// program is the glob behind the variables that the pattern begins with; head is its first byte.
	program *Glob
	head    byte
	sets    []setting
	name    string // `permissions.bash[2] "git *" allow`
}

// mayBegin reports whether matches of the rule may begin with one of the bytes.
func (p *permission) mayBegin(firsts [3]byte) bool {
	return p.head == 0 || p.head == firsts[0] || p.head == firsts[1] || p.head == firsts[2]
}

// setting is a variable that a pattern names: NAME=glob.
type setting struct {
	name  string
	value *Glob
}

// takes reports whether an assignment has a value that the rule means. One that is not known may be any for a rule that
// denies or asks. One with blanks, which programs split to several options, is none that a rule allows.
func (p *permission) takes(s *setting, v *command.Variable) bool {
	switch {
	case s.name != v.Name:
		return false
	case !v.Known:
		return p.action != Allow
	case p.action == Allow && strings.ContainsFunc(v.Value, unicode.IsSpace):
		return false
	}
	return s.value.Match(v.Value)
}

// finds reports whether a command sets every variable that the rule names.
func (p *permission) finds(cmd *command.Command) bool {
	for i := range p.sets {
		if !slices.ContainsFunc(cmd.Sets, func(v command.Variable) bool { return p.takes(&p.sets[i], &v) }) {
			return false
		}
	}
	return true
}

// unnamed returns the first assignment before a command that is not harmless and that the rule does not cover.
func (p *permission) unnamed(cmd *command.Command) (name *string, found bool) {
	for i := range cmd.Sets {
		v := &cmd.Sets[i]
		if !v.Harmless && !slices.ContainsFunc(p.sets, func(s setting) bool { return p.takes(&s, v) }) {
			return &v.Name, true
		}
	}
	return nil, false
}

// globTable are the rules of a key such as "github:*".
type globTable struct {
	tool  *Glob
	rules []permission
}

// answer is a decision about one input or one simple command. Its reason is put together only when it is needed,
// because most reasons are not.
type answer struct {
	effect Effect
	rule   string
	code   reason.Code
	about  *string        // the input that the reason quotes; nil = none
	target *string        // the second one
	use    string         // what the tool does with it, or the tool's name
	of     *reason.Reason // the reason inside it
	detail string
	// changed are the files because of which a grant no longer covers the call.
	changed []string
	reading bool     // an allow for a place where nothing can be changed
	grants  []*Grant // that have turned an ask into this allow
}

// decision returns the answer as a Decision. Paths in the reason are relative to the session's working directory, the
// first of the inside paths, as people know them.
func (a answer) decision(inside []string) Decision {
	r := reason.Reason{Code: a.code, Detail: a.detail}
	if a.of != nil {
		r = r.With(*a.of)
	}
	if a.use != "" {
		r = r.With(reason.Verb(a.use))
	}
	if a.target != nil {
		r.Args = []string{"", quoted(*a.target)}
	}
	if a.about != nil {
		if *a.about == "" {
			r = r.Quoting("")
		} else {
			r = r.Quoting(quoted(familiar(*a.about, inside)))
		}
	}
	d := because(a.effect, a.rule, r)
	d.Changed, d.Reading = a.changed, a.reading && a.effect == Allow
	if a.effect != Allow {
		return d
	}
	for i, g := range a.grants {
		if !slices.Contains(a.grants[:i], g) {
			d.Granted = append(d.Granted, *g)
		}
	}
	return d
}

// stricter returns the first of the strictest answers, with the grants of both if they are equally strict.
func (a answer) stricter(b answer) answer {
	if b.effect.rank() > a.effect.rank() {
		return b
	}
	a.grants = append(slices.Clip(a.grants), b.grants...)
	return a
}

func (s *Set) compilePermissions(tables map[string][]Permission) (map[string][]permission, []globTable, error) {
	exact := make(map[string][]permission)
	from := make(map[string]string)
	var globs []globTable
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(tables)) {
		rules, err := compileTable(key, tables[key], s.names.Act(s.Canonical(key)) == act.Runs)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		tool := s.Canonical(key)
		if strings.ContainsAny(tool, "*?[") {
			g, err := CompileGlob(tool, true)
			if err != nil {
				errs = append(errs, problemf(tableName(key), "%w", err))
				continue
			}
			globs = append(globs, globTable{tool: g, rules: rules})
			continue
		}
		switch other, twice := from[tool]; {
		case tool == "":
			errs = append(errs, problemf(tableName(key), "the name of the tool is empty"))
		case twice:
			errs = append(errs, problemf(tableName(key), "is the same tool as %s; put the rules into one table",
				tableName(other)))
		}
		from[tool], exact[tool] = key, rules
	}
	// The longest glob wins, and among equally long ones the first by name.
	slices.SortStableFunc(globs, func(a, b globTable) int {
		return cmp.Compare(len(b.tool.pattern), len(a.tool.pattern))
	})
	return exact, globs, errors.Join(errs...)
}

// tableName returns the config key of a table.
func tableName(tool string) string {
	if strings.ContainsAny(tool, ":*?[]. ") || tool == "" {
		return fmt.Sprintf("tools.permissions.%q", tool)
	}
	return "tools.permissions." + tool
}

// compileTable compiles the rules of one key. commands says that they are about commands rather than paths.
func compileTable(tool string, list []Permission, commands bool) ([]permission, error) {
	var errs []error
	out := make([]permission, 0, len(list))
	for i, p := range list {
		where := fmt.Sprintf("%s[%d]", tableName(tool), i)
		switch p.Action {
		case Allow, Ask, Deny:
		default:
			errs = append(errs, problemf(where+".action", "%q is unknown; use allow, ask or deny", p.Action))
		}
		pattern := p.Pattern
		if !commands {
			pattern = fromHere(pattern)
		}
		g, err := CompileGlob(pattern, true)
		if err != nil {
			errs = append(errs, problemf(where+".pattern", "%w", err))
			continue
		}
		one := permission{
			glob: g, action: p.Action, program: g, head: g.head,
			name: fmt.Sprintf("%s %q %s", strings.TrimPrefix(where, "tools."), p.Pattern, p.Action),
		}
		if commands {
			err = one.readSettings()
		}
		if err != nil {
			errs = append(errs, problemf(where+".pattern", "%w", err))
		}
		out = append(out, one)
	}
	return out, errors.Join(errs...)
}

// leading matches the words NAME=glob before a program in a pattern.
var leading = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)=(\S*) +(\S.*)$`)

// readSettings takes the variables from the beginning of a pattern about commands.
func (p *permission) readSettings() error {
	var errs []error
	glob := func(pattern string, fold bool) *Glob {
		g, err := CompileGlob(pattern, fold)
		errs = append(errs, err)
		return g
	}
	rest := p.glob.pattern
	for found := leading.FindStringSubmatch(rest); found != nil; found = leading.FindStringSubmatch(rest) {
		if p.action == Allow && command.ObeyedByShell(found[1]) {
			errs = append(errs, fmt.Errorf("%s decides what runs; no rule can allow it", found[1]))
		}
		p.sets = append(p.sets, setting{name: found[1], value: glob(found[2], false)})
		rest = found[3]
	}
	if len(p.sets) > 0 {
		p.program = glob(rest, true)
		p.head = p.program.head
	}
	return errors.Join(errs...)
}

// table returns the permission rules of a tool; nil if it has none.
func (s *Set) table(tool string) []permission {
	if t, ok := s.tables[tool]; ok {
		return t
	}
	for i := range s.globTables {
		if s.globTables[i].tool.Match(tool) {
			return s.globTables[i].rules
		}
	}
	return nil
}

// permit decides by the tool's permissions, stored grants and built-in rules. The strictest answer for all inputs wins.
func (s *Set) permit(c *call) answer {
	table := s.table(c.tool)
	if c.runs() {
		return s.permitBash(c, table)
	}
	if len(table) == 0 {
		return c.builtin()
	}
	return strictest(c.inputs, func(input string) answer {
		return c.granted(c.byPath(table, input), input)
	})
}

// byPath is byRules for a tool whose input may be a path: a pattern matches it as it is, or relative to the working
// directory.
func (c *call) byPath(table []permission, input string) answer {
	rel, ok := relative(c.dir(), input)
	if !ok {
		return byRules(table, input)
	}
	if p := firstMatch(table, pathForms{input, rel}); p != nil {
		return p.answer(input)
	}
	return unmatched(input)
}

// strictest returns the strictest answer for the inputs, which must not be empty.
func strictest(inputs []string, decide func(string) answer) answer {
	a := decide(inputs[0])
	for _, input := range inputs[1:] {
		a = a.stricter(decide(input))
	}
	return a
}

// byRules applies the first rule that matches. Without a match, it asks.
func byRules(table []permission, input string) answer {
	s := newSubject(input)
	for i := range table {
		if p := &table[i]; p.glob.matches(s) {
			return p.answer(input)
		}
	}
	return unmatched(input)
}

// answer returns the rule's answer about its match.
func (p *permission) answer(input string) answer {
	a := answer{effect: p.action, rule: p.name, code: reason.RuleDenies, about: &input}
	switch p.action {
	case Allow:
		a.code = reason.RuleAllows
	case Ask:
		a.code = reason.RuleAsks
	}
	return a
}

func unmatched(input string) answer {
	return answer{
		effect: Ask, rule: "default: ask (no matching rules)", code: reason.NoRule, about: &input,
	}
}

// quoted formats an input for people. An empty one, the call itself, stays empty.
func quoted(input string) string {
	if input == "" {
		return ""
	}
	return "`" + shorten(input) + "`"
}

// builtin decides for a tool without permission rules.
func (c *call) builtin() answer {
	if c.builtinAllow() {
		return answer{
			effect: Allow, rule: "built-in: " + c.tool + " runs without asking",
			code: reason.NoApprovalNeeded,
		}
	}
	return strictest(c.inputs, func(input string) answer {
		asks := answer{effect: Ask, rule: "built-in: " + c.tool + " asks", code: reason.CostsMore}
		if !c.req.Costly {
			asks.code, asks.use, asks.about = reason.NoRuleOn, c.use(), &input
		}
		return c.granted(asks, input)
	})
}

// use is what the call does, as far as there is a word for it that is said in all languages, or the name of its tool.
func (c *call) use() string {
	if c.req.Says != nil && !isMCP(c.tool) {
		if verb := string(c.req.Says.Verb); reason.Verb(verb).Code != reason.UseTool {
			return verb
		}
	}
	return c.tool
}

// departs turns an allow into an ask if the command has an option that makes its program run other programs, write to
// a given place or work elsewhere: the rule "git *" means ordinary use of git. The rule still allows the command in
// three cases:
//
//   - for a pattern that names the option: "git -C * status", "git diff --output=out/*";
//   - for a pattern without a star, which is the command itself;
//   - for a pattern that begins with a star and so names no program at all.
//
// A variable that is set before the command, and is not harmless, has to be named in each case.
func (p *permission) departs(cmd *command.Command) (answer, bool) {
	if name, found := p.unnamed(cmd); found {
		return answer{
			effect: Ask, rule: "built-in: variable " + quoted(*name) + " (" + p.name + ")",
			code: reason.VariableUnnamed, about: name,
		}, true
	}
	g := p.program
	if !g.star || strings.HasPrefix(g.pattern, "*") {
		return answer{}, false
	}
	for _, d := range cmd.Departures {
		if !g.names(d.Option) {
			return answer{
				effect: Ask, rule: "built-in: option " + quoted(d.Option) + " (" + p.name + ")",
				code: reason.OptionUnnamed, about: &d.Option, detail: d.Why,
			}, true
		}
	}
	return answer{}, false
}

// names reports whether the literal text of a pattern contains the option as a word, with or without a value.
func (g *Glob) names(option string) bool {
	for word := range strings.FieldsSeq(g.pattern) {
		if at := strings.IndexAny(word, "*?["); at >= 0 {
			word = word[:at]
		}
		if word == option {
			return true
		}
		if key, _, ok := strings.Cut(word, "="); ok && key == option {
			return true
		}
	}
	return false
}
