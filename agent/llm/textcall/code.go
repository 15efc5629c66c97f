package textcall

import (
	"bytes"
	"strings"
)

// The most that is read of a paragraph to decide whether a mark is within inline code, in bytes before and after it.
const (
	codeBefore = 8 << 10
	codeAfter  = 1 << 10
)

// fence is an open block of code.
type fence struct {
	char   byte
	length int
}

// lineFence returns the fence that a line consists of, and what follows it; length 0 = none. Before it may be the marks
// of quotations and lists. Other than CommonMark has it, any indentation will do: an indented fence that is none begins
// an indented block of code.
func lineFence(line []byte) (fence, []byte) {
	line = bytes.TrimLeft(line, " \t>")
	if rest := bytes.TrimLeft(line, "0123456789"); len(rest) > 1 && len(line)-len(rest) < 10 {
		marked := len(rest) == len(line) && strings.IndexByte("-*+", rest[0]) >= 0 ||
			len(rest) < len(line) && (rest[0] == '.' || rest[0] == ')')
		if marked && (rest[1] == ' ' || rest[1] == '\t') {
			line = bytes.TrimLeft(rest[1:], " \t")
		}
	}
	if len(line) < 3 || (line[0] != '`' && line[0] != '~') {
		return fence{}, nil
	}
	f := fence{char: line[0]}
	for f.length < len(line) && line[f.length] == f.char {
		f.length++
	}
	rest := line[f.length:]
	if f.length < 3 || f.char == '`' && bytes.IndexByte(rest, '`') >= 0 {
		return fence{}, nil
	}
	return f, rest
}

// afterLine returns the fence that is open after a whole line.
func (f fence) afterLine(line []byte) fence {
	found, rest := lineFence(line)
	switch {
	case found.length == 0:
		return f
	case f.length == 0:
		return found
	case found.char == f.char && found.length >= f.length && len(bytes.TrimSpace(rest)) == 0:
		return fence{}
	default:
		return f
	}
}

// inlineCode reports whether a place is within inline code, by the text of its paragraph before and after it. decided
// is false if that depends on more text.
func inlineCode(text []byte, after string, final bool) (code, decided bool) {
	text = text[max(0, len(text)-codeBefore):]
	if at := bytes.LastIndex(text, []byte("\n\n")); at >= 0 {
		text = text[at:]
	}
	if line := text[bytes.LastIndexByte(text, '\n')+1:]; len(line) > 0 {
		if f, _ := lineFence(line); f.length > 0 {
			return true, true // the line that opens a block of code
		}
	}
	if bytes.IndexByte(text, '`') < 0 {
		return false, true
	}
	before := string(text)
	for {
		open := strings.IndexByte(before, '`')
		if open < 0 {
			return false, true
		}
		length := runLength(before[open:])
		escaped := open > 0 && before[open-1] == '\\'
		before = before[open+length:]
		if escaped {
			continue
		}
		if end := findRun(before, length); end >= 0 {
			before = before[end+length:]
			continue
		}
		closed, decided := closesAfter(after, length, final)
		if !decided {
			return false, false
		}
		if closed {
			return true, true
		}
	}
}

// closesAfter reports whether the rest of a paragraph has a run of length backticks.
func closesAfter(after string, length int, final bool) (closes, decided bool) {
	paragraph, whole := after, final
	if len(after) > codeAfter {
		paragraph, whole = after[:codeAfter], true
	}
	if at := strings.Index(paragraph, "\n\n"); at >= 0 {
		paragraph, whole = paragraph[:at], true
	}
	at := findRun(paragraph, length)
	if at >= 0 && (whole || at+length < len(paragraph)) {
		return true, true
	}
	return false, whole
}

// findRun returns where a run of exactly length backticks begins; -1 = nowhere.
func findRun(text string, length int) int {
	for from := 0; ; {
		at := strings.IndexByte(text[from:], '`')
		if at < 0 {
			return -1
		}
		n := runLength(text[from+at:])
		if n == length {
			return from + at
		}
		from += at + n
	}
}

// runLength counts the backticks that a text begins with.
func runLength(text string) int {
	n := 0
	for n < len(text) && text[n] == '`' {
		n++
	}
	return n
}
