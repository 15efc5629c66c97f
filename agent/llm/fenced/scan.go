package fenced

import (
	"bytes"
	"slices"
	"strings"
)

// maxOpener is the longest line that can open a call. It limits how much is held back before a line has ended.
const maxOpener = 256

// fence is an opening fence.
type fence struct {
	char   byte
	length int
	indent int
}

// scanner finds calls in an answer that arrives in pieces. Other text passes at once, except the beginning of a line
// that may still open a call.
type scanner struct {
	tags  []string
	block func(tag, body string) bool // a closed block; false = it is ordinary text

	text strings.Builder // everything that was passed
	out  strings.Builder // passed since the last feed began

	line  []byte // the current line
	shown int    // bytes of line that were passed
	fence fence  // the open one; length 0 = none
	call  bool   // the open fence may be a call
	tag   string
	raw   []byte // the possible call from its opening line on
	body  []byte // its content, each line with its end
}

func newScanner(tags []string, block func(tag, body string) bool) *scanner {
	return &scanner{tags: tags, block: block}
}

// feedPiece takes a piece and returns what can be shown.
func (s *scanner) feedPiece(piece string) string {
	s.out.Reset()
	for piece != "" {
		part := piece
		end := strings.IndexByte(piece, '\n')
		if end >= 0 {
			part = piece[:end+1]
		}
		piece = piece[len(part):]
		s.line = append(s.line, part...)
		switch {
		case end >= 0:
			s.endLine()
		case !s.call && (s.shown > 0 || s.fence.length > 0 || !s.mayOpen()):
			s.passLine()
		}
	}
	return s.out.String()
}

// finishText ends the text and returns what was held back. cut means that the text is incomplete.
func (s *scanner) finishText(cut bool) string {
	s.out.Reset()
	if s.call && !cut && s.fence.closedBy(s.line) {
		s.closeCall()
	}
	if s.call {
		s.passText(s.raw)
	}
	s.passLine()
	s.line, s.shown, s.raw, s.body, s.call, s.fence = nil, 0, nil, nil, false, fence{}
	return s.out.String()
}

// inFence reports whether the text so far ends within a fence.
func (s *scanner) inFence() bool { return s.fence.length > 0 }

// endLine handles a complete line.
func (s *scanner) endLine() {
	switch {
	case s.call && s.fence.closedBy(s.line):
		s.closeCall()
	case s.call:
		s.raw = append(s.raw, s.line...)
		s.body = append(s.body, contentLine(s.line, s.fence.indent)...)
	case s.fence.length > 0:
		s.passLine()
		if s.fence.closedBy(s.line) {
			s.fence = fence{}
		}
	default:
		f, tag := openingFence(s.line)
		s.fence = f
		if f.length > 0 && s.isCall(tag) {
			s.call, s.tag = true, tag
			s.raw, s.body = append(s.raw[:0], s.line...), s.body[:0]
		} else {
			s.passLine()
		}
	}
	s.line, s.shown = s.line[:0], 0
}

// isCall reports whether the current line, which opens a fence with this tag, can open a call.
func (s *scanner) isCall(tag string) bool {
	return len(bytes.TrimSuffix(s.line, []byte("\n"))) <= maxOpener && slices.Contains(s.tags, tag)
}

// closeCall ends a possible call with the current line.
func (s *scanner) closeCall() {
	if !s.block(s.tag, strings.TrimSuffix(string(s.body), "\n")) {
		s.passText(s.raw)
		s.passText(s.line)
	}
	s.call, s.fence = false, fence{}
	s.line = s.line[:0]
}

func (s *scanner) passText(text []byte) {
	s.text.Write(text)
	s.out.Write(text)
}

// passLine passes the rest of the current line.
func (s *scanner) passLine() {
	s.passText(s.line[s.shown:])
	s.shown = len(s.line)
}

// mayOpen reports whether the current line, which is incomplete, can become one that opens a call.
func (s *scanner) mayOpen() bool {
	if len(s.line) > maxOpener {
		return false
	}
	f, rest := fenceOf(s.line)
	switch {
	case f.indent > 3:
		return false
	case len(rest) == 0:
		return true // blanks, or a fence that may get longer
	case f.length < 3:
		return false
	}
	info := bytes.TrimLeft(rest, blanks)
	word := string(bytes.TrimRight(info, blanks))
	return word == "" || slices.ContainsFunc(s.tags, func(tag string) bool {
		return tag == word || (len(info) == len(word) && strings.HasPrefix(tag, word))
	})
}

// blanks are the characters allowed around the word of a fence. A carriage return belongs to the end of the line.
const blanks = " \t\r"

// fenceOf splits a line into its fence, of any length, and the rest. The indent counts blanks, at most four.
func fenceOf(line []byte) (fence, []byte) {
	var f fence
	for f.indent < 4 && f.indent < len(line) && line[f.indent] == ' ' {
		f.indent++
	}
	rest := line[f.indent:]
	if len(rest) == 0 || (rest[0] != '`' && rest[0] != '~') {
		return f, rest
	}
	f.char = rest[0]
	for f.length < len(rest) && rest[f.length] == f.char {
		f.length++
	}
	return f, rest[f.length:]
}

// openingFence parses an opening fence and its info string; length 0 = the line is not one.
func openingFence(line []byte) (fence, string) {
	f, rest := fenceOf(bytes.TrimSuffix(line, []byte("\n")))
	info := string(bytes.Trim(rest, blanks))
	if f.length < 3 || f.indent > 3 || (f.char == '`' && strings.Contains(info, "`")) {
		return fence{}, ""
	}
	return f, info
}

// closedBy reports whether line closes the fence.
func (f fence) closedBy(line []byte) bool {
	end, rest := fenceOf(bytes.TrimSuffix(line, []byte("\n")))
	return end.char == f.char && end.length >= f.length && end.indent <= 3 && len(bytes.Trim(rest, blanks)) == 0
}

// contentLine is a line of a block without the fence's indent, ended by a line feed alone.
func contentLine(line []byte, indent int) []byte {
	for indent > 0 && len(line) > 0 && line[0] == ' ' {
		line, indent = line[1:], indent-1
	}
	if text, ok := bytes.CutSuffix(line, []byte("\r\n")); ok {
		return append(bytes.Clone(text), '\n')
	}
	return line
}
