package cli

import (
	"strings"
	"testing"

	"rsc.io/qr"

	"github.com/zephbot/zephbot/bot/access"
)

// TestDrawCode: what is drawn has all modules of the code, and its margin, with and without colours.
func TestDrawCode(t *testing.T) {
	t.Parallel()
	code, err := qr.Encode(access.Link("zephbot", "ABCDEFGH23456777"), qr.L)
	if err != nil {
		t.Fatal(err)
	}
	for _, coloured := range []bool{false, true} {
		text := drawCode(code, coloured)
		if strings.Contains(text, "\x1b") != coloured {
			t.Errorf("colours %v: %q", coloured, text[:20])
		}
		lines := strings.Split(strings.TrimSuffix(strings.NewReplacer("\x1b[97;40m", "", "\x1b[0m", "").Replace(text), "\n"), "\n")
		for y := -quietZone; y < code.Size+quietZone; y++ {
			row := []rune(lines[(y+quietZone)/2])
			if len(row) != code.Size+2*quietZone {
				t.Fatalf("line %d has %d modules", y, len(row))
			}
			for x := -quietZone; x < code.Size+quietZone; x++ {
				bright := map[rune][2]bool{'█': {true, true}, '▀': {true, false}, '▄': {false, true}, ' ': {false, false}}
				if got := bright[row[x+quietZone]][(y+quietZone)%2]; got == code.Black(x, y) {
					t.Fatalf("module %d, %d is bright: %v", x, y, got)
				}
			}
		}
	}
}

// TestWrapWords: lines are broken between words, and neither a word nor a link inside.
func TestWrapWords(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text    string
		columns int
		want    string
	}{
		{"one two three", 0, "one two three"},
		{"one two three", 7, "one two\nthree"},
		{"one two three", 8, "one two\nthree"},
		{"one two\nthree four\n", 9, "one two\nthree\nfour\n"},
		{"see https://t.me/zephbot?start=A here", 10, "see\nhttps://t.me/zephbot?start=A\nhere"},
		{"  • item of", 8, "  • item\nof"},
		{"   2  Open AI\n  12  another server, such as vLLM\n", 20, "   2  Open AI\n  12  another\n      server, such\n      as vLLM\n"},
		{"Token (not shown): ", 12, "Token (not\nshown): "},
		{"日本 語", 4, "日本\n語"},
	} {
		if got := wrapWords(row.text, row.columns); got != row.want {
			t.Errorf("%q at %d: %q, want %q", row.text, row.columns, got, row.want)
		}
	}
}
