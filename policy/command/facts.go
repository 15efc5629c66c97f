package command

import (
	_ "embed"
	"strconv"
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

// is reports whether a program is of a kind.
func is(kind, program string) bool {
	_, ok := facts()[fact{kind, program}]
	return ok
}

// wrappers are the programs that run the command after their own options.
var wrappers = sync.OnceValue(func() map[string]wrapper {
	list := map[string]wrapper{}
	for f, words := range facts() {
		if f.kind != "wrapper" {
			continue
		}
		var w wrapper
		texts := map[string]*string{
			"short": &w.short, "value": &w.value, "attached": &w.attached, "long": &w.long, "longval": &w.longVal, "script": &w.script,
		}
		flags := map[string]*bool{"assign": &w.assign, "joined": &w.joined, "shell": &w.shell}
		for _, word := range words {
			key, value, _ := strings.Cut(word, "=")
			switch {
			case texts[key] != nil:
				*texts[key] = strings.ReplaceAll(value, ",", " ")
			case flags[key] != nil:
				*flags[key] = true
			case key == "skip":
				w.skip, _ = strconv.Atoi(value) // a test reads every row
			}
		}
		list[f.program] = w
	}
	return list
})
