package console

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// KeyName is a key that is not a character.
type KeyName string

// The keys. Rune and Paste carry text.
const (
	Rune      KeyName = "rune"
	Paste     KeyName = "paste"
	Enter     KeyName = "enter"
	Tab       KeyName = "tab"
	Backspace KeyName = "backspace"
	Escape    KeyName = "escape"
	Up        KeyName = "up"
	Down      KeyName = "down"
	Left      KeyName = "left"
	Right     KeyName = "right"
	Home      KeyName = "home"
	End       KeyName = "end"
	Delete    KeyName = "delete"
	PageUp    KeyName = "page_up"
	PageDown  KeyName = "page_down"
	Reply     KeyName = "reply" // the terminal's answer to a question of ours (primary device attributes)
)

// Key is one key press, or one paste.
type Key struct {
	Name  KeyName
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

// KeyDecoder turns what a terminal sends into keys: characters, named keys with their modifiers, and pasted text. It
// understands what xterm and its relatives send (ECMA-48 CSI and SS3 sequences, bracketed paste, CSI u and
// modifyOtherKeys). What it does not know is dropped and never taken as text. Its zero value is ready for use by one
// goroutine.
type KeyDecoder struct {
	rest    []byte // an unfinished sequence or character
	pasting bool
	pasted  []byte
}

// Feed decodes the next bytes of the stream. What is unfinished is kept for the next call.
func (d *KeyDecoder) Feed(data []byte) []Key {
	d.rest = append(d.rest, data...)
	var list []Key
	for len(d.rest) > 0 {
		if d.pasting {
			k, whole := d.collectPaste()
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
		k, n, known := decodeKey(d.rest)
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
func (d *KeyDecoder) Pending() bool { return !d.pasting && len(d.rest) > 0 && d.rest[0] == escape }

// Flush returns what waits as keys: Escape, and what came after it.
func (d *KeyDecoder) Flush() []Key {
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

// collectPaste collects a paste until its end.
func (d *KeyDecoder) collectPaste() (k Key, whole bool) {
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
	text := CleanPaste(string(d.pasted))
	d.pasting, d.pasted = false, nil
	return Key{Name: Paste, Text: text}, true
}

// CleanPaste returns text as an editor can hold it: valid UTF-8 with \n as its line ends, tabs as blanks, and
// without other control characters.
func CleanPaste(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", "    ").Replace(strings.ToValidUTF8(text, "\uFFFD"))
	return strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return -1
		}
		return r
	}, text)
}

// decodeKey reads one key from the beginning of data. n is 0 if more is needed; known is false for what is dropped.
func decodeKey(data []byte) (k Key, n int, known bool) {
	switch c := data[0]; {
	case c == escape:
		return decodeEscape(data)
	case c < ' ' || c == 0x7f:
		return controlKey(c), 1, true
	}
	if !utf8.FullRune(data) {
		return Key{}, 0, false
	}
	r, n := utf8.DecodeRune(data)
	text := CleanPaste(string(r))
	return Key{Name: Rune, Text: text}, n, text != "" && (r != utf8.RuneError || n > 1)
}

// controlKey returns the key of a control character.
func controlKey(c byte) Key {
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
		return decodeSequence(data)
	case 'O':
		if len(data) == 2 {
			return Key{}, 0, false
		}
		k, known = letterKey(data[2], 1)
		return k, 3, known
	case ']', 'P', '_', '^', 'X':
		return skipString(data)
	case escape:
		return Key{Name: Escape}, 1, true
	}
	k, n, known = decodeKey(data[1:])
	if n == 0 {
		return Key{}, 0, false
	}
	k.Alt = true
	return k, n + 1, known
}

// skipString skips a string that the terminal sends (OSC, DCS …) up to its end.
func skipString(data []byte) (k Key, n int, known bool) {
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

// decodeSequence decodes ESC [ parameters final.
func decodeSequence(data []byte) (k Key, n int, known bool) {
	for i := 2; i < len(data); i++ {
		c := data[i]
		switch {
		case c >= 0x40 && c <= 0x7e:
			k, known = namedKey(string(data[2:i]), c)
			return k, i + 1, known
		case c < 0x20 || c > 0x7e || i > maxSequence: // not a sequence: drop what looked like one
			return Key{}, i, false
		}
	}
	return Key{}, 0, false
}

// tildeKey has the keys of ESC [ number ~.
func tildeKey(number int) (KeyName, bool) {
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

// namedKey returns the key of a sequence.
func namedKey(params string, final byte) (Key, bool) {
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
			return codedKey(code, modifier, err == nil)
		}
		name, ok := tildeKey(number)
		return modifyKey(Key{Name: name}, modifier), ok
	case 'u':
		return codedKey(number, modifier, true)
	case 'Z':
		return Key{Name: Tab, Shift: true}, true
	}
	return letterKey(final, modifier)
}

// codedKey returns the key of a character code with modifiers.
func codedKey(code, modifier int, ok bool) (Key, bool) {
	if !ok || code <= 0 || code > unicode.MaxRune {
		return Key{}, false
	}
	if code < ' ' || code == 0x7f {
		return modifyKey(controlKey(byte(code)), modifier), true
	}
	text := CleanPaste(string(rune(code)))
	return modifyKey(Key{Name: Rune, Text: text}, modifier), text != ""
}

func letterKey(final byte, modifier int) (Key, bool) {
	names := map[byte]KeyName{'A': Up, 'B': Down, 'C': Right, 'D': Left, 'H': Home, 'F': End, 'M': Enter}
	name, ok := names[final]
	return modifyKey(Key{Name: name}, modifier), ok
}

// modifyKey adds modifiers, encoded as one more than a set of bits: 1 Shift, 2 Alt, 4 Ctrl.
func modifyKey(k Key, modifier int) Key {
	bits := modifier - 1
	k.Shift = k.Shift || bits&1 != 0 && k.Name != Rune
	k.Alt = k.Alt || bits&2 != 0
	k.Ctrl = k.Ctrl || bits&4 != 0
	return k
}
