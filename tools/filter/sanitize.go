package filter

import (
	"strings"

	"github.com/charmbracelet/x/ansi/parser"
)

// stderrMark is how the shell marks lines of the error stream.
const stderrMark = "[stderr] "

// maxSequence is how many bytes a terminal control sequence may have. What does not end within them, or within its
// line, is text: an open sequence must not hide what follows.
const maxSequence = 4096

// line is one line of output on its way through the strategies.
type line struct {
	text string // as it stands in the output
	src  int32  // number of the sanitised line; -1 = written by a strategy
	bits uint32 // what failures.words has found in its body; 0 = not looked at yet
	off  uint8  // bytes of text before its body
	keep bool   // no strategy may drop it
}

// body is what patterns see: without the mark of the error stream.
func (l *line) body() string { return l.text[l.off:] }

// written makes a line that was not in the input.
func written(text string) line { return line{text: text, src: -1} }

// clean is a sanitised text.
type clean struct {
	lines  []line
	frames bool // something was overwritten by a carriage return
	whole  bool // nothing had to be changed
}

// blankLines says what becomes of blank lines.
type blankLines uint8

const (
	blanksStay blankLines = iota
	blankEnd              // those at the end go
	blankRuns             // those at the end go, and several in a row become one
)

// sanitize strips terminal sequences, what a carriage return overwrote, and blank lines. hidden says of an overwritten
// piece that it has to be seen all the same; nil = none.
func sanitize(text string, blanksToo blankLines, hidden func(string) bool) clean {
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
			one = c.overwrite(one, hidden)
		}
		if collapse {
			if blank(strings.TrimPrefix(one, stderrMark)) {
				if blanks++; blanks > 1 {
					c.whole = false
					continue
				}
			} else {
				blanks = 0
			}
		}
		c.add(one)
	}
	if blanksToo != blanksStay {
		for n := len(c.lines); n > 1 && blank(c.lines[n-1].body()); n-- {
			c.lines, c.whole = c.lines[:n-1], false
		}
	}
	return c
}

// add appends a line of the input.
func (c *clean) add(text string) {
	l := line{text: text, src: int32(len(c.lines))}
	if strings.HasPrefix(text, stderrMark) {
		l.off = uint8(len(stderrMark))
	}
	c.lines = append(c.lines, l)
}

func blank(s string) bool {
	for i := range len(s) {
		switch s[i] {
		case ' ', '\t', '\v', '\f':
		default:
			return false
		}
	}
	return true
}

// overwrite is what a terminal would show of a line in the end: what stands after the last carriage return.
func (c *clean) overwrite(one string, hidden func(string) bool) string {
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
				c.add(mark + strings.TrimPrefix(piece, stderrMark))
			}
		}
	}
	rest := one[at+1:]
	if strings.HasPrefix(rest, stderrMark) {
		return rest
	}
	return mark + rest
}

// stripEscapes drops terminal control sequences (ECMA-48: CSI, OSC, DCS and the other strings, single escapes).
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
		text = text[i+sequence(text[i:]):]
	}
}

// sequence is the length of the control sequence that s begins with; of one that does not end, only its introducer.
func sequence(s string) int {
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
			return min(2, i) // a new sequence begins: this one is broken, its text stays
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

// join puts lines back together.
func join(lines []line) string {
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
