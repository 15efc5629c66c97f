package command_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/command"
)

// plainWords reports whether the shell reads every word of the text literally and the first is not a keyword.
func plainWords(text string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./ "
	first, _, _ := strings.Cut(text, " ")
	switch first {
	case "", "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function", "time", "coproc", "in",
		"let", "declare", "local", "export", "readonly", "typeset", "nameref":
		return false
	}
	return strings.Trim(text, letters) == ""
}

func FuzzParse(f *testing.F) {
	for _, r := range rows(f) {
		f.Add(r.text)
	}
	f.Add(strings.Repeat("$(", 300))
	f.Add(strings.Repeat("if ", 300))
	f.Fuzz(func(t *testing.T, text string) {
		s := command.Parse(text)
		command.Blocked(s, []string{"curl"})
		command.Confirm(s, []string{"x"})
		command.Network(s)
		if paths, ok := command.ReadsOnly(s); !ok && paths != nil {
			t.Errorf("ReadsOnly(%q) gives paths %q without ok", text, paths)
		}
		if diff := cmp.Diff(s, command.Parse(text)); diff != "" {
			t.Errorf("Parse(%q) is not the same twice:\n%s", text, diff)
		}
		for _, c := range s.Commands {
			if len(c.Words) == 0 || c.Text != strings.Join(c.Words, " ") || c.Marks != nil && len(c.Marks) != len(c.Words) {
				t.Errorf("Parse(%q): inconsistent command %+v", text, c)
			}
		}
		if len(text) <= command.MaxText && plainWords(text) {
			if len(s.Commands) == 0 || s.Commands[0].Text != strings.Join(strings.Fields(text), " ") {
				t.Errorf("Parse(%q) does not find the command itself: %+v", text, s.Commands)
			}
		}
	})
}
