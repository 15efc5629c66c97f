package console_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/bot/terminal/console"
)

// press feeds what a terminal sends, and returns the text with a | at the cursor.
func press(e *console.Editor, sent string) string {
	var d console.KeyDecoder
	for _, k := range append(d.Feed([]byte(sent)), d.Flush()...) {
		e.Key(k)
	}
	text, at := e.Text()
	return text[:at] + "|" + text[at:]
}

func TestEditing(t *testing.T) {
	t.Parallel()
	const left, right, up, down, home, end = "\x1b[D", "\x1b[C", "\x1b[A", "\x1b[B", "\x1b[H", "\x1b[F"
	for _, c := range []struct{ name, sent, want string }{
		{"insert", "ac" + left + "b", "ab|c"},
		{"a family is one character", "x👨‍👩‍👧" + left, "x|👨‍👩‍👧"},
		{"a combining mark goes with its letter", "e\u0301x\x7f\x7f", "|"},
		{"delete", "ab" + home + "\x1b[3~", "|b"},
		{"lines", "one\x0atwo" + home, "one\n|two"},
		{"up keeps the column", "abcd\x0aef" + up, "ab|cd\nef"},
		{"up to a shorter line", "ab\x0acdef" + up, "ab|\ncdef"},
		{"down", "ab\x0acdef" + up + home + down, "ab\n|cdef"},
		{"end of a line", "ab\x0acd" + up + end, "ab|\ncd"},
		{"backspace joins lines", "ab\x0acd" + home + "\x7f", "ab|cd"},
		{"words", "one two.three\x1bb\x1bb", "one |two.three"},
		{"to the end of a word", "one two" + home + "\x1b[1;5C", "one| two"},
		{"kill and yank", "one two\x17\x01\x19", "two|one "},
		{"kill the rest", "one two\x1bb\x0b", "one |"},
		{"kill the beginning", "one two\x1bb\x15", "|two"},
		{"undo", "abc\x1f", "ab|"},
		{"alt-enter", "a\x1b\rb", "a\nb|"},
		{"paste", "\x1b[200~a\r\nb\x1b[201~", "a\nb|"},
		{"out of the text", left + right + "a" + right + right, "a|"},
	} {
		if got := press(&console.Editor{}, c.sent); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	var e console.Editor
	e.SetHistory([]string{"first", "second\nline"})
	for _, c := range []struct{ sent, want string }{
		{"dra", "dra|"},
		{"\x1b[A", "second\nline|"},
		{"\x1b[A", "seco|nd\nline"}, // within the text first
		{"\x1b[A", "first|"},
		{"\x1b[A", "first|"},
		{"\x10", "first|"},
		{"\x1b[B", "second\nline|"},
		{"\x1b[B", "dra|"},
		{"\x1b[B", "dra|"},
	} {
		if got := press(&e, c.sent); got != c.want {
			t.Errorf("%q: %q, want %q", c.sent, got, c.want)
		}
	}
	if line, ok := e.Search("FIR", 0); !ok || line != "first" {
		t.Errorf("found %q", line)
	}
	if e.Take() != "dra" || !e.Empty() {
		t.Error("the text was not taken")
	}
}

func TestLongText(t *testing.T) {
	t.Parallel()
	var e console.Editor
	e.Insert(strings.Repeat("x", console.MaxText))
	e.Insert("y")
	if text, _ := e.Text(); len(text) != console.MaxText {
		t.Errorf("%d bytes", len(text))
	}
}

// TestAnyKeys: whatever is pressed, the cursor is within the text and between two characters.
func TestAnyKeys(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var e console.Editor
		e.SetHistory([]string{"é\n漢字", "x"})
		for _, name := range rapid.SliceOf(rapid.SampledFrom([]console.KeyName{console.Rune, console.Paste, console.Enter, console.Backspace, console.Delete, console.Left, console.Right, console.Up, console.Down, console.Home, console.End})).Draw(t, "keys") {
			k := console.Key{Name: name, Ctrl: rapid.Bool().Draw(t, "ctrl"), Alt: rapid.Bool().Draw(t, "alt")}
			if name == console.Rune || name == console.Paste {
				k.Text = rapid.SampledFrom([]string{"a", "k", "u", "w", "y", "d", "é", "\n", "👨‍👩‍👧", "e\u0301", "🇩", " "}).Draw(t, "text")
			}
			e.Key(k)
			text, at := e.Text()
			if at < 0 || at > len(text) {
				t.Fatalf("the cursor is at %d of %q", at, text)
			}
			if word, start := e.Word(); text[start:at] != word {
				t.Fatalf("the word %q at %d of %q", word, start, text)
			}
		}
	})
}
