package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/grant"
	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/policy/reason"
)

// The parts of a standing approval are in a package of their own, which does not depend on rules.
type (
	// Grant is a standing approval.
	Grant = grant.Grant
	// GrantKind says how much a grant covers.
	GrantKind = grant.Kind
	// File is a file whose content determines what a command does.
	File = grant.File
	// Offer is one choice of a standing approval.
	Offer = grant.Offer
	// OfferKind is the kind of an Offer.
	OfferKind = grant.OfferKind
)

// Kinds of grants.
const (
	GrantExact  = grant.Exact
	GrantPrefix = grant.Prefix
	GrantPath   = grant.Path
	GrantTool   = grant.Tool
	GrantHost   = grant.Host
)

// Kinds of offers.
const (
	OfferExact     = grant.OfferExact
	OfferPrefix    = grant.OfferPrefix
	OfferDirectory = grant.OfferDirectory
	OfferExtension = grant.OfferExtension
)

// here is the name for the directory in which a command runs.
const here = grant.Here

// holds reports whether the grant applies to the tool, person, session and server of the call.
func holds(g *Grant, c *call) bool {
	r := c.req
	if g.Tool != c.tool && c.names.Canonical(g.Tool) != c.tool || g.Session != "" && g.Session != r.Session ||
		g.Caller != "" && g.Caller != r.Caller {
		return false
	}
	if isMCP(c.tool) {
		return g.Server != "" && g.Server == r.Server && g.Definition != "" && g.Definition == r.Definition
	}
	return true
}

// coversInput reports whether a grant covers an input of a tool that runs no commands.
func coversInput(g *Grant, input string) bool {
	switch g.Kind {
	case GrantExact:
		return len(g.Words) == 0 && g.Input == input
	case GrantPath:
		return g.Dir != "" && path.IsAbs(g.Dir) && path.Clean(input) == input && input != g.Dir &&
			pathrule.Inside(g.Dir, input) &&
			strings.HasSuffix(input, g.Ext) && !hidden(strings.TrimPrefix(input, g.Dir))
	case GrantTool:
		return g.Server != "" && g.Session != "" && g.Caller != ""
	}
	return false
}

// hidden reports whether a component of a path begins with a dot: settings, hooks and keys, which nobody means by "all
// files".
func hidden(below string) bool { return strings.Contains(below, "/.") }

// granted changes an ask about an input of a tool that runs no commands to an allow if a grant covers the input.
func (c *call) granted(a answer, input string) answer {
	if a.effect != Ask || c.runs() {
		return a
	}
	if isMCP(c.tool) {
		input = c.inputs[0] // all arguments; the paths after them come from there
	}
	for i := range c.req.Grants {
		if g := &c.req.Grants[i]; holds(g, c) && coversInput(g, input) {
			return allowedBy(g)
		}
	}
	return a
}

// allowedBy returns the answer for a grant.
func allowedBy(g *Grant) answer {
	text := g.Text()
	if g.Kind == GrantTool {
		text = g.Tool
		return answer{
			effect: Allow,
			rule:   grant.RulePrefix + g.Tool + " in this conversation",
			code:   reason.GrantedSession,
			about:  &text,
			grants: []*Grant{g},
		}
	}
	return answer{
		effect: Allow, rule: grant.RulePrefix + g.Tool + " " + quoted(text), code: reason.GrantedAlways, about: &text,
		grants: []*Grant{g},
	}
}

// grantable reports whether grants can cover the commands of a script.
func grantable(sc *command.Script) bool {
	return sc.Certain() && !writes(sc)
}

// writes reports whether a redirection may change a file.
func writes(sc *command.Script) bool {
	for _, r := range sc.Redirects {
		if r.Writes {
			return true
		}
	}
	return false
}

// unit is one command of a plain script with what a grant is compared with.
type unit struct {
	command.Unit
	script command.Script // only this command
	dir    string         // where it runs
	files  []File
	bound  bool // only files determine what it does
}

// units splits a script of the call. It returns nil if no grant can cover any part.
func (c *call) units(sc *command.Script) []unit {
	if !grantable(sc) {
		return nil
	}
	list, ok := command.Units(sc.Text)
	if !ok {
		return nil
	}
	units := make([]unit, 0, len(list))
	for _, u := range list {
		one := unit{Unit: u, script: c.reader.Read(u.Text).Script}
		names, ok := c.fileNames(u, &one.script)
		one.bound = ok
		for _, name := range names {
			f, known := c.file(u.Dir, name)
			switch {
			case known:
				one.files = append(one.files, f)
				one.bound = one.bound && !f.Unread
			case !name.Optional:
				one.bound = false
			}
		}
		dir, known := c.file(u.Dir, command.FileName{Name: here})
		one.dir, one.bound = dir.Path, one.bound && known && dir.Path != ""
		units = append(units, one)
	}
	return units
}

// fileNames returns the files that determine what a command does, including those that are its input.
func (c *call) fileNames(u command.Unit, script *command.Script) ([]command.FileName, bool) {
	names, ok := script.Names()
	for _, text := range u.Fed {
		feeding := c.reader.Read(text)
		fed, known := feeding.Names()
		ok = ok && known
		names = append(names, fed...)
		for i := range feeding.Commands {
			for _, word := range feeding.Commands[i].Words[1:] {
				if word != "" && word[0] != '-' {
					names = append(names, command.FileName{Name: word, Optional: true})
				}
			}
		}
	}
	for _, name := range u.Stdin {
		names = append(names, command.FileName{Name: name})
	}
	return names, ok
}

// file returns what is known about a file that is named in a directory of the script.
func (c *call) file(dir string, name command.FileName) (File, bool) {
	key := below(dir, name.Name)
	for _, f := range c.req.Scripts {
		if f.Name == key {
			return f, true
		}
	}
	return File{}, false
}

// below returns a name in a directory. It is not cleaned, because the meaning of .. depends on links.
func below(dir, name string) string {
	if dir == "" || path.IsAbs(name) {
		return name
	}
	return dir + "/" + name
}

// Named returns the files that must be inspected before a request is decided. Names that are not absolute are relative
// to the request's working directory. The result is empty for a tool that runs no commands.
func (s *Set) Named(r Request) []command.FileName {
	c := s.newCall(&r)
	if len(c.scripts) == 0 {
		return nil
	}
	out := []command.FileName{{Name: here}}
	for i := range c.scripts {
		out = append(out, c.named(&c.scripts[i].Script)...)
	}
	slices.SortStableFunc(out, func(a, b command.FileName) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(out, func(a, b command.FileName) bool { return a.Name == b.Name })
}

// named returns the files of one script. For a script that is not plain, each directory that it changes to is tried.
func (c *call) named(sc *command.Script) (out []command.FileName) {
	add := func(dir string, names []command.FileName) {
		for _, n := range names {
			n.Name = below(dir, n.Name)
			out = append(out, n)
		}
	}
	if units, ok := command.Units(sc.Text); ok {
		for _, u := range units {
			names, _ := c.fileNames(u, &c.reader.Read(u.Text).Script)
			add(u.Dir, append(names, command.FileName{Name: here}))
		}
		return out
	}
	names, _ := sc.Names()
	add("", names)
	for i := range sc.Commands {
		cmd := &sc.Commands[i]
		if cmd.Name == "cd" && len(cmd.Words) == 2 && !cmd.Dynamic && !path.IsAbs(cmd.Words[1]) {
			add(cmd.Words[1], names)
		}
	}
	return out
}

// covers reports whether a grant covers one command, and which files prevent it.
func covers(g *Grant, u *unit) (ok bool, changed []string) {
	if g.Dir == "" || g.Dir != u.dir || len(g.Words) == 0 {
		return false, nil
	}
	if g.Kind == GrantExact && !coversWords(g, u) || g.Kind == GrantPrefix && !coversPrefix(g, u) ||
		g.Kind != GrantExact && g.Kind != GrantPrefix {
		return false, nil
	}
	changed = grant.ChangedFiles(g.Files, u.files)
	return u.bound && len(changed) == 0, changed
}

// coversWords compares a command, including its input.
func coversWords(g *Grant, u *unit) bool {
	return slices.Equal(g.Words, u.Words) && slices.Equal(g.Stdin, u.Stdin) &&
		slices.EqualFunc(g.Feed, u.Feed, slices.Equal[[]string])
}

// coversPrefix compares the beginning of a command, and accepts only data in the remaining words.
func coversPrefix(g *Grant, u *unit) bool {
	n := command.PrefixWords(u.Words)
	if n == 0 || n != len(g.Words) || !slices.Equal(g.Words, u.Words[:n]) || len(u.Feed)+len(u.Stdin) > 0 {
		return false
	}
	rest := u.Words[n:]
	return !slices.ContainsFunc(rest, mayBecomeOption) && harmless(u)
}

// mayBecomeOption reports whether bash may expand an unquoted word to an option.
func mayBecomeOption(word string) bool { return word != "" && strings.IndexByte("*?[{", word[0]) >= 0 }

// harmless reports whether the rules would let the command run if everything were allowed. What turns an allow into an
// ask, such as an option that starts another program, also applies to a prefix.
func harmless(u *unit) bool {
	all := &Glob{pattern: "*", all: true, star: true}
	everything := []permission{{glob: all, program: all, action: Allow, name: "prefix"}}
	return len(u.script.Commands) == 1 && len(u.script.Commands[0].Departures) == 0 &&
		byTable(everything, &u.script).effect == Allow
}

// grantFor returns the grant that covers a command. changed are the files because of which a grant does not.
func (c *call) grantFor(u *unit) (found *Grant, changed []string) {
	for i := range c.req.Grants {
		g := &c.req.Grants[i]
		if !holds(g, c) {
			continue
		}
		ok, files := covers(g, u)
		if ok {
			return g, nil
		}
		changed = append(changed, files...)
	}
	return nil, changed
}

// grantedScript changes an ask about a script to an allow if each of its commands is covered by a grant or needs none.
func (s *Set) grantedScript(c *call, table []permission, sc *command.Script, a answer) answer {
	if a.effect != Ask && !a.reading || len(c.req.Grants) == 0 || len(c.scripts) != 1 {
		return a
	}
	units := c.units(sc)
	var used []*Grant
	var covered []command.Script
	for i := range units {
		u := &units[i]
		g, changed := c.grantFor(u)
		switch {
		case g != nil:
			used, covered = append(used, g), append(covered, u.script)
		case !s.free(c, table, u):
			a.changed = changed
			return a
		}
	}
	if len(used) == 0 || s.asksAsWhole(table, sc, covered, len(covered) < len(units)) {
		return a
	}
	allowed := allowedBy(used[len(used)-1])
	allowed.grants = used
	return allowed
}

// free reports whether a command needs no grant beside one that has. The rules about its paths must allow it from the
// working directory and from a directory below it. A command that is allowed only where it can change nothing is not
// free beside one that may, unless its program can do nothing else.
func (s *Set) free(c *call, table []permission, u *unit) bool {
	a := s.alone(c, table, &u.script)
	return (u.Dir == "" || within(c.req.InsidePaths, u.dir)) && a.effect == Allow && (!a.reading || u.script.Inert())
}

// alone decides one command by itself, without grants.
func (s *Set) alone(c *call, table []permission, sc *command.Script) answer {
	if len(table) == 0 {
		return s.shell.builtin(c, sc)
	}
	return s.later(table, sc, byTable(table, sc))
}

// asksAsWhole reports whether the operator wants to be asked about the text as a whole, rather than only about a
// command that a grant covers.
func (s *Set) asksAsWhole(table []permission, sc *command.Script, covered []command.Script, some bool) bool {
	if len(table) == 0 {
		_, asks := command.Confirm(*sc, s.shell.confirm)
		return some && asks
	}
	texts := []*subject{newSubject(sc.Text)}
	for _, r := range sc.Redirects {
		texts = append(texts, newSubject(r.Op+" "+r.Target))
	}
	for i := range table {
		p := &table[i]
		if p.action != Ask || p.glob.all || !slices.ContainsFunc(texts, p.glob.matches) {
			continue
		}
		answered := slices.ContainsFunc(covered, func(one command.Script) bool {
			return slices.ContainsFunc(one.Commands, func(cmd command.Command) bool {
				return p.glob.matches(newSubject(cmd.Text))
			})
		})
		if !answered {
			return true
		}
	}
	return false
}

// Offers returns the standing approvals that would answer a request that asks, or that may have to ask because reading
// is too little for it. It is empty if the call does not ask, if no grant can cover it, in a conversation with flagged
// content, and in one with foreign content if the call may carry something out or keep it: a grant would open that way
// without a question.
func (s *Set) Offers(r Request) []Offer {
	if d := s.Decide(r); r.Suspicious != "" || d.Effect != Ask && !d.Reading {
		return nil
	}
	c := s.newCall(&r)
	if r.Foreign != "" && s.opensWay(c) {
		return nil
	}
	offers := s.inputOffers(c)
	if c.runs() {
		offers = s.scriptOffers(c)
	}
	var out []Offer
	for _, o := range offers {
		with := r
		with.Grants = append(slices.Clip(r.Grants), o.Grants...)
		if d := s.Decide(with); len(o.Grants) > 0 && d.Effect == Allow && !d.Reading {
			out = append(out, o)
		}
	}
	return out
}

// opensWay reports whether a grant for a call could carry something out of a conversation or keep it. For a network
// command it always could: a grant for its program covers other addresses too.
func (s *Set) opensWay(c *call) bool {
	if c.runs() {
		return slices.ContainsFunc(c.scripts, func(r *command.Reading) bool {
			_, ok := command.Network(r.Script)
			return ok
		})
	}
	return c.act == act.Remembers || s.way(c, false).Reason.Code != ""
}

// scriptOffers returns the choices for the commands of a script that ask.
func (s *Set) scriptOffers(c *call) []Offer {
	if len(c.scripts) != 1 {
		return nil
	}
	exact, prefix := Offer{Kind: OfferExact}, Offer{Kind: OfferPrefix}
	every := true
	units := c.units(&c.scripts[0].Script)
	for i := range units {
		u := &units[i]
		if s.free(c, s.table(c.tool), u) {
			continue
		}
		if g, _ := c.grantFor(u); g != nil {
			continue
		}
		g := Grant{
			Tool: c.tool, Kind: GrantExact, Words: u.Words, Feed: u.Feed, Stdin: u.Stdin, Dir: u.dir,
			Files: u.files,
		}
		exact.Grants = append(exact.Grants, g)
		n := command.PrefixWords(u.Words)
		if every = every && n > 0; every {
			prefix.Grants = append(prefix.Grants, Grant{
				Tool: c.tool, Kind: GrantPrefix, Words: u.Words[:n], Dir: u.dir,
				Files: u.files,
			})
		}
	}
	if !every {
		return []Offer{exact}
	}
	return []Offer{exact, prefix}
}

// inputOffers returns the choices for a tool that runs no commands.
func (s *Set) inputOffers(c *call) []Offer {
	exact, dir, ext := Offer{Kind: OfferExact}, Offer{Kind: OfferDirectory}, Offer{Kind: OfferExtension}
	if isMCP(c.tool) {
		exact.Grants = []Grant{{
			Tool: c.tool, Kind: GrantExact, Input: c.inputs[0], Server: c.req.Server,
			Definition: c.req.Definition,
		}}
		return []Offer{exact}
	}
	for _, input := range c.inputs {
		g := Grant{Tool: c.tool, Kind: GrantExact, Input: input}
		exact.Grants = append(exact.Grants, g)
		if !path.IsAbs(input) || !within(c.req.InsidePaths, path.Dir(input)) {
			continue
		}
		g = Grant{Tool: c.tool, Kind: GrantPath, Dir: path.Dir(input)}
		dir.Grants = append(dir.Grants, g)
		if g.Ext = path.Ext(input); len(g.Ext) > 1 && !strings.HasPrefix(path.Base(input), ".") {
			ext.Grants = append(ext.Grants, g)
		}
	}
	offers := []Offer{exact}
	for _, o := range []Offer{dir, ext} {
		if len(o.Grants) == len(c.inputs) {
			offers = append(offers, o)
		}
	}
	return offers
}
