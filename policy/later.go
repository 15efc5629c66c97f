package policy

import (
	"strings"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
)

// deniedPrograms returns the programs with which deny rules begin, folded: "rm" for "rm *" and for "rm*". A rule that
// begins with a wildcard names none, but it is matched against the whole text anyway.
func (s *Set) deniedPrograms(list []act.Tool) map[string]bool {
	names := map[string]bool{}
	for i := range list {
		if list[i].Act == act.Runs {
			addDenied(names, s.table(list[i].Name))
		}
	}
	return names
}

func addDenied(names map[string]bool, table []permission) {
	for i := range table {
		if table[i].action != Deny {
			continue
		}
		name, _, _ := strings.Cut(table[i].glob.pattern, " ")
		if at := strings.IndexAny(name, "*?["); at >= 0 {
			name = name[:at]
		}
		if name != "" {
			names[foldText(name)] = true
		}
	}
}

// later denies a script in which an unknown program may run something that a deny rule matches: "choom -n 0 -- rm x"
// with the rule "rm *".
func (s *Set) later(table []permission, sc *command.Script, a answer) answer {
	if a.effect == Deny || len(s.denied) == 0 {
		return a
	}
	for name, words := range sc.Later() {
		if !s.denied[name] {
			continue
		}
		cmd := command.Command{Name: name, Words: words, Text: strings.Join(words, " ")}
		if b := byCommand(table, &cmd, nil); b.effect == Deny {
			return b
		}
	}
	return a
}

// blocksLater searches for a blocked command among the words that an unknown program may run.
func (r *shellRules) blocksLater(sc *command.Script) (string, bool) {
	for name, words := range sc.Later() {
		for _, b := range r.blocked {
			b = strings.TrimSpace(b)
			if first, _, _ := strings.Cut(b, " "); name == first &&
				startsWith(foldText(strings.Join(append([]string{name}, words[1:]...), " ")), b) {
				return b, true
			}
		}
	}
	return "", false
}
