package policy

// The outer rules, [tools.policy] and [tools.authorization], and the paths of a call that they are about.

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/policy/reason"
)

// outer is [tools.policy] and [tools.authorization], compiled to one list.
type outer struct {
	rules    []rule
	denyWins bool
	st       Status
}

func compileOuter(names act.Names, policy, authorization Rules) (outer, error) {
	o := outer{denyWins: policy.Evaluation == DenyWins}
	o.st = Status{
		Enabled: policy.Enabled, Authorization: authorization.Enabled,
		Default: policy.DefaultEffect, Evaluation: policy.Evaluation, File: policy.File,
	}
	var errs []error
	switch policy.DefaultEffect {
	case "":
		o.st.Default = Deny
	case Allow, Deny:
	default:
		errs = append(errs, problemf("tools.policy.default_effect", "%q is unknown; use allow or deny",
			policy.DefaultEffect))
	}
	switch policy.Evaluation {
	case "":
		o.st.Evaluation = FirstMatch
	case FirstMatch, DenyWins:
	default:
		errs = append(errs, problemf("tools.policy.evaluation", "%q is unknown; use first_match or deny_wins",
			policy.Evaluation))
	}
	var err error
	if o.st.PolicyRules, err = o.add(names, "tools.policy", policy); err != nil {
		errs = append(errs, err)
	}
	if o.st.AuthorizationRules, err = o.add(names, "tools.authorization", authorization); err != nil {
		errs = append(errs, err)
	}
	if n := len(o.rules); n > MaxRules {
		errs = append(errs, problemf("tools.policy.rules",
			"there are %d rules with those of tools.authorization; at most %d are allowed", n, MaxRules))
	}
	return o, errors.Join(errs...)
}

// add compiles a table and returns how many of its rules are active. A disabled table is compiled too, so that enabling
// it causes no surprise, but its rules are left out.
func (o *outer) add(names act.Names, table string, r Rules) (int, error) {
	src := ruleSource{table: table, file: r.File}
	var errs []error
	n := 0
	for i, one := range r.List {
		c, err := compileRule(names, one, src.at(i, one))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if r.Enabled {
			c.name = fmt.Sprintf("rule[%d]", len(o.rules))
			o.rules = append(o.rules, c)
			n++
		}
	}
	return n, errors.Join(errs...)
}

func (o *outer) status() Status { return o.st }

// decide reports whether the outer rules deny the call. If they do not, the decision contains only the trace of the
// rule that let it pass; "" without any rules.
func (o *outer) decide(c *call) (d Decision, denied bool) {
	if len(o.rules) == 0 && !o.st.Enabled {
		return Decision{}, false
	}
	f := newFacts(c)
	var found *rule
	var glob string
	if o.denyWins {
		if found, glob = o.match(f, Deny); found == nil {
			found, glob = o.match(f, Allow)
		}
	} else {
		found, glob = o.match(f, "")
	}
	switch {
	case found != nil:
		d = because(found.effect, "", reason.New(reason.PolicyDenies))
		d.Rule = fmt.Sprintf("%s %s: tool=%s matched %s%s", found.name, found.effect, shorten(c.req.Tool), glob,
			found.where)
	case o.st.Enabled:
		d = because(o.st.Default, fmt.Sprintf(
			"default: %s (no matching rules)", o.st.Default,
		), reason.New(reason.PolicyDefault))
	}
	return d, d.Effect == Deny
}

// match returns the first matching rule with this effect ("" = any), and the tool pattern that matched.
func (o *outer) match(f *facts, effect Effect) (*rule, string) {
	for i := range o.rules {
		r := &o.rules[i]
		if effect != "" && r.effect != effect {
			continue
		}
		if glob, ok := r.matches(f); ok {
			return r, glob
		}
	}
	return nil, ""
}

// hides reports whether the outer rules deny every call of the tool.
func (o *outer) hides(tool string) bool {
	f := &facts{tool: foldText(tool), called: foldText(tool)}
	allowed := false
	for i := range o.rules {
		r := &o.rules[i]
		if r.toolGlob(f) == nil {
			continue
		}
		if r.effect == Deny && r.unconditional() {
			if o.denyWins {
				return true
			}
			return !allowed
		}
		allowed = allowed || r.effect == Allow
	}
	return !allowed && o.st.Enabled && o.st.Default == Deny
}

// literalIn returns a text that every match of the expression contains, so that the expensive match is tried only if it
// can succeed. "" means that there is none.
func literalIn(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return literalIn(re.Sub[0])
	case syntax.OpConcat:
		best := ""
		for _, sub := range re.Sub {
			if l := literalIn(sub); len(l) > len(best) {
				best = l
			}
		}
		return best
	}
	return ""
}

// facts are the inputs of the outer rules, determined once per call.
type facts struct {
	call         *call
	tool, called string // folded; called is the name before resolving aliases
	severity     int
	env          map[string]bool
	texts        []subject   // top-level text arguments, as written
	all          []pathForms // paths for deny rules
	must         []pathForms // paths that an allow rule must cover
	allHay       *haystack   // of all
	allKnown     bool
}

func newFacts(c *call) *facts {
	r := c.req
	f := &facts{
		call: c, tool: foldText(c.tool), called: foldText(strings.TrimSpace(r.Tool)),
		severity: r.Trust.Severity(), env: make(map[string]bool, len(r.Env)),
	}
	for _, name := range r.Env {
		f.env[name] = true
	}
	for _, v := range r.Args {
		if s, ok := v.(string); ok {
			t := subject{text: s}
			t.has.add(s)
			f.texts = append(f.texts, t)
		}
	}
	return f
}

// touched returns all paths that the call names, canonical or not, for deny rules.
func (f *facts) touched() []pathForms {
	f.find()
	return f.all
}

// claimed returns the paths that an allow rule must cover: the canonical ones if the gate knows them, or else those in
// the arguments.
func (f *facts) claimed() []pathForms {
	f.find()
	return f.must
}

// find determines the paths of the call.
func (f *facts) find() {
	if f.allKnown {
		return
	}
	f.allKnown = true
	dir := f.call.dir()
	canonical := canonicalForms(dir, f.call.req.Paths)
	named, doubtful := argumentPaths(f.call)
	f.all = append(canonical, named...)
	f.must = canonical
	if len(canonical) == 0 {
		if f.must = named[:len(named)-doubtful]; len(f.must) == 0 {
			f.must = named
		}
	}
	if f.call.runs() {
		f.scripts(dir)
	}
}

// hay returns the haystack of all touched paths.
func (f *facts) hay() *haystack {
	if f.allHay == nil {
		f.allHay = &haystack{}
		for _, forms := range f.touched() {
			for _, form := range forms {
				f.allHay.add(form)
			}
		}
	}
	return f.allHay
}

// scripts adds the paths named by the words of a command. An allow rule must cover those that are certain. If some are
// not known, it covers nothing.
func (f *facts) scripts(dir string) {
	if !slices.ContainsFunc(f.call.scripts, func(sc *command.Reading) bool { return sc.Text != "" }) {
		return
	}
	f.must = canonicalForms(dir, f.call.req.Paths)
	for _, t := range f.call.touch() {
		for i := range t.targets {
			target := &t.targets[i]
			if target.Within {
				continue
			}
			forms := canonicalForms(dir, target.paths)
			f.all = append(f.all, forms...)
			if target.certain() || strings.Contains(target.Path, "/") {
				f.must = append(f.must, forms...)
			}
		}
		if t.Unknown.Code != "" {
			f.must = append(f.must, pathForms{""}) // matched only by *
		}
	}
}

// pathForms are the spellings of one path or URL. A glob matches the path if it matches one of them.
type pathForms []string

func (p pathForms) any(globs []*Glob) bool {
	for _, g := range globs {
		if slices.ContainsFunc(p, g.match) {
			return true
		}
	}
	return false
}

// pathKeys returns the arguments that name a path or a URL: those of the original (file_path, path, uri, url;
// directory, dest, source), and others that are missing there. query, which is from the original, comes last; see
// argumentPaths.
func pathKeys() []string {
	return []string{
		"file_path", "path", "uri", "url", "directory", "dir", "dest",
		"destination", "source", "cwd", "paths", "files", "urls",
	}
}

// canonicalForms returns the forms of clean paths: absolute, and relative to the working directory.
func canonicalForms(dir string, paths []string) []pathForms {
	out := make([]pathForms, 0, len(paths))
	for _, p := range paths {
		forms := pathForms{p}
		if rel, ok := relative(dir, p); ok {
			forms = append(forms, rel)
		}
		out = append(out, forms)
	}
	return out
}

// argumentPaths collects the paths that the arguments name, and for bash those in the command. It is lexical: "." and
// ".." are resolved, links are not.
//
// Like the original, it takes query for a path. Most queries are not, so these count only for deny rules; doubtful is
// their number, at the end of the list.
func argumentPaths(c *call) (out []pathForms, doubtful int) {
	for _, key := range pathKeys() {
		switch v := c.req.Args[key].(type) {
		case string:
			out = append(out, c.formsOf(v))
		case []string:
			for _, s := range v {
				out = append(out, c.formsOf(s))
			}
		case []any:
			for _, e := range v {
				if s, ok := e.(string); ok {
					out = append(out, c.formsOf(s))
				}
			}
		}
	}
	for i := range c.scripts {
		out = append(out, scriptPaths(&c.scripts[i].Script)...)
	}
	if text, ok := c.req.Args["command"].(string); ok && len(c.scripts) == 0 {
		out = append(out, textPaths(text)...)
	}
	if text, ok := c.req.Args["query"].(string); ok {
		return append(out, formsOf(text)), 1
	}
	return out, 0
}

// formsOf returns the spellings of an argument: those of the function formsOf, and both the absolute and the relative
// form if the working directory is known.
func (c *call) formsOf(v string) pathForms {
	forms := formsOf(v)
	clean, dir := path.Clean(forms[0]), c.dir()
	if dir == "" || strings.Contains(forms[0], "://") {
		return forms
	}
	if !path.IsAbs(clean) {
		clean = path.Join(dir, clean)
		forms = append(forms, clean)
	}
	if rel, ok := relative(dir, clean); ok && rel != forms[0] {
		forms = append(forms, rel)
	}
	return forms
}

// formsOf returns the spellings of one value: as written, without quotes, and cleaned; for a file URL also its path.
func formsOf(v string) pathForms {
	v = strings.Trim(strings.TrimSpace(v), `"'`)
	forms := pathForms{v}
	if clean := path.Clean(v); clean != v {
		forms = append(forms, clean)
	}
	if u, err := url.Parse(v); err == nil && strings.EqualFold(u.Scheme, "file") {
		forms = append(forms, path.Clean(u.Path))
	}
	return forms
}

// textPaths finds the absolute paths in the text of a command.
func textPaths(text string) []pathForms {
	var out []pathForms
	for i := 0; i < len(text); i++ {
		if text[i] != '/' {
			continue
		}
		end := len(text)
		if n := strings.IndexAny(text[i:], " \t\r\n;|&<>\"'`()"); n >= 0 {
			end = i + n
		}
		out = append(out, formsOf(text[i:end]))
		i = end
	}
	return out
}

// scriptPaths finds the absolute paths in a script: in its text, like the original, and in the words as the shell reads
// them, so that quotes in a path hide nothing. A path that leads upwards is resolved from the root, where enough ".."
// always end.
func scriptPaths(sc *command.Script) []pathForms {
	out := textPaths(sc.Text)
	for _, c := range sc.Commands {
		for _, w := range c.Words {
			if i := strings.IndexByte(w, '/'); i >= 0 {
				out = append(out, formsOf(w[i:]))
			}
		}
	}
	for _, r := range sc.Redirects {
		if i := strings.IndexByte(r.Target, '/'); i >= 0 {
			out = append(out, formsOf(r.Target[i:]))
		}
	}
	return out
}

// within reports whether p, as written in a command, is below one of the roots. A relative path starts at a working
// directory that is inside. A path that leaves it, a home directory, and what the shell would expand to several places
// are outside.
func within(roots []string, p string) bool {
	if p == "" || strings.ContainsAny(p, "{}$`\x00") || strings.HasPrefix(p, "~") {
		return false
	}
	clean := path.Clean(p)
	if !path.IsAbs(clean) {
		return len(roots) > 0 && clean != ".." && !strings.HasPrefix(clean, "../")
	}
	for _, root := range roots {
		if pathrule.Inside(root, clean) {
			return true
		}
	}
	return false
}
