package policy

import (
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/command"
)

// Confirms reports whether the operator wants a person to approve a command before anything of it runs, not even without
// effect: an ask rule may be about a part of it, in whatever order the rules are, or a confirm pattern that is not one of
// the built-in ones. In a command that is not certain, such a part may be hidden. The rules about files count too: what
// has to be approved because of what it reads must not show it before.
func (s *Set) Confirms(r Request) bool {
	c := s.newCall(&r)
	if !c.runs() {
		return false
	}
	if s.judgeFiles(c).effect == Ask {
		return true
	}
	table := slices.DeleteFunc(slices.Clone(s.table(c.tool)), func(p permission) bool { return p.action != Ask })
	if len(table) == 0 && len(s.shell.own) == 0 {
		return false
	}
	for i := range c.scripts {
		sc := &c.scripts[i].Script
		if _, ok := command.Contains(*sc, s.shell.own); ok || !sc.Certain() || about(table, sc) {
			return true
		}
	}
	return false
}

// about reports whether a rule matches a script, a command in it, or a redirection.
func about(rules []permission, sc *command.Script) bool {
	subjects := []*subject{newSubject(sc.Text)}
	add := func(cmd *command.Command) {
		for _, text := range []string{cmd.Text, byName(cmd)} { // a wrapper such as xargs may add words
			subjects = append(subjects, newSubject(text), newSubject(text+" "))
		}
	}
	for i := range sc.Commands {
		add(&sc.Commands[i])
	}
	for name, words := range sc.Later() {
		add(&command.Command{Name: name, Words: words, Text: strings.Join(words, " ")})
	}
	for _, r := range sc.Redirects {
		subjects = append(subjects, newSubject(r.Op+" "+r.Target))
	}
	return slices.ContainsFunc(rules, func(p permission) bool { return slices.ContainsFunc(subjects, p.program.matches) })
}
