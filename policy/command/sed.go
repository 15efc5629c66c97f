package command

import (
	"regexp"
	"strings"
	"sync"
)

// sedShows reports whether a script certainly only edits what it prints. It knows s and the commands of one
// letter, with line numbers, $ and /expressions/ as addresses, and the flags g, p, i, I and numbers of s.
// Everything else is not known to be harmless, because versions of sed read the same text differently, and some
// read files, write them or run commands.
func sedShows(script string) bool { return sedShown().MatchString(script) }

// sedShown matches such a script. Every version of sed ends an expression of it at the same delimiter: it is without
// line breaks, and has nothing in brackets but characters and names of classes such as [:space:].
var sedShown = sync.OnceValue(func() *regexp.Regexp {
	expression := func(delimiter string) string {
		const class = `|\[:[a-z]+:\])`
		inside := `\]\[\\\n` + delimiter + `]` + class
		return `(?:[^\\\n\[` + delimiter + `]|\\[^\n]|\[\^?(?:[^^` + inside + `(?:[^` + inside + `*\])*` + delimiter
	}
	place := `(?:[0-9]+|\$|/` + expression("/") + `)`
	var edits []string
	for d := range strings.SplitSeq("/ | , # @ : % ! _ ~ =", " ") {
		d = regexp.QuoteMeta(d)
		edits = append(edits, d+expression(d)+`(?:[^\\\n`+d+`]|\\[^\n])*`+d)
	}
	command := `(?:` + place + `(?:,[ \t]*(?:\+[0-9]+|` + place + `))?)?[ \t]*!? *` +
		`(?:[pd=DgGhHnNPqx]|s(?:` + strings.Join(edits, "|") + `)[gpiI0-9]*)[ \t]*`
	return regexp.MustCompile(`^[ \t]*` + command + `(?:[;\n][ \t\n;]*` + command + `)*(?:[;\n][ \t\n;]*)?$`)
})
