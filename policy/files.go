package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/policy/reason"
)

// target is a path that a command may touch.
type target struct {
	command.File
	// paths are its possible meanings: lexically, one for each directory that the script changes to, and what really
	// exists there.
	paths []string
	// there: something exists; looked: the disk was inspected.
	there, looked bool
}

// certain reports whether the command certainly touches the target.
func (t *target) certain() bool { return t.Sure || t.there && !t.Within }

// touched is what one script may touch.
type touched struct {
	command.Files
	targets []target
}

// CommandPath is a path that a command may touch, absolute and clean. Links are not resolved. With Pattern, it contains
// wildcards of the shell.
type CommandPath struct {
	Path    string
	Pattern bool
}

// CommandPaths returns the paths that a command may touch when it runs in dir. A caller with access to the disk puts
// what exists there into Request.Files.
func CommandPaths(r *command.Reading, dir string) []CommandPath {
	var list []CommandPath
	files := r.Files()
	bases := basesFrom(dir, &files)
	for _, pattern := range []bool{true, false} { // a pattern in one place may be a name in another
		for _, f := range files.List {
			if f.Pattern != pattern {
				continue
			}
			for _, p := range lexical(dir, bases, f.Path) {
				list = append(list, CommandPath{Path: p, Pattern: pattern})
			}
		}
	}
	return list
}

// basesFrom returns the directories from which relative paths of a script may start, absolute and clean.
func basesFrom(dir string, files *command.Files) []string {
	list := make([]string, 0, len(files.Bases))
	for _, base := range files.Bases {
		list = append(list, lexicalFrom(dir, dir, base))
	}
	return list
}

// lexical returns the lexical meanings of a path in a command.
func lexical(dir string, bases []string, p string) []string {
	if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") {
		return []string{lexicalFrom(dir, dir, p)}
	}
	list := make([]string, 0, len(bases))
	p = path.Clean(p)
	for _, base := range bases {
		if q := join(base, p); !slices.Contains(list, q) {
			list = append(list, q)
		}
	}
	return list
}

// join is path.Join, optimised for clean paths.
func join(base, p string) string {
	if len(base) < 2 || base[0] != '/' || p[0] == '.' {
		return path.Join(base, p)
	}
	return base + "/" + p
}

// lexicalFrom returns the meaning of a path in base. dir is the working directory and also the home directory; "" is
// the root.
func lexicalFrom(dir, base, p string) string {
	if dir == "" {
		dir = "/"
	}
	if base == "" {
		base = "/"
	}
	switch {
	case strings.HasPrefix(p, "/"):
		return path.Clean(p)
	case p == "~" || strings.HasPrefix(p, "~/"):
		return path.Join(dir, p[1:])
	}
	return path.Join(base, p)
}

// touch determines, once, what the scripts of a call may touch.
func (c *call) touch() []touched {
	if c.touchedKnown {
		return c.touchedList
	}
	c.touchedKnown = true
	for i := range c.scripts {
		t := touched{Files: c.scripts[i].Files()}
		if c.dir() == "" && t.Unknown.Code == "" && slices.ContainsFunc(t.List,
			func(f command.File) bool { return !strings.HasPrefix(f.Path, "/") }) {
			t.Unknown = reason.New(reason.DirectoryUnknown)
		}
		bases := basesFrom(c.dir(), &t.Files)
		t.targets = make([]target, 0, len(t.List))
		for _, f := range t.List {
			t.targets = append(t.targets, c.target(bases, f))
		}
		c.touchedList = append(c.touchedList, t)
	}
	return c.touchedList
}

// target returns what a path of a command may mean.
func (c *call) target(bases []string, f command.File) target {
	t := target{File: f, looked: c.req.Files != nil}
	meanings := lexical(c.dir(), bases, f.Path)
	if !f.Pattern {
		t.paths = meanings
	}
	for _, p := range meanings {
		found, looked := c.req.Files[p]
		t.looked = t.looked && looked
		t.there = t.there || len(found) > 0
		for _, real := range found {
			if !slices.Contains(t.paths, real) {
				t.paths = append(t.paths, real)
			}
		}
	}
	return t
}

// judgeFiles decides what a command does to files by the rules of the tools that do the same: a command must not read a
// file that read must not read, or write one that write must not write. It returns the strictest answer, and Allow when
// no rule applies.
func (s *Set) judgeFiles(c *call) answer {
	worst := answer{effect: Allow}
	if !c.runs() || !s.limits.any && !slices.ContainsFunc(c.scripts, mayWrite) {
		return worst
	}
	j := s.narrow(c)
	for _, t := range c.touch() {
		for i := range t.targets {
			worst = worst.stricter(j.judgeTarget(c, &t.targets[i]))
		}
		worst = worst.stricter(s.judgeUnnamed(c, &t))
	}
	return worst
}

// judges are the rules that may apply to the files of one call.
type judges struct {
	set   *Set
	tools map[string]*fileRules
	files *pathrule.Rules
}

// narrow selects the rules that may apply to the files of a call; most do not.
func (s *Set) narrow(c *call) judges {
	j := judges{set: s, tools: map[string]*fileRules{}}
	if !s.limits.any {
		return j
	}
	use := command.Use(0)
	hay := &haystack{}
	dir := c.dir()
	for _, t := range c.touch() {
		for i := range t.targets {
			use |= t.targets[i].Use
			for _, p := range t.targets[i].paths {
				hay.add(p)
				// Below dir, the relative form is a suffix of the absolute one.
				if rel, ok := relative(dir, p); ok && !strings.HasSuffix(p, rel) {
					hay.add(rel)
				}
			}
		}
	}
	if j.files = s.files; j.files != nil && !hay.wide {
		j.files = s.files.Narrow(&hay.all)
	}
	for _, d := range s.doers {
		if f := s.limits.tools[d.tool]; d.use&use != 0 && f.restricts {
			j.tools[d.tool] = f.narrow(hay)
		}
	}
	return j
}

// mayWrite reports whether the words of a script may name files to write.
func mayWrite(sc *command.Reading) bool {
	return len(sc.Redirects) > 0 || slices.ContainsFunc(sc.Commands, func(c command.Command) bool {
		switch c.Name {
		case "tee", "touch", "truncate", "mkfifo", "mkdir", "mv", "cp", "install", "ln", "rsync", "dd", "sed":
			return true
		}
		return false
	})
}

// judgeTarget decides about one path.
func (j *judges) judgeTarget(c *call, t *target) answer {
	worst := answer{effect: Allow}
	for i := range t.paths {
		p := &t.paths[i]
		if j.files != nil && t.Use&command.UseRead != 0 {
			if glob, denied := j.files.Denied(*p); denied {
				worst = worst.stricter(t.judged(p, command.UseRead, act.Read, Deny,
					"tools.file.deny_read "+quoted(glob)))
			}
		}
		for _, d := range j.set.doers {
			if f := j.tools[d.tool]; f != nil && d.use&t.Use != 0 {
				effect, rule := f.judge(c, *p)
				worst = worst.stricter(t.judged(p, d.use, d.verb, effect, rule))
			}
		}
		if t.Use&(command.UseWrite|command.UseMake) != 0 {
			if a, found := j.set.obeyed(*p, t.Use&(command.UseMove|command.UseCopy) != 0); found {
				worst = worst.stricter(a)
			}
		}
	}
	return worst
}

// judged returns what follows for a command from the effect of a tool's rule on a path that the command may use in the
// same way. verb is what the tool does.
func (t *target) judged(p *string, use command.Use, verb act.Verb, effect Effect, rule string) answer {
	switch {
	case effect == Deny && t.certain():
		return answer{effect: Deny, rule: rule, code: reason.RuleDeniesUse, about: p, use: string(verb)}
	case effect == Deny && (!t.Within || t.there || !t.looked):
		return answer{
			effect: Ask, rule: rule, code: reason.MayUseDenied, about: p, use: string(verb),
		}
	case effect == Ask && use == command.UseRead && (t.Sure || t.there):
		return answer{effect: Ask, rule: rule, code: reason.ReadAsks, about: p}
	}
	return answer{effect: Allow}
}

// judgeUnnamed decides about the files that a command may read without naming them.
func (s *Set) judgeUnnamed(c *call, t *touched) answer {
	limit := &s.limits.read
	ask := func(code reason.Code, about string) answer {
		return answer{effect: Ask, rule: "built-in: files that may not be read", code: code, about: &about}
	}
	unseen := slices.ContainsFunc(t.targets, func(f target) bool { return f.Pattern && !f.looked })
	switch {
	case !limit.any:
	case t.Objects != "" && limit.reach(c.dir()):
		return ask(reason.ShowsRepository, t.Objects)
	case t.Unknown.Code != "":
		a := ask(reason.FilesUncertain, c.inputs[0])
		a.of = &t.Unknown
		return a
	case unseen:
		return ask(reason.FilesUncertain, c.inputs[0])
	case t.Deep != "" && (limit.asks || limit.wide || !c.req.Bared):
		return ask(reason.MayReadDenied, t.Deep)
	}
	return answer{effect: Allow}
}
