// Package visible shows text that somebody has to judge: a command on an approval card, a name in a list. What a reader
// cannot see or would take for something else becomes a sign, and nothing can be pushed out of sight. Two different
// texts never look the same, and the exact text can be read back from what is shown:
//
//	␛ ␉ ␍ …               a control character
//	⟨U+200B⟩              an invisible character, or one that Unicode does not know
//	⟨U+0430 а⟩            a character that looks like another one, followed by how it looks
//	⟨Cyrillic⟩сору        a whole word of letters that look like Latin ones
//	⟨0xFF⟩                a byte that is no UTF-8
//	⟨… 300 blanks …⟩      a run of blanks
//	⟨… 300 empty lines …⟩ a run of empty lines
//	␠                     a blank at the end of a line
//	␊                     a line break at the end of the text, or one within a single line
//	↩                     the line goes on below
//	⟨rtl שלום ltr⟩        text that reads from right to left, kept from moving what is beside it
//
// The characters that signs are made of are shown as ⟨U+27E8 ⟨⟩ when they are part of the text.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// lineWidth is how many columns a line has before it is continued below.
	lineWidth = 72
	// wordWidth is how far from the end of a line a break at a blank is preferred.
	wordWidth = 24
	// mostBlanks and mostEmpty are how many consecutive blanks and empty lines are shown as they are.
	mostBlanks = 16
	mostEmpty  = 2
	// mostMarks is how many marks one letter may have: more would cover what is above and below.
	mostMarks = 3
)

// Signs of their own.
const (
	blankSign = "␠"
	breakSign = "␊"
	goesOn    = "↩"
)

// Words are the sentences in signs, each with one %d. Empty ones default to English.
type Words struct {
	Blanks string // "%d blanks"
	Lines  string // "%d empty lines"
}

// Found counts what was made visible and deserves a warning. Tabs, blanks and line breaks do not count.
type Found struct {
	Invisible int // controls, and invisible characters
	Alike     int // characters that look like others
}

// Add returns the sum.
func (f Found) Add(other Found) Found {
	return Found{Invisible: f.Invisible + other.Invisible, Alike: f.Alike + other.Alike}
}

// Most returns the higher value of each count.
func (f Found) Most(other Found) Found {
	return Found{Invisible: max(f.Invisible, other.Invisible), Alike: max(f.Alike, other.Alike)}
}

// Text shows a text of several lines: line breaks are kept, long lines are wrapped. Safe for concurrent use, like all
// of this package.
func (w Words) Text(s string) (string, Found) {
	var out []string
	var found Found
	lines := strings.Split(s, "\n")
	for i := 0; i < len(lines); i++ {
		empty := 0
		for i+empty < len(lines)-1 && lines[i+empty] == "" {
			empty++
		}
		if empty > mostEmpty {
			out = append(out, fold(w.Lines, "%d empty lines", empty))
			i += empty - 1
			continue
		}
		if lines[i] == "" && i > 0 && i == len(lines)-1 {
			out = append(out, breakSign)
			continue
		}
		out = append(out, wrap(w.pieces(lines[i], &found)))
	}
	return strings.Join(out, "\n"), found
}

// Line shows a text in a single line, for names and for sentences around the text that is judged.
func (w Words) Line(s string) (string, Found) {
	var b strings.Builder
	var found Found
	for s != "" {
		line, rest, more := strings.Cut(s, "\n")
		for _, p := range w.pieces(line, &found) {
			b.WriteString(p)
		}
		if !more {
			break
		}
		breaks := 1
		for strings.HasPrefix(rest, "\n") {
			rest = rest[1:]
			breaks++
		}
		if breaks > mostEmpty+1 {
			b.WriteString(breakSign + fold(w.Lines, "%d empty lines", breaks-1))
		} else {
			b.WriteString(strings.Repeat(breakSign, breaks))
		}
		s = rest
	}
	return b.String(), found
}

// Name shows a name or another short text in a single line.
func Name(s string) string {
	shown, _ := Words{}.Line(s)
	return shown
}

// fold returns the sign for n consecutive things.
func fold(word, english string, n int) string {
	if word == "" {
		word = english
	}
	return "⟨… " + fmt.Sprintf(word, n) + " …⟩"
}

// pieces returns one line as parts between which it may be broken.
func (w Words) pieces(line string, found *Found) []string {
	var out []string
	var before rune
	for line != "" {
		r, size := utf8.DecodeRuneInString(line)
		switch {
		case r == ' ':
			size = len(line) - len(strings.TrimLeft(line, " "))
			out = append(out, w.blanks(size, size == len(line))...)
		case r == utf8.RuneError && size == 1:
			out = append(out, fmt.Sprintf("⟨0x%02X⟩", line[0]))
			found.Invisible++
		case rightToLeft(r):
			var shown []string
			size, shown = span(line, found)
			out = append(out, shown...)
		case unicode.IsLetter(r):
			size = wordLength(line)
			out = append(out, word(line[:size], found)...)
		case strings.ContainsRune(wide, r) && east(script(before)):
			out = append(out, line[:size])
		default:
			out = append(out, single(r, found))
		}
		before, _ = utf8.DecodeLastRuneInString(line[:size])
		line = line[size:]
	}
	return out
}

// blanks shows a run of blanks; at the end of a line, each of them becomes a sign.
func (w Words) blanks(n int, last bool) []string {
	if n > mostBlanks {
		return []string{fold(w.Blanks, "%d blanks", n)}
	}
	sign := " "
	if last {
		sign = blankSign
	}
	out := make([]string, n)
	for i := range out {
		out[i] = sign
	}
	return out
}

// wrap breaks a line that is too long, at a blank if one is near.
func wrap(pieces []string) string {
	var b strings.Builder
	for {
		end := fitting(pieces)
		for _, p := range pieces[:end] {
			b.WriteString(p)
		}
		if pieces = pieces[end:]; len(pieces) == 0 {
			return b.String()
		}
		b.WriteString(goesOn + "\n")
	}
}

// fitting returns how many pieces the next line takes, at least one.
func fitting(pieces []string) int {
	used, blank, after := 0, 0, 0
	for i, p := range pieces {
		size := columns(p)
		if used+size > lineWidth && i > 0 {
			if blank > 0 && used-after <= wordWidth {
				return blank
			}
			return i
		}
		if used += size; p == " " {
			blank, after = i+1, used
		}
	}
	return len(pieces)
}

// columns returns the width of a piece in a monospaced font; it never underestimates.
func columns(p string) int {
	n := 0
	for _, r := range p {
		if n++; r >= 0x1100 {
			n++
		}
	}
	return n
}
