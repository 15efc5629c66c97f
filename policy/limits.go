package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/pathrule"
)

// limits are the rules about files, prepared for each tool that touches files, so that the effect of a command on a
// file is judged by the same rules.
type limits struct {
	tools map[string]*fileRules
	// reading are the rules of the tools that read files, and the rules about files of commands.
	reading []*fileRules
	any     bool // some of them restrict reading
	// read summarises what restricts reading.
	read readLimits
}

// readLimits summarises what restricts reading.
type readLimits struct {
	any  bool
	asks bool // some files are neither allowed nor denied: only a person can decide
	wide bool // more is denied than can be covered file by file
	// exceptions: an allow rule precedes a deny rule.
	exceptions bool
	// patterns are the patterns of the rules that ask or deny.
	patterns []string
}

// fileRules are the rules of one tool that are about files.
type fileRules struct {
	outer    []*rule
	denyWins bool
	// fallback: what no outer rule with paths allows is denied, because a rule with paths names this tool.
	fallback  bool
	table     []permission
	asks      bool // what no permission rule matches
	restricts bool
}

// findLimits selects the rules about files.
func (s *Set) findLimits(o Options) limits {
	l := limits{tools: map[string]*fileRules{}}
	for i := range o.Tools {
		tool, does := o.Tools[i].Name, o.Tools[i].Act
		if does != act.Runs && useOf(does) == 0 {
			continue
		}
		f := s.fileRules(tool, does)
		if does == act.Runs || does == act.ReadsFile {
			l.reading = append(l.reading, f)
		}
		l.tools[tool] = f
		l.any = l.any || f.restricts
	}
	l.read = l.sumUp(o.Files)
	l.any = l.any || l.read.any
	return l
}

// fileRules selects the rules of one tool that are about files.
func (s *Set) fileRules(tool string, does act.Act) *fileRules {
	f := s.outer.aboutFiles(tool, does == act.Runs)
	if does != act.Runs {
		f.table = s.table(tool)
	}
	reads := does == act.ReadsFile
	f.asks = len(f.table) > 0
	f.restricts = f.fallback || slices.ContainsFunc(f.outer, func(r *rule) bool { return r.effect == Deny }) ||
		slices.ContainsFunc(f.table, func(p permission) bool { return p.action == Deny || reads && p.action == Ask }) ||
		reads && len(f.table) > 0 && !slices.ContainsFunc(f.table,
			func(p permission) bool { return p.action == Allow && p.glob.all })
	return f
}

// sumUp summarises what restricts reading.
func (l *limits) sumUp(files *pathrule.Rules) readLimits {
	var r readLimits
	if files != nil {
		r.patterns = files.Denies()
	}
	for _, f := range l.reading {
		r.wide = r.wide || f.fallback
		for _, one := range f.outer {
			r.outer(one)
		}
	}
	r.asks = r.wide
	for _, f := range l.reading {
		r.permissions(f.table)
	}
	r.any = r.asks || r.wide || len(r.patterns) > 0
	return r
}

// outer adds an outer rule.
func (r *readLimits) outer(one *rule) {
	if one.effect != Deny {
		r.exceptions = true
		return
	}
	r.wide = r.wide || len(one.paths) == 0
	for _, g := range one.paths {
		r.patterns = append(r.patterns, g.pattern)
	}
}

// permissions adds the permission rules of read.
func (r *readLimits) permissions(table []permission) {
	open := len(table) == 0
	for _, p := range table {
		switch {
		case p.action == Allow && p.glob.all:
			open = true
		case p.action == Allow:
			r.exceptions = true
		default:
			r.asks = r.asks || p.action == Ask
			r.wide = r.wide || p.action == Deny && p.glob.all
			r.patterns = append(r.patterns, p.glob.pattern)
		}
	}
	r.asks = r.asks || !open
}

// aboutFiles selects the outer rules that apply to the files of a tool: those with paths, and those that apply to every
// call. For a tool that runs commands, only denials with paths count; the others were applied to the call itself.
func (o *outer) aboutFiles(tool string, runs bool) *fileRules {
	f := &fileRules{denyWins: o.denyWins}
	facts := &facts{tool: tool, called: tool}
	named := false
	for i := range o.rules {
		r := &o.rules[i]
		if r.toolGlob(facts) == nil || len(r.paths) == 0 && (runs || !r.unconditional()) || runs && r.effect != Deny {
			continue
		}
		named = named || len(r.paths) > 0
		f.outer = append(f.outer, r)
	}
	f.fallback = named && !runs && o.st.Enabled && o.st.Default == Deny
	return f
}

// judge returns the effect of the tool's rules on one path, "" for none, and the rule. A path that no permission rule
// matches asks, as the tool would.
func (f *fileRules) judge(c *call, p string) (Effect, string) {
	if len(f.outer) == 0 && !f.fallback {
		switch { // often, the answer is the same for every path
		case len(f.table) == 0:
			return f.unmatched()
		case f.table[0].glob.all:
			return f.table[0].action, f.table[0].name
		}
	}
	forms := pathForms{p}
	if rel, ok := relative(c.dir(), p); ok {
		forms = append(forms, rel)
	}
	if r := f.outerRule(c, forms); r != nil {
		if r.effect == Deny {
			return Deny, r.name + r.where
		}
	} else if f.fallback {
		return Deny, "default: deny (no matching rules)"
	}
	if r := firstMatch(f.table, forms); r != nil {
		return r.action, r.name
	}
	return f.unmatched()
}

// unmatched returns the effect on a path that no rule matches.
func (f *fileRules) unmatched() (Effect, string) {
	if !f.asks {
		return "", ""
	}
	return Ask, "default: ask (no matching rules)"
}

// narrow leaves out the rules that cannot match any path in the hay.
func (f *fileRules) narrow(hay *haystack) *fileRules {
	n := *f
	n.outer, n.table = nil, nil
	for _, r := range f.outer {
		if len(r.paths) == 0 || hay.mayAny(r.paths) {
			n.outer = append(n.outer, r)
		}
	}
	for _, p := range f.table {
		if hay.may(p.glob) {
			n.table = append(n.table, p)
		}
	}
	n.asks = len(f.table) > 0
	return &n
}

// outerRule returns the rule that decides about a path; nil if there is none.
func (f *fileRules) outerRule(c *call, forms pathForms) *rule {
	find := func(effect Effect) *rule {
		for _, r := range f.outer {
			if (effect == "" || r.effect == effect) && r.aboutFile(c, forms) {
				return r
			}
		}
		return nil
	}
	if !f.denyWins {
		return find("")
	}
	if r := find(Deny); r != nil {
		return r
	}
	return find(Allow)
}

// aboutFile reports whether the rule applies to a file of the call. The expression of a rule is matched against the
// path, which is the only argument.
func (r *rule) aboutFile(c *call, forms pathForms) bool {
	if c.req.Trust.Severity() > r.trust || len(r.paths) > 0 && !forms.any(r.paths) {
		return false
	}
	for _, name := range r.env {
		if !slices.Contains(c.req.Env, name) {
			return false
		}
	}
	return r.args == nil || r.args.MatchString(forms[0])
}

// firstMatch returns the first permission rule that matches one of the forms.
func firstMatch(table []permission, forms pathForms) *permission {
	if len(table) == 0 {
		return nil
	}
	folded := make(pathForms, len(forms))
	for i, form := range forms {
		folded[i] = foldText(form)
	}
	for i := range table {
		if slices.ContainsFunc(folded, table[i].glob.match) {
			return &table[i]
		}
	}
	return nil
}

// reach reports whether a rule that restricts reading may apply to something below a directory.
func (r *readLimits) reach(dir string) bool {
	if r.asks || r.wide || dir == "" {
		return true
	}
	dir = foldText(strings.TrimSuffix(dir, "/")) + "/"
	return slices.ContainsFunc(r.patterns, func(pattern string) bool {
		prefix := foldText(pattern)
		if i := strings.IndexAny(prefix, "*?[{"); i >= 0 {
			prefix = prefix[:i]
		}
		return !strings.HasPrefix(prefix, "/") || strings.HasPrefix(dir, prefix) || strings.HasPrefix(prefix+"/", dir)
	})
}

// ReadLimits is what a sandbox must know to hide files that must not be read from a command.
type ReadLimits struct {
	// Any: something restricts reading.
	Any bool
	// Wide: more is denied than can be covered file by file.
	Wide bool
	// Places are directories and files outside of any working directory to which deny rules apply: their patterns up to
	// the first wildcard.
	Places []string
}

// ReadLimits summarises the rules that deny reading.
func (s *Set) ReadLimits() ReadLimits {
	l := ReadLimits{Any: s.limits.read.any, Wide: s.limits.read.wide}
	for _, pattern := range s.limits.read.patterns {
		if !strings.HasPrefix(pattern, "/") {
			continue
		}
		if i := strings.IndexAny(pattern, "*?[{"); i >= 0 {
			pattern = path.Dir(pattern[:i] + "x")
		}
		l.Places = append(l.Places, path.Clean(pattern))
	}
	slices.Sort(l.Places)
	l.Places = slices.Compact(l.Places)
	return l
}

// ExceptionBelow reports whether something below a denied directory may be allowed, so that it cannot be hidden as a
// whole.
func (s *Set) ExceptionBelow(dir string) bool {
	return s.limits.read.exceptions || s.files != nil && s.files.ExceptionBelow(dir)
}

// DeniesRead reports whether a rule denies reading a canonical path. It uses Dir, Env and Trust of the request. Rules
// that deny by default or that ask do not count: see [ReadLimits].
func (s *Set) DeniesRead(r *Request, p string) bool {
	c := &call{req: r}
	for _, rules := range s.limits.reading {
		f := *rules
		f.fallback = false
		if effect, _ := f.judge(c, p); effect == Deny {
			return true
		}
	}
	return s.deniesContent(p)
}

// deniesContent reports whether deny_read applies to the canonical path.
func (s *Set) deniesContent(p string) bool {
	if s.files == nil {
		return false
	}
	_, denied := s.files.Denied(p)
	return denied
}

// relative returns an absolute path relative to dir, if it is inside; both must be clean.
func relative(dir, p string) (string, bool) {
	if !path.IsAbs(dir) || !path.IsAbs(p) {
		return "", false
	}
	if p == dir {
		return ".", true
	}
	for up := ""; ; dir, up = path.Dir(dir), up+"../" {
		if rest, ok := strings.CutPrefix(p, strings.TrimSuffix(dir, "/")); ok && strings.HasPrefix(rest, "/") {
			return strings.TrimSuffix(up+rest[1:], "/"), true
		} else if ok && rest == "" {
			return path.Clean(up), true
		}
	}
}
