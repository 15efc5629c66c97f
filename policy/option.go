package policy

import (
	"strings"

	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/reason"
)

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
