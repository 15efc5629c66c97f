package visible_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/zephbot/zephbot/bot/visible"
)

var signs = regexp.MustCompile(`⟨[^⟩]*⟩`)

// exact reads the text back from what is shown, and fails for what no text is shown as.
func exact(t *testing.T, shown string, lines bool) string {
	t.Helper()
	shown = strings.ReplaceAll(shown, "↩\n", "")
	shown = strings.NewReplacer("⟨U+27E9 ⟩⟩", "⟨U+27E9⟩", "⟨U+27E8 ⟨⟩", "⟨U+27E8⟩").Replace(shown)
	shown = strings.NewReplacer("⟨rtl ", "", " ltr⟩", "").Replace(shown)
	if lines {
		shown = strings.TrimSuffix(shown, "␊")
	}
	shown = regexp.MustCompile(`⟨… (\d+) empty lines …⟩(\n?)`).ReplaceAllStringFunc(shown, func(s string) string {
		n, _ := strconv.Atoi(regexp.MustCompile(`\d+`).FindString(s))
		return strings.Repeat("\n", n)
	})
	shown = strings.ReplaceAll(shown, "␊", "\n")
	return signs.ReplaceAllStringFunc(pictures(shown), func(s string) string {
		body := strings.TrimSuffix(strings.TrimPrefix(s, "⟨"), "⟩")
		switch {
		case strings.HasPrefix(body, "U+"):
			code, _, _ := strings.Cut(body[2:], " ")
			n, err := strconv.ParseInt(code, 16, 32)
			if err != nil {
				t.Fatalf("sign %q: %v", s, err)
			}
			return string(rune(n))
		case strings.HasPrefix(body, "0x"):
			n, err := strconv.ParseUint(body[2:], 16, 8)
			if err != nil {
				t.Fatalf("sign %q: %v", s, err)
			}
			return string([]byte{byte(n)})
		case strings.HasPrefix(body, "… "):
			n, err := strconv.Atoi(strings.Fields(body)[1])
			if err != nil {
				t.Fatalf("sign %q: %v", s, err)
			}
			return strings.Repeat(" ", n)
		case unicode.Scripts[body] != nil:
			return ""
		}
		t.Fatalf("nothing is shown as %q", s)
		return ""
	})
}

// pictures turns signs of one character back, outside of signs in brackets.
func pictures(shown string) string {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(shown); {
		r, size := utf8.DecodeRuneInString(shown[i:])
		switch {
		case r == '⟨':
			depth++
			b.WriteRune(r)
		case r == '⟩':
			depth--
			b.WriteRune(r)
		case depth == 0 && r >= '␀' && r <= '␟':
			b.WriteByte(byte(r - '␀'))
		case depth == 0 && r == '␠':
			b.WriteByte(' ')
		case depth == 0 && r == '␡':
			b.WriteByte(0x7F)
		default:
			b.WriteString(shown[i : i+size])
		}
		i += size
	}
	return b.String()
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, want string
		found            visible.Found
	}{
		{"plain", "ls -la | grep 'ä' # “so” – 日本語 привет", "ls -la | grep 'ä' # “so” – 日本語 привет", visible.Found{}},
		{"escape", "a\x1b[2Kb", "a␛[2Kb", visible.Found{Invisible: 1}},
		{"tab", "if x:\n\ty()", "if x:\n␉y()", visible.Found{}},
		{"carriage return", "rm -rf ~\rls", "rm -rf ~␍ls", visible.Found{Invisible: 1}},
		{"nul and delete", "\x00\x7f", "␀␡", visible.Found{Invisible: 2}},
		{"c1", "\u009b2J", "⟨U+009B⟩2J", visible.Found{Invisible: 1}},
		{"override", "a\u202eb", "a⟨U+202E⟩b", visible.Found{Invisible: 1}},
		{"isolates", "\u2066a\u2069", "⟨U+2066⟩a⟨U+2069⟩", visible.Found{Invisible: 2}},
		{"zero width", "r\u200bm", "r⟨U+200B⟩m", visible.Found{Invisible: 1}},
		{"tags", "ok\U000E0041", "ok⟨U+E0041⟩", visible.Found{Invisible: 1}},
		{"filler", "a\u3164b", "a⟨U+3164⟩b", visible.Found{Invisible: 1}},
		{"braille blank", "a\u2800b", "a⟨U+2800⟩b", visible.Found{Invisible: 1}},
		{"variation", "a\ufe00b", "a⟨U+FE00⟩b", visible.Found{Invisible: 1}},
		{"other blanks", "a\u00a0b\u3000c", "a⟨U+00A0⟩b⟨U+3000⟩c", visible.Found{Invisible: 2}},
		{"line separator", "a\u2028b", "a⟨U+2028⟩b", visible.Found{Invisible: 1}},
		{"no UTF-8", "a\xffb", "a⟨0xFF⟩b", visible.Found{Invisible: 1}},
		{"private use", "a\ue000", "a⟨U+E000⟩", visible.Found{Invisible: 1}},
		{"Cyrillic in Latin", "p\u0430ypal", "p⟨U+0430 а⟩ypal", visible.Found{Alike: 1}},
		{"at the end", "payp\u0430", "payp⟨U+0430 а⟩", visible.Found{Alike: 1}},
		{"Greek in Latin", "gith\u03c5b", "gith⟨U+03C5 υ⟩b", visible.Found{Alike: 1}},
		{"all Cyrillic", "cat \u0441\u043e\u0440\u0443", "cat ⟨Cyrillic⟩сору", visible.Found{Alike: 1}},
		{"Cherokee", "\u13da\u13a2", "⟨Cherokee⟩ᏚᎢ", visible.Found{Alike: 1}},
		{"full width", "\uff52m", "⟨U+FF52 ｒ⟩m", visible.Found{Alike: 1}},
		{"full width sign", "a\uff1bb", "a⟨U+FF1B ；⟩b", visible.Found{Alike: 1}},
		{"mathematical", "\U0001d5bbm", "⟨U+1D5BB 𝖻⟩m", visible.Found{Alike: 1}},
		{"phonetic", "b\u0251sh", "b⟨U+0251 ɑ⟩sh", visible.Found{Alike: 1}},
		{"Chinese", "echo 你好，世界！", "echo 你好，世界！", visible.Found{}},
		{"slash", "a\u2215b", "a⟨U+2215 ∕⟩b", visible.Found{Alike: 1}},
		{"hyphen", "\u2010rf", "⟨U+2010 ‐⟩rf", visible.Found{Alike: 1}},
		{"decomposed", "a\u0308", "a⟨U+0308⟩", visible.Found{Invisible: 1}},
		{"stacked", "e\u0334\u0335", "e⟨U+0334⟩⟨U+0335⟩", visible.Found{Invisible: 2}},
		{"signs in the text", "⟨300 blanks⟩␛", "⟨U+27E8 ⟨⟩300 blanks⟨U+27E9 ⟩⟩⟨U+241B ␛⟩", visible.Found{Alike: 3}},
		{"many blanks", "ls" + strings.Repeat(" ", 300) + "; rm x", "ls⟨… 300 blanks …⟩; rm x", visible.Found{}},
		{"few blanks", "ls    -l", "ls    -l", visible.Found{}},
		{"blanks at the end", "ls \\ \nx", "ls \\␠\nx", visible.Found{}},
		{"empty lines", "a" + strings.Repeat("\n", 301) + "b", "a\n⟨… 300 empty lines …⟩\nb", visible.Found{}},
		{"few empty lines", "a\n\n\nb", "a\n\n\nb", visible.Found{}},
		{"break at the end", "a\n", "a\n␊", visible.Found{}},
		{"right to left", "cp \u05d0\u05d1 12 \u05d2", "cp ⟨rtl אב ltr⟩ 12 ⟨rtl ג ltr⟩", visible.Found{}},
		{
			"long line", strings.Repeat("x", 100),
			strings.Repeat("x", 72) + "↩\n" + strings.Repeat("x", 28),
			visible.Found{},
		},
		{
			"long line of words", strings.Repeat("word ", 20) + "end",
			strings.Repeat("word ", 14) + "↩\n" + strings.Repeat("word ", 6) + "end",
			visible.Found{},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, found := visible.Words{}.Text(c.text)
			if got != c.want || found != c.found {
				t.Errorf("got  %q %+v\nwant %q %+v", got, found, c.want, c.found)
			}
			check(t, c.text)
		})
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"Ann, 14:22\n✅ Approved by Ben", "Ann, 14:22␊✅ Approved by Ben"},
		{"a\n\n\n\n\nb", "a␊⟨… 4 empty lines …⟩b"},
		{"Ann\u202e", "Ann⟨U+202E⟩"},
		{"", ""},
	} {
		if got := visible.Name(c.text); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
	german := visible.Words{Blanks: "%d Leerzeichen", Lines: "%d leere Zeilen"}
	if got, _ := german.Line(strings.Repeat(" ", 20) + "x"); got != "⟨… 20 Leerzeichen …⟩x" {
		t.Errorf("got %q", got)
	}
}

// check holds what is shown against the promises: nothing invisible, nothing out of sight, and the exact text can be
// read back.
func check(t *testing.T, text string) {
	t.Helper()
	many, _ := visible.Words{}.Text(text)
	one, _ := visible.Words{}.Line(text)
	if strings.Contains(one, "\n") {
		t.Fatalf("%q is several lines: %q", text, one)
	}
	for i, shown := range []string{many, one} {
		if !utf8.ValidString(shown) {
			t.Fatalf("%q: %q is no UTF-8", text, shown)
		}
		if !norm.NFC.IsNormalString(shown) {
			t.Fatalf("%q: %q can be written in another way", text, shown)
		}
		for _, r := range shown {
			if r != '\n' && (!unicode.IsGraphic(r) || unicode.Is(unicode.Zs, r) && r != ' ' || unicode.In(r, unicode.Cf, unicode.Variation_Selector)) {
				t.Fatalf("%q: %q still has %U", text, shown, r)
			}
		}
		if got := exact(t, shown, i == 0); got != text {
			t.Fatalf("shown as %q\nread   %q\nwant   %q", shown, got, text)
		}
	}
	for line := range strings.SplitSeq(many, "\n") {
		if n := utf8.RuneCountInString(line); n > 400 { // a span of words from right to left is not broken
			t.Fatalf("a line of %d characters: %q", n, line)
		}
		if strings.HasSuffix(line, " ") {
			t.Fatalf("a blank at the end of %q", line)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{
		"", "ls", "\n", " \n \n\n\n\n", "a\u0308\u200d\u202e", "⟨U+0041⟩", "p\u0430y \u05d0\u05d1 \u05d2  1", "␊", "↩\n", "\u1100\u1161", "\xff\xfe", "e\u0334",
		"\u0915\u093f\u0902", "\u09c7\u09be", "\u0627\u064b\u0653", "日本語ー", "\U0001f1e9\U0001f1ea\u2640\ufe0f", "\ufb50\u0660", "x\u05d0 \u0301",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) < 4096 {
			check(t, s)
		}
	})
}

func TestControls(t *testing.T) {
	t.Parallel()
	if got, want := visible.Controls("a\x1b]0;x\a\tb\n\u202ec\xff 日本\r\u009b"), "a␛]0;x␇\tb\n⟨U+202E⟩c⟨0xFF⟩ 日本␍⟨U+009B⟩"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
