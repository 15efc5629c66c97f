package overflow_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools/overflow"
)

func TestCut(t *testing.T) {
	t.Parallel()
	const family = "👩‍👩‍👧‍👦" // seven code points, one character to the eye
	for name, test := range map[string]struct {
		text    string
		limit   int
		want    string
		dropped int
	}{
		"shorter":                 {"abc", 4, "abc", 0},
		"just fits":               {"äöüß", 4, "äöüß", 0},
		"one more":                {"abcde", 4, "ab\n[… 1 characters left out …]\nde", 1},
		"characters, not bytes":   {"äöüßé", 4, "äö\n[… 1 characters left out …]\nßé", 1},
		"an odd limit":            {"abcdefgh", 5, "ab\n[… 4 characters left out …]\ngh", 4},
		"one":                     {"abc", 1, "[… 3 characters left out …]\n", 3},
		"nothing":                 {"abc", 0, "[… 3 characters left out …]\n", 3},
		"less than nothing":       {"abc", -5, "[… 3 characters left out …]\n", 3},
		"empty":                   {"", 0, "", 0},
		"a line ends at the gap":  {"a\nbcd\ne", 4, "a\n[… 3 characters left out …]\n\ne", 3},
		"a combined letter":       {"ae\u0301bbbbbe\u0301a", 4, "a\n[… 9 characters left out …]\na", 9},
		"a family at both edges":  {"a" + family + "bbbb" + family + "z", 6, "a\n[… 18 characters left out …]\nz", 18},
		"flags":                   {"🇩🇪🇫🇷🇮🇹🇪🇸", 6, "🇩🇪\n[… 4 characters left out …]\n🇪🇸", 4},
		"windows line ends":       {"a\r\nbbb\r\nc", 4, "a\n[… 7 characters left out …]\nc", 7},
		"no text, but bytes":      {"ab\xff\xfecd\xffef", 4, "ab\n[… 4 characters left out …]\nef", 4},
		"bytes that fit":          {"a\xffb", 5, "a\uFFFDb", 0},
		"a letter of no script":   {"a" + strings.Repeat("\u0301", 3000), 10, "a\u0301\u0301\u0301\u0301\n[… 2991 characters left out …]\n" + strings.Repeat("\u0301", 5), 2991},
		"a text of one character": {strings.Repeat("世", 9), 8, strings.Repeat("世", 4) + "\n[… 1 characters left out …]\n" + strings.Repeat("世", 4), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, dropped := overflow.Cut(test.text, test.limit)
			if diff := cmp.Diff(test.want, got); diff != "" || dropped != test.dropped {
				t.Errorf("dropped %d, want %d; text (-want +got):\n%s", dropped, test.dropped, diff)
			}
		})
	}
}

// FuzzCut checks the limits of Cut: the result is text, no longer than allowed, and the shown and the omitted
// characters add up to the input.
func FuzzCut(f *testing.F) {
	for _, text := range []string{"", "abcdefghij", "a\r\nb\r\n", "🇩🇪🇫🇷🇮🇹", "e\u0301e\u0301e\u0301", "\xff\xfe\xfd", "👩‍👩‍👧‍👦👩‍👩‍👧‍👦", "[… 3 characters left out …]\n"} {
		for _, limit := range []int{-1, 0, 1, 4, 7} {
			f.Add(text, limit, 1)
		}
	}
	f.Add("e\u0301", 40, 700)
	f.Fuzz(func(t *testing.T, piece string, limit, times int) {
		text := strings.Repeat(piece, min(max(times, 0), 1000))
		whole := strings.ToValidUTF8(text, "\uFFFD")
		got, dropped := overflow.Cut(text, limit)
		switch total := utf8.RuneCountInString(whole); {
		case !utf8.ValidString(got):
			t.Fatalf("%q is no text", got)
		case utf8.RuneCountInString(got) > max(limit, 0)+overflow.Extra:
			t.Fatalf("%d characters with a limit of %d", utf8.RuneCountInString(got), limit)
		case total <= max(limit, 0):
			if got != whole || dropped != 0 {
				t.Fatalf("what fits was changed to %q", got)
			}
			return
		}
		checkEnds(t, whole, got, dropped)
	})
}

func checkEnds(t *testing.T, whole, got string, dropped int) {
	t.Helper()
	marker := fmt.Sprintf("[… %d characters left out …]\n", dropped)
	for at := 0; ; at++ { // the text itself may have such a line
		next := strings.Index(got[at:], marker)
		if next < 0 {
			t.Fatalf("%q has no place where head, %q and tail meet", got, marker)
		}
		at += next
		tail := got[at+len(marker):]
		for _, head := range []string{got[:at], strings.TrimSuffix(got[:at], "\n")} {
			if strings.HasPrefix(whole, head) && strings.HasSuffix(whole, tail) &&
				utf8.RuneCountInString(head)+dropped+utf8.RuneCountInString(tail) == utf8.RuneCountInString(whole) {
				return
			}
		}
	}
}

// leftOut reads the number in the marker of a text that was cut.
func leftOut(t *testing.T, text string) int {
	t.Helper()
	found := regexp.MustCompile(`\[… (\d+) characters left out …\]`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no marker in %q", text)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
