// Package console is a terminal at which a person writes: the keys that it sends, a line editor, and a screen, on which
// text scrolls away above a part that is redrawn in place. TTY holds the terminal itself: raw input, its size, and its
// former state, which every end restores.
package console

import (
	"io"
	"strconv"
	"strings"
)

// Control sequences that are used (xterm).
const (
	syncOn     = "\x1b[?2026h" // show what follows at once
	syncOff    = "\x1b[?2026l"
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	eraseBelow = "\x1b[J"
	// askReply asks the terminal for its primary device attributes: its reply comes after everything that was typed
	// before the terminal has seen the question.
	askReply = "\x1b[c"
)

// Size is that of a terminal.
type Size struct{ Cols, Rows int }

// Smallest is assumed where a terminal says that it is smaller, or nothing.
var smallestSize = Size{Cols: 20, Rows: 5}

// orSmallest returns a size in which something can be drawn.
func (s Size) orSmallest() Size {
	return Size{max(s.Cols, smallestSize.Cols), max(s.Rows, smallestSize.Rows)}
}

// Cursor is a place in the live part.
type Cursor struct {
	Row, Col int
	Hidden   bool
}

// Screen draws. One goroutine at a time may use it.
type Screen struct {
	out    io.Writer
	size   Size
	live   []string // as it was drawn
	cursor Cursor
	last   string // what was written for the live part, to leave out what changes nothing
}

// NewScreen returns a Screen on a terminal whose cursor is at the beginning of a line.
func NewScreen(out io.Writer, size Size) *Screen {
	return &Screen{out: out, size: size.orSmallest()}
}

// Size returns the size of the terminal.
func (s *Screen) Size() Size { return s.size }

// Resize is told that the terminal has another size. The terminal has wrapped its lines again by then.
func (s *Screen) Resize(size Size) {
	size = size.orSmallest()
	if size == s.size {
		return
	}
	rows := 0
	for _, line := range s.live[:min(s.cursor.Row, len(s.live))] {
		rows += max(1, (widthOf(line)+size.Cols-1)/size.Cols)
	}
	s.cursor.Row = rows + s.cursor.Col/size.Cols
	s.size, s.last = size, ""
}

// Draw writes lines that scroll away, and the live part below them with the cursor in it. Lines of the live part that
// are wider than the terminal are cut, and if there are too many, the first ones are left out.
func (s *Screen) Draw(above, live []string, cursor Cursor) {
	if extra := len(live) - (s.size.Rows - 1); extra > 0 {
		live = live[extra:]
		cursor.Row = max(0, cursor.Row-extra)
	}
	shown := make([]string, len(live))
	for i, line := range live {
		shown[i] = line
		if widthOf(line) > s.size.Cols-1 {
			shown[i] = cutLine(line, s.size.Cols-1)
		}
	}
	cursor.Row = min(cursor.Row, max(0, len(shown)-1))
	cursor.Col = min(cursor.Col, s.size.Cols-1)
	var part strings.Builder
	part.WriteString(strings.Join(shown, "\r\n"))
	part.WriteString(placeSequence(len(shown), cursor))
	if len(above) == 0 && part.String() == s.last {
		return
	}
	var b strings.Builder
	b.WriteString(syncOn + hideCursor + s.homeSequence() + eraseBelow)
	for _, line := range above {
		b.WriteString(line + "\r\n")
	}
	b.WriteString(part.String() + syncOff)
	s.live, s.cursor, s.last = shown, cursor, part.String()
	s.writeText(b.String())
}

// Close erases the live part. The cursor is at the beginning of an empty line then.
func (s *Screen) Close() {
	s.writeText(s.homeSequence() + eraseBelow + showCursor)
	s.live, s.cursor, s.last = nil, Cursor{}, ""
}

// Ask writes askReply.
func (s *Screen) Ask() { s.writeText(askReply) }

// writeText writes to the terminal; if it is gone, nobody reads any more.
func (s *Screen) writeText(text string) { _, _ = io.WriteString(s.out, text) }

// homeSequence moves the cursor to the beginning of the live part.
func (s *Screen) homeSequence() string {
	if s.cursor.Row == 0 {
		return "\r"
	}
	return "\r\x1b[" + strconv.Itoa(s.cursor.Row) + "A"
}

// placeSequence moves the cursor from the end of the live part to its place.
func placeSequence(lines int, c Cursor) string {
	text := "\r"
	if up := lines - 1 - c.Row; up > 0 {
		text += "\x1b[" + strconv.Itoa(up) + "A"
	}
	if c.Col > 0 {
		text += "\x1b[" + strconv.Itoa(c.Col) + "C"
	}
	if !c.Hidden {
		text += showCursor
	}
	return text
}
