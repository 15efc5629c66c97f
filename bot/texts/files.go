package texts

import (
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/turn"
)

// fileBook is what is said of files that people send.
type fileBook struct {
	// by problem: which file; size and limit where there are some
	Problems map[turn.FileProblem]string
	Kinds    map[string]string // by kind of attachment, where it has no name
	Other    string            // for a kind that is not among them
	Named    string            // where it has a name: the name
	Heard    string            // what was said
}

// shownName is how much of the name of a file is shown, in characters.
const shownName = 80

// quotedWords is how much of a transcript is quoted to the person, in characters.
const quotedWords = 1000

// FileTrouble says why a file cannot be worked with, and what the person can do.
func (w Words) FileTrouble(language string, t turn.Trouble) string {
	b := w.in(language).Files
	which := b.Kinds[t.Kind]
	if which == "" {
		which = b.Other
	}
	if t.Name != "" {
		which = fmt.Sprintf(b.Named, render.Cut(strings.Join(strings.Fields(t.Name), " "), shownName))
	}
	switch t.Problem {
	case turn.FileTooLarge:
		return fmt.Sprintf(b.Problems[t.Problem], which, w.Bytes(language, t.Size), w.megabytes(language, t.Limit))
	case turn.FileTooManyDots, turn.FileScanned:
		return fmt.Sprintf(b.Problems[t.Problem], which, t.Size, t.Limit)
	case turn.FileUnseen, turn.FileUnheard, turn.FileMuted:
		return b.Problems[t.Problem]
	default:
		return fmt.Sprintf(b.Problems[t.Problem], which)
	}
}

// megabytes says a limit as its source does: 20 MB are 20 · 2²⁰ bytes.
func (w Words) megabytes(language string, n int64) string {
	units := strings.Fields(w.in(language).Numbers.Units)
	return w.number(language, n>>20) + " " + units[len(units)-1]
}

// Heard quotes what was written down of a recording.
func (w Words) Heard(language, text string) string {
	return fmt.Sprintf(w.in(language).Files.Heard, render.Cut(text, quotedWords))
}
