package console

import (
	"strings"
	"unicode"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// MaxText limits the text, in bytes: what would make it longer is not inserted.
const MaxText = 1 << 20

// Editor is a line editor as a pure state machine: a text with a cursor, its history, and what can be completed. It
// reads no terminal and draws nothing. The zero value is empty and ready for use by one goroutine.
type Editor struct {
	text   string
	at     int // byte offset of the cursor, between two characters as a person sees them
	killed string
	undo   []state

	history []string
	shown   int    // 0 = the text is the person's; n = the n-th newest line of the history
	draft   string // what they had written before they looked at the history
}

type state struct {
	text string
	at   int
}

// maxUndo limits how many steps can be taken back.
const maxUndo = 200

// Text returns the text and the byte offset of the cursor in it.
func (e *Editor) Text() (text string, at int) { return e.text, e.at }

// Empty reports whether there is no text.
func (e *Editor) Empty() bool { return e.text == "" }

// Set replaces the text; the cursor is at its end.
func (e *Editor) Set(text string) {
	if len(text) > MaxText {
		return
	}
	e.saveState()
	e.text, e.at = text, len(text)
}

// Take returns the text and empties the editor.
func (e *Editor) Take() string {
	text := e.text
	e.text, e.at, e.undo, e.shown, e.draft = "", 0, nil, 0, ""
	return text
}

// Insert puts text at the cursor.
func (e *Editor) Insert(text string) {
	if text == "" || len(e.text)+len(text) > MaxText {
		return
	}
	e.saveState()
	e.text = e.text[:e.at] + text + e.text[e.at:]
	e.at += len(text)
}

// Replace replaces the bytes from start to the cursor.
func (e *Editor) Replace(start int, text string) {
	if start < 0 || start > e.at || len(e.text)+len(text) > MaxText {
		return
	}
	e.saveState()
	e.text = e.text[:start] + text + e.text[e.at:]
	e.at = start + len(text)
}

func (e *Editor) saveState() {
	e.undo = append(e.undo, state{e.text, e.at})
	if len(e.undo) > maxUndo {
		e.undo = e.undo[1:]
	}
}

// Key applies a key. It returns false if the key has no meaning to the editor: Enter, Tab, Escape, the Ctrl keys that a
// shell gives another meaning, and arrows that lead out of the text where there is no history.
func (e *Editor) Key(k Key) bool {
	switch {
	case k.Name == Paste:
		e.Insert(k.Text)
		return true
	case k.Name == Rune && k.Ctrl:
		return e.controlKey(k.Text)
	case k.Name == Rune && k.Alt:
		return e.metaKey(k.Text)
	case k.Name == Rune:
		e.Insert(k.Text)
		return true
	}
	return e.namedKey(k)
}

func (e *Editor) namedKey(k Key) bool {
	byWord := k.Ctrl || k.Alt
	switch k.Name {
	case Backspace:
		if byWord {
			e.cutText(e.wordStart(), e.at, true)
		} else {
			e.cutText(e.previousOffset(), e.at, false)
		}
	case Delete:
		e.cutText(e.at, e.nextOffset(), false)
	case Left, Right:
		e.moveAside(k.Name == Left, byWord)
	case Home:
		e.at = e.lineStart()
	case End:
		e.at = e.lineEnd()
	case Up:
		return e.moveUp() || e.olderLine()
	case Down:
		return e.moveDown() || e.newerLine()
	case Enter:
		if !k.Alt && !k.Shift {
			return false
		}
		e.Insert("\n")
	default:
		return false
	}
	return true
}

// moveAside moves the cursor by a character or a word.
func (e *Editor) moveAside(left, byWord bool) {
	switch {
	case left && byWord:
		e.at = e.wordStart()
	case left:
		e.at = e.previousOffset()
	case byWord:
		e.at = e.wordEnd()
	default:
		e.at = e.nextOffset()
	}
}

// controlKey applies a Ctrl key, as in a shell.
func (e *Editor) controlKey(letter string) bool {
	switch letter {
	case "p":
		return e.moveUp() || e.olderLine()
	case "n":
		return e.moveDown() || e.newerLine()
	case "d":
		if e.text == "" {
			return false
		}
		e.cutText(e.at, e.nextOffset(), false)
		return true
	}
	act, ok := map[string]func(){
		"a": func() { e.at = e.lineStart() },
		"e": func() { e.at = e.lineEnd() },
		"b": func() { e.at = e.previousOffset() },
		"f": func() { e.at = e.nextOffset() },
		"h": func() { e.cutText(e.previousOffset(), e.at, false) },
		"j": func() { e.Insert("\n") },
		"k": e.killRest,
		"u": e.killStart,
		"w": func() { e.cutText(e.blankStart(), e.at, true) },
		"y": func() { e.Insert(e.killed) },

		"\x7f": e.undoChange, // Ctrl-_
	}[letter]
	if ok {
		act()
	}
	return ok
}

// killRest cuts the rest of the line, or its end.
func (e *Editor) killRest() {
	end := e.lineEnd()
	if end == e.at {
		end = e.nextOffset()
	}
	e.cutText(e.at, end, true)
}

// killStart cuts the line up to the cursor, or the end of the line before.
func (e *Editor) killStart() {
	start := e.lineStart()
	if start == e.at {
		start = e.previousOffset()
	}
	e.cutText(start, e.at, true)
}

func (e *Editor) metaKey(letter string) bool {
	switch letter {
	case "b":
		e.at = e.wordStart()
	case "f":
		e.at = e.wordEnd()
	case "d":
		e.cutText(e.at, e.wordEnd(), true)
	default:
		return false
	}
	return true
}

// undoChange takes the last change back.
func (e *Editor) undoChange() {
	if n := len(e.undo); n > 0 {
		e.text, e.at = e.undo[n-1].text, e.undo[n-1].at
		e.undo = e.undo[:n-1]
	}
}

// cutText removes a part of the text, which contains the cursor at one of its ends.
func (e *Editor) cutText(start, end int, keep bool) {
	if start >= end {
		return
	}
	e.saveState()
	if keep {
		e.killed = e.text[start:end]
	}
	e.text = e.text[:start] + e.text[end:]
	e.at = start
}

// previousOffset returns the offset of the character before the cursor.
func (e *Editor) previousOffset() int {
	line := strings.LastIndexByte(e.text[:e.at], '\n')
	if line == e.at-1 {
		return max(0, line)
	}
	before := line + 1
	it := graphemes.FromString(e.text[before:e.at])
	last := before
	for it.Next() {
		last = before + it.Start()
	}
	return last
}

// nextOffset returns the offset behind the character at the cursor.
func (e *Editor) nextOffset() int {
	it := graphemes.FromString(e.text[e.at:])
	if !it.Next() {
		return e.at
	}
	return e.at + it.End()
}

func (e *Editor) lineStart() int { return strings.LastIndexByte(e.text[:e.at], '\n') + 1 }

func (e *Editor) lineEnd() int {
	if i := strings.IndexByte(e.text[e.at:], '\n'); i >= 0 {
		return e.at + i
	}
	return len(e.text)
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || r == '_' }

// wordStart returns where the word before the cursor begins.
func (e *Editor) wordStart() int {
	head := strings.TrimRightFunc(e.text[:e.at], func(r rune) bool { return !isWordRune(r) })
	return len(strings.TrimRightFunc(head, isWordRune))
}

// wordEnd returns where the word at or after the cursor ends.
func (e *Editor) wordEnd() int {
	tail := strings.TrimLeftFunc(e.text[e.at:], func(r rune) bool { return !isWordRune(r) })
	return len(e.text) - len(strings.TrimLeftFunc(tail, isWordRune))
}

// blankStart returns where the text before the cursor begins that is between blanks.
func (e *Editor) blankStart() int {
	head := strings.TrimRightFunc(e.text[:e.at], unicode.IsSpace)
	return len(strings.TrimRightFunc(head, func(r rune) bool { return !unicode.IsSpace(r) }))
}

// moveUp moves the cursor to the line above; false if there is none.
func (e *Editor) moveUp() bool {
	start := e.lineStart()
	if start == 0 {
		return false
	}
	column := countCharacters(e.text[start:e.at])
	e.at = start - 1
	above := e.lineStart()
	e.at = above + offsetOf(e.text[above:start-1], column)
	return true
}

// moveDown moves the cursor to the line below; false if there is none.
func (e *Editor) moveDown() bool {
	end := e.lineEnd()
	if end == len(e.text) {
		return false
	}
	column := countCharacters(e.text[e.lineStart():e.at])
	e.at = end + 1
	e.at += offsetOf(e.text[e.at:e.lineEnd()], column)
	return true
}

func countCharacters(s string) int {
	n := 0
	for it := graphemes.FromString(s); it.Next(); {
		n++
	}
	return n
}

// offsetOf returns the byte offset of the n-th character, or the length of s.
func offsetOf(s string, n int) int {
	for it := graphemes.FromString(s); it.Next(); n-- {
		if n == 0 {
			return it.Start()
		}
	}
	return len(s)
}
