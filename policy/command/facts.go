package command

import (
	_ "embed"
	"strings"
	"sync"
)

// programsText says what is known about programs; see there.
//
//go:embed programs.txt
var programsText string

// fact is a kind of fact and a program.
type fact struct{ kind, program string }

// facts are the rows of programsText. A row that only lists programs has no words.
var facts = sync.OnceValue(func() map[fact][]string {
	list := map[fact][]string{}
	for line := range strings.Lines(strings.ReplaceAll(programsText, "\n  ", " ")) {
		names, rest, ok := strings.Cut(line, ": ")
		if !ok || line[0] == '#' {
			continue
		}
		kind, programs, known := strings.Cut(names, " ")
		words := strings.Fields(rest)
		if !known {
			programs, words = rest, nil
		}
		for program := range strings.FieldsSeq(programs) {
			list[fact{kind, program}] = words
		}
	}
	return list
})

// isOfKind reports whether a program is of a kind.
func isOfKind(kind, program string) bool {
	_, ok := facts()[fact{kind, program}]
	return ok
}
