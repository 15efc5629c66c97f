package console_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/terminal/console"
)

func r(text string) console.Key { return console.Key{Name: console.Rune, Text: text} }

func ctrl(text string) console.Key { return console.Key{Name: console.Rune, Text: text, Ctrl: true} }

func TestKeys(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]console.Key{
		"aé漢":                           {r("a"), r("é"), r("漢")},
		"\x03\r\n\t\x7f":                {ctrl("c"), {Name: console.Enter}, ctrl("j"), {Name: console.Tab}, {Name: console.Backspace}},
		"\x1b[A\x1bOB\x1b[1;5D":         {{Name: console.Up}, {Name: console.Down}, {Name: console.Left, Ctrl: true}},
		"\x1b[3~\x1b[H\x1b[4~\x1b[Z":    {{Name: console.Delete}, {Name: console.Home}, {Name: console.End}, {Name: console.Tab, Shift: true}},
		"\x1b\r\x1bb":                   {{Name: console.Enter, Alt: true}, {Name: console.Rune, Text: "b", Alt: true}},
		"\x1b[13;2u\x1b[27;2;13~":       {{Name: console.Enter, Shift: true}, {Name: console.Enter, Shift: true}},
		"\x1b[200~a\r\nb\x1b[201~c":     {{Name: console.Paste, Text: "a\nb"}, r("c")},
		"\x1b[200~\x03y\x1b[A\x1b[201~": {{Name: console.Paste, Text: "y[A"}},
		"\x1b[?62;4c":                   {{Name: console.Reply}},
		"\x1b]11;rgb:0/0/0\x07x":        {r("x")},
		"\x1b[99;99xy":                  {r("y")},
		"\xffz":                         {r("z")},
	} {
		var d console.KeyDecoder
		if diff := cmp.Diff(want, d.Feed([]byte(in))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
		var bytewise console.KeyDecoder // the terminal may send a sequence in pieces
		var got []console.Key
		for i := range len(in) {
			got = append(got, bytewise.Feed([]byte{in[i]})...)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q byte by byte (-want +got):\n%s", in, diff)
		}
	}
}

func TestEscapeAlone(t *testing.T) {
	t.Parallel()
	var d console.KeyDecoder
	if got := d.Feed([]byte("\x1b")); len(got) != 0 || !d.Pending() {
		t.Fatalf("%v, pending %t", got, d.Pending())
	}
	if diff := cmp.Diff([]console.Key{{Name: console.Escape}}, d.Flush()); diff != "" || d.Pending() {
		t.Error(diff)
	}
	d.Feed([]byte("\x1b[200~half of a paste\x1b"))
	if d.Pending() {
		t.Error("an escape within a paste is taken for the key")
	}
}

// TestLongPaste: a paste of any length takes bounded memory, and ends where it ends.
func TestLongPaste(t *testing.T) {
	t.Parallel()
	var d console.KeyDecoder
	d.Feed([]byte("\x1b[200~"))
	for range 40 {
		d.Feed([]byte(strings.Repeat("x", 100<<10)))
	}
	got := d.Feed([]byte("\x1b[201~y"))
	if len(got) != 2 || len(got[0].Text) != console.MaxPaste || got[1] != r("y") {
		t.Errorf("%d keys, %d bytes", len(got), len(got[0].Text))
	}
}

// FuzzKeys: nothing that a terminal sends is taken for text that contains control characters, and what is pasted is
// never a key of its own.
func FuzzKeys(f *testing.F) {
	for _, seed := range []string{"a", "\x1b[A", "\x1b[200~x\x1b[201~", "\x1b\x1b[1;2R", "\x1b]0;t\x1b\\", "\x1bO", "\xe6\xbc", "\x1b[27;5;9~"} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, at int) {
		var d console.KeyDecoder
		cut := 0
		if len(data) > 0 {
			cut = max(0, at) % len(data)
		}
		list := append(d.Feed(data[:cut]), d.Feed(data[cut:])...)
		list = append(list, d.Flush()...)
		for _, k := range list {
			if !utf8.ValidString(k.Text) || console.CleanPaste(k.Text) != k.Text && !k.Ctrl {
				t.Errorf("%+v of %q", k, data)
			}
			if k.Name == "" {
				t.Errorf("a key without a name of %q", data)
			}
		}
		if len(list) > len(data)+1 {
			t.Errorf("%d keys of %d bytes", len(list), len(data))
		}
	})
}
