// Package keys turns what a terminal sends into keys: characters, named keys with their modifiers, and pasted text. It
// understands what xterm and its relatives send (ECMA-48 CSI and SS3 sequences, bracketed paste, CSI u and
// modifyOtherKeys). What it does not know is dropped and never taken as text.
package keys

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Name is a key that is not a character.
type Name string

// The keys. Rune and Paste carry text.
const (
	Rune      Name = "rune"
	Paste     Name = "paste"
	Enter     Name = "enter"
	Tab       Name = "tab"
	Backspace Name = "backspace"
	Escape    Name = "escape"
	Up        Name = "up"
	Down      Name = "down"
	Left      Name = "left"
	Right     Name = "right"
	Home      Name = "home"
	End       Name = "end"
	Delete    Name = "delete"
	PageUp    Name = "page_up"
	PageDown  Name = "page_down"
	Reply     Name = "reply" // the terminal's answer to a question of ours (primary device attributes)
)

// Key is one key press, or one paste.
type Key struct {
	Name  Name
	Text  string // of Rune: one character; of Paste: what was pasted, with \n as its line ends
	Ctrl  bool   // with Rune: Text is the letter
	Alt   bool
	Shift bool // of named keys; a character has it already
}

// Limits of what is kept of unfinished input, in bytes.
const (
	// MaxPaste limits one paste; the rest of a longer one is dropped.
	MaxPaste    = 1 << 20
	maxSequence = 64
)

const (
	escape     = 0x1b
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// Decoder decodes a stream. Its zero value is ready for use by one goroutine.
type Decoder struct {
	rest    []byte // an unfinished sequence or character
	pasting bool
	pasted  []byte
}

// Feed decodes the next bytes of the stream. What is unfinished is kept for the next call.
func (d *Decoder) Feed(data []byte) []Key {
	d.rest = append(d.rest, data...)
	var list []Key
	for len(d.rest) > 0 {
		if d.pasting {
			k, whole := d.paste()
			if !whole {
				break
			}
			list = append(list, k)
			continue
		}
		if bytes.HasPrefix(d.rest, []byte(pasteBegin)) {
			d.rest = d.rest[len(pasteBegin):]
			d.pasting = true
			continue
		}
		k, n, known := decode(d.rest)
		if n == 0 {
			break
		}
		d.rest = d.rest[n:]
		if known {
			list = append(list, k)
		}
	}
	if len(d.rest) == 0 {
		d.rest = nil
	}
	return list
}

// Pending reports whether an escape waits for what follows it. If nothing follows within some ten milliseconds, it was
// the key: call Flush.
func (d *Decoder) Pending() bool { return !d.pasting && len(d.rest) > 0 && d.rest[0] == escape }

// Flush returns what waits as keys: Escape, and what came after it.
func (d *Decoder) Flush() []Key {
	if !d.Pending() {
		return nil
	}
	rest := d.rest[1:]
	d.rest = nil
	if len(rest) > 0 { // the beginning of a sequence whose end never came
		return []Key{{Name: Escape}}
	}
	return append([]Key{{Name: Escape}}, d.Feed(rest)...)
}

// paste collects a paste until its end.
func (d *Decoder) paste() (k Key, whole bool) {
	body, rest, whole := bytes.Cut(d.rest, []byte(pasteEnd))
	if !whole { // keep what may be the beginning of the end
		keep := 0
		for n := min(len(d.rest), len(pasteEnd)-1); n > 0; n-- {
			if bytes.HasSuffix(d.rest, []byte(pasteEnd[:n])) {
				keep = n
				break
			}
		}
		body, rest = d.rest[:len(d.rest)-keep], d.rest[len(d.rest)-keep:]
	}
	d.pasted = append(d.pasted, body[:min(len(body), MaxPaste-len(d.pasted))]...)
	d.rest = append([]byte(nil), rest...)
	if !whole {
		return Key{}, false
	}
	text := Clean(string(d.pasted))
	d.pasting, d.pasted = false, nil
	return Key{Name: Paste, Text: text}, true
}

// Clean returns text as an editor can hold it: valid UTF-8 with \n as its line ends, tabs as blanks, and without other
// control characters.
func Clean(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", "    ").Replace(strings.ToValidUTF8(text, "\uFFFD"))
	return strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return -1
		}
		return r
	}, text)
}

// decode reads one key from the beginning of data. n is 0 if more is needed; known is false for what is dropped.
func decode(data []byte) (k Key, n int, known bool) {
	switch c := data[0]; {
	case c == escape:
		return decodeEscape(data)
	case c < ' ' || c == 0x7f:
		return control(c), 1, true
	}
	if !utf8.FullRune(data) {
		return Key{}, 0, false
	}
	r, n := utf8.DecodeRune(data)
	text := Clean(string(r))
	return Key{Name: Rune, Text: text}, n, text != "" && (r != utf8.RuneError || n > 1)
}

// control returns the key of a control character.
func control(c byte) Key {
	switch c {
	case '\r':
		return Key{Name: Enter}
	case '\t':
		return Key{Name: Tab}
	case 0x7f, '\b':
		return Key{Name: Backspace}
	case escape:
		return Key{Name: Escape}
	case 0:
		return Key{Name: Rune, Text: " ", Ctrl: true}
	}
	return Key{Name: Rune, Text: string(rune(c + '`')), Ctrl: true} // \x01 is Ctrl-a; 0x1c to 0x1f become | } ~ DEL
}

func decodeEscape(data []byte) (k Key, n int, known bool) {
	if len(data) == 1 {
		return Key{}, 0, false
	}
	switch data[1] {
	case '[':
		return sequence(data)
	case 'O':
		if len(data) == 2 {
			return Key{}, 0, false
		}
		k, known = letter(data[2], 1)
		return k, 3, known
	case ']', 'P', '_', '^', 'X':
		return swallow(data)
	case escape:
		return Key{Name: Escape}, 1, true
	}
	k, n, known = decode(data[1:])
	if n == 0 {
		return Key{}, 0, false
	}
	k.Alt = true
	return k, n + 1, known
}

// swallow skips a string that the terminal sends (OSC, DCS …) up to its end.
func swallow(data []byte) (k Key, n int, known bool) {
	for i := 2; i < len(data); i++ {
		switch {
		case data[i] == 7:
			return Key{}, i + 1, false
		case data[i] == '\\' && data[i-1] == escape:
			return Key{}, i + 1, false
		}
	}
	if len(data) > maxSequence*maxSequence { // its end is lost
		return Key{}, len(data), false
	}
	return Key{}, 0, false
}

// sequence decodes ESC [ parameters final.
func sequence(data []byte) (k Key, n int, known bool) {
	for i := 2; i < len(data); i++ {
		c := data[i]
		switch {
		case c >= 0x40 && c <= 0x7e:
			k, known = named(string(data[2:i]), c)
			return k, i + 1, known
		case c < 0x20 || c > 0x7e || i > maxSequence: // not a sequence: drop what looked like one
			return Key{}, i, false
		}
	}
	return Key{}, 0, false
}

// tilde has the keys of ESC [ number ~.
func tilde(number int) (Name, bool) {
	switch number {
	case 1, 7:
		return Home, true
	case 4, 8:
		return End, true
	case 3:
		return Delete, true
	case 5:
		return PageUp, true
	case 6:
		return PageDown, true
	}
	return "", false
}

// named returns the key of a sequence.
func named(params string, final byte) (Key, bool) {
	if final == 'c' && strings.HasPrefix(params, "?") {
		return Key{Name: Reply}, true
	}
	number, modifier := 1, 1
	fields := strings.Split(params, ";")
	if v, err := strconv.Atoi(fields[0]); err == nil {
		number = v
	}
	if len(fields) > 1 {
		field, _, _ := strings.Cut(fields[1], ":")
		if v, err := strconv.Atoi(field); err == nil {
			modifier = v
		}
	}
	switch final {
	case '~':
		if number == 27 && len(fields) == 3 { // modifyOtherKeys
			code, err := strconv.Atoi(fields[2])
			return coded(code, modifier, err == nil)
		}
		name, ok := tilde(number)
		return modified(Key{Name: name}, modifier), ok
	case 'u':
		return coded(number, modifier, true)
	case 'Z':
		return Key{Name: Tab, Shift: true}, true
	}
	return letter(final, modifier)
}

// coded returns the key of a character code with modifiers.
func coded(code, modifier int, ok bool) (Key, bool) {
	if !ok || code <= 0 || code > unicode.MaxRune {
		return Key{}, false
	}
	if code < ' ' || code == 0x7f {
		return modified(control(byte(code)), modifier), true
	}
	text := Clean(string(rune(code)))
	return modified(Key{Name: Rune, Text: text}, modifier), text != ""
}

func letter(final byte, modifier int) (Key, bool) {
	names := map[byte]Name{'A': Up, 'B': Down, 'C': Right, 'D': Left, 'H': Home, 'F': End, 'M': Enter}
	name, ok := names[final]
	return modified(Key{Name: name}, modifier), ok
}

// modified adds modifiers, encoded as one more than a set of bits: 1 Shift, 2 Alt, 4 Ctrl.
func modified(k Key, modifier int) Key {
	bits := modifier - 1
	k.Shift = k.Shift || bits&1 != 0 && k.Name != Rune
	k.Alt = k.Alt || bits&2 != 0
	k.Ctrl = k.Ctrl || bits&4 != 0
	return k
}
