package filter

import (
	"strings"

	"github.com/charmbracelet/x/ansi/parser"
)

// stderrMark is the prefix with which the shell tool marks lines of standard error.
const stderrMark = "[stderr] "

// maxSequence is the maximum length of a terminal control sequence in bytes. A sequence that does not end within it, or
// within its line, is treated as text, so that an open sequence cannot hide what follows.
const maxSequence = 4096

// line is one line of output while strategies are applied.
type line struct {
	text string // as in the output
	src  int32  // index of the sanitised line; -1 = written by a strategy
	bits uint32 // result of failures.words for its body; 0 = not scanned yet
	off  uint8  // bytes of text before the body
	keep bool   // no strategy may drop it
}

// bodyText returns what patterns see: the line without the mark of standard error.
func (l *line) bodyText() string { return l.text[l.off:] }

// writtenLine returns a line that was not in the input.
func writtenLine(text string) line { return line{text: text, src: -1} }

// clean is a sanitised text.
type clean struct {
	lines  []line
	frames bool // something was overwritten after a carriage return
	whole  bool // nothing had to be changed
}

// blankLines says how blank lines are treated.
type blankLines uint8

const (
	blanksStay blankLines = iota
	blankEnd              // drop those at the end
	blankRuns             // drop those at the end, and keep one of several in a row
)

// sanitizeText removes terminal sequences, text overwritten after a carriage return, and blank lines. hidden reports
// that an overwritten piece has to be shown anyway; nil = none.
func sanitizeText(text string, blanksToo blankLines, hidden func(string) bool) clean {
	collapse := blanksToo == blankRuns
	c := clean{whole: true, lines: make([]line, 0, strings.Count(text, "\n")+1)}
	if strings.IndexByte(text, 0x1b) >= 0 {
		text, c.whole = stripEscapes(text), false
	}
	carriage := strings.IndexByte(text, '\r') >= 0
	if carriage {
		c.whole = false
	}
	blanks := 0
	for more := true; more; {
		var one string
		one, text, more = strings.Cut(text, "\n")
		if carriage {
			one = c.overwriteLine(one, hidden)
		}
		if collapse {
			if isBlank(strings.TrimPrefix(one, stderrMark)) {
				if blanks++; blanks > 1 {
					c.whole = false
					continue
				}
			} else {
				blanks = 0
			}
		}
		c.addLine(one)
	}
	if blanksToo != blanksStay {
		for n := len(c.lines); n > 1 && isBlank(c.lines[n-1].bodyText()); n-- {
			c.lines, c.whole = c.lines[:n-1], false
		}
	}
	return c
}

// addLine appends a line of the input.
func (c *clean) addLine(text string) {
	l := line{text: text, src: int32(len(c.lines))}
	if strings.HasPrefix(text, stderrMark) {
		l.off = uint8(len(stderrMark))
	}
	c.lines = append(c.lines, l)
}

func isBlank(s string) bool {
	for i := range len(s) {
		switch s[i] {
		case ' ', '\t', '\v', '\f':
		default:
			return false
		}
	}
	return true
}

// overwriteLine returns what a terminal would finally show of a line: the text after the last carriage return.
func (c *clean) overwriteLine(one string, hidden func(string) bool) string {
	one = strings.TrimRight(one, "\r")
	at := strings.LastIndexByte(one, '\r')
	if at < 0 {
		return one
	}
	c.frames = true
	mark := ""
	if strings.HasPrefix(one, stderrMark) {
		mark = stderrMark
	}
	if hidden != nil {
		for piece := range strings.SplitSeq(one[:at], "\r") {
			if hidden(piece) {
				c.addLine(mark + strings.TrimPrefix(piece, stderrMark))
			}
		}
	}
	rest := one[at+1:]
	if strings.HasPrefix(rest, stderrMark) {
		return rest
	}
	return mark + rest
}

// stripEscapes removes terminal control sequences (ECMA-48: CSI, OSC, DCS and other strings, single escapes).
func stripEscapes(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for {
		i := strings.IndexByte(text, 0x1b)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i])
		text = text[i+sequenceLength(text[i:]):]
	}
}

// sequenceLength returns the length of the control sequence at the start of s. For one without an end, that
// is the length of its introducer.
func sequenceLength(s string) int {
	state := parser.EscapeState
	limit := min(len(s), maxSequence)
	for i := 1; i < limit; i++ {
		b := s[i]
		if b == '\n' || b == '\r' {
			break
		}
		inString := state >= parser.OscStringState || state == parser.DcsStringState
		switch {
		case b == 0x1b:
			if inString && i+1 < limit && s[i+1] == '\\' {
				return i + 2
			}
			return min(2, i) // a new sequence begins: this one is broken and its text is kept
		case inString && b == 0x07:
			return i + 1
		case inString && b >= 0x80:
			continue // UTF-8 in a title or an address
		case b >= 0x80:
			return i
		}
		next, _ := parser.Table.Transition(state, b)
		if next == parser.GroundState {
			return i + 1
		}
		state = next
	}
	return min(2, len(s))
}

// joinLines joins lines.
func joinLines(lines []line) string {
	size := max(0, len(lines)-1)
	for i := range lines {
		size += len(lines[i].text)
	}
	var b strings.Builder
	b.Grow(size)
	for i := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(lines[i].text)
	}
	return b.String()
}
