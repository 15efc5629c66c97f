package command_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/command"
)

// TestParseBounds feeds texts of the full length that nest as deeply as they can.
func TestParseBounds(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{
		"$(", "`", "(", "((", "$((", "$((-", "{ ", "if ", "while ", "! ", "time ", "env ", "sudo ", "xargs ", "[[ ! ", "[[ ( ", "coproc ", "${a:-", "${a[", "\"$(", "<(", "@(", "a|", "a&&", "a;", "{a,b}",
		"{a,", "sh -c 'x';", "eval eval ", "sh -c \"", "<<a\n", "<<<a ", "f(){ ", "case a in ", "a=(", "!", "~", "\\", "'", "$'", "find -exec ", "a\\\n", "1-", "a[", "$[", "function f ", "nice ", "for a in ", "-",
		"rm -rf ", "sh -c 'eval x' | ", "env -S a ",
	} {
		t.Run(piece, func(t *testing.T) {
			t.Parallel()
			s := command.Parse(strings.Repeat(piece, command.MaxText/len(piece)))
			command.Blocked(s, nil)
			command.Confirm(s, nil)
			command.Network(s)
			command.ReadsOnly(s)
		})
	}
}
