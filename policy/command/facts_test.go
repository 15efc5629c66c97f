package command_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/command"
)

// TestFacts: every row of what is known about programs, environment and reading has the form that is read, and names no
// program twice.
func TestFacts(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for name, form := range map[string]string{
		"programs.txt":    `^((implicit|subcommands)( \S+)+|data|prefix|takes|names|shells|bash-like|network|state|interpreters): \S.*$`,
		"environment.txt": `^(harmless|passed): (([A-Za-z_][A-Za-z0-9_]*\*?|[A-Z_0-9a-z]+=\S+)( |$))+$`,
		"reading.txt":     `^(git )?\S+( (skip=\d|most=\d|values=\w+|plain|expression|language|deep(-\S+)?|-\w|--?\w[\w-]+))*$`,
	} {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		number := 1
		for line := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(string(raw)), "\n  ", "\x00"), "\n") {
			at := fmt.Sprintf("%s:%d", name, number)
			number += 1 + strings.Count(line, "\x00")
			line = strings.ReplaceAll(line, "\x00", " ")
			if line == "" || line[0] == '#' {
				continue
			}
			if !regexp.MustCompile(form).MatchString(line) {
				t.Errorf("%s: %q", at, line)
			}
			names, words, _ := strings.Cut(line, ":")
			kind, programs, known := strings.Cut(names, " ")
			if !known && name == "programs.txt" {
				programs = words
			}
			for program := range strings.FieldsSeq(programs) {
				if id := kind + " " + program; name == "programs.txt" && seen[id] {
					t.Errorf("%s: %q is there twice", at, id)
				} else {
					seen[id] = true
				}
			}
		}
	}
	if len(command.ReadingCommands()) < 60 {
		t.Error(command.ReadingCommands())
	}
}
