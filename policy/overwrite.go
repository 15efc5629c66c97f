package policy

import (
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/reason"
)

// written returns the target of the first redirection that may create or change a file.
func written(sc *command.Script) (target string, ok bool) {
	for i := range sc.Redirects {
		if sc.Redirects[i].Writes {
			return sc.Redirects[i].Target, true
		}
	}
	return "", false
}

// overwrites turns an allow into an ask: a rule is about the command, not about the file that its output goes to. This
// applies to every allow rule, including one that names the redirection.
func overwrites(sc *command.Script, target, rule string) answer {
	return answer{
		effect: Ask,
		rule:   "built-in: redirection that writes (" + rule + ")",
		code:   reason.RedirectionWrites,
		about:  &sc.Text,
		target: &target,
	}
}
