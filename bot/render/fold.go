package render

import (
	"slices"
	"strings"
)

// Folding says what is collapsed until the reader opens it. The zero value collapses nothing.
type Folding struct {
	Quotes int // quotes of so many lines; 0 = none
	Output int // code blocks of so many lines that show output, not code; 0 = none
}

// defaultQuotes is the number of lines from which Markdown collapses a quote.
const defaultQuotes = 10

// lineLength is how much of a line fits the width of a screen, in UTF-16 units: a longer one counts as several.
const lineLength = 70

// Markdown is like the function of this name, with another Folding.
func (f Folding) Markdown(src string) []Message { return build(src, f).split() }

// screenLines returns how many lines a text takes on a screen.
func screenLines(s string) int {
	n := 0
	for line := range strings.Lines(s) {
		n += max(1, (Length(strings.TrimRight(line, "\n"))+lineLength-1)/lineLength)
	}
	return n
}

// long reports whether a text has at least limit lines; 0 = no text has.
func long(s string, limit int) bool { return limit > 0 && screenLines(s) >= limit }

// outputs are the languages of code blocks that name no programming language.
var outputs = []string{"", "console", "log", "logs", "output", "plain", "plaintext", "stderr", "stdout", "text", "txt"}

// folds reports whether a code block is collapsed: code that somebody asked for is not, long output is.
func (w *writer) folds(s, lang string) bool {
	return w.style[kindQuote] == 0 && slices.Contains(outputs, strings.ToLower(lang)) && long(s, w.folding.Output)
}
