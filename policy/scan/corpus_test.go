package scan_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/scan"
)

// disguises rewrite a text of the corpus.
var disguises = map[string]func(string) string{
	"base64":  func(s string) string { return "Attachment: " + base64.StdEncoding.EncodeToString([]byte(s)) },
	"hex":     func(s string) string { return "dump " + hex.EncodeToString([]byte(s)) },
	"rot13":   rot13,
	"leet":    strings.NewReplacer("o", "0", "i", "1", "e", "3", "a", "4", "s", "5", "t", "7").Replace,
	"spaced":  func(s string) string { return apart(s) },
	"glued":   func(s string) string { return strings.ReplaceAll(s, " ", "") },
	"tags":    func(s string) string { return "Nice weather." + shift(s, 0xE0000) },
	"zero":    func(s string) string { return strings.Join(strings.Split(s, ""), "\u200b") },
	"reverse": func(s string) string { r := []rune(s); slices.Reverse(r); return string(r) },
	"looks":   strings.NewReplacer("o", "о", "e", "е", "i", "і", "a", "а", "p", "р").Replace,
	"wide":    func(s string) string { return strings.ReplaceAll(shift(s, 0xFEE0), "\uff00", "\u3000") },
	"percent": func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			b.WriteString("%" + hex.EncodeToString([]byte{s[i]}))
		}
		return b.String()
	},
}

func rot13(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}, s)
}

func apart(s string) string {
	var letters []string
	for word := range strings.FieldsSeq(s) {
		letters = append(letters, strings.Join(strings.Split(word, ""), " "))
	}
	return strings.Join(letters, "   ")
}

// html writes every byte as a code.
func html(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

func shift(s string, by rune) string {
	return strings.Map(func(r rune) rune { return r + by }, s)
}

// corpus reads the texts of a file of testdata/corpus.
func corpus(tb testing.TB, name string) []string {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "corpus", name+".txt"))
	if err != nil {
		tb.Fatal(err)
	}
	var texts []string
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n")[1:] {
		if how, rest, ok := strings.Cut(strings.TrimPrefix(line, "@"), " "); ok && strings.HasPrefix(line, "@") && disguises[how] != nil {
			line = disguises[how](rest)
		}
		texts = append(texts, strings.ReplaceAll(line, "⏎", "\n"))
	}
	return texts
}

// TestAttackCorpus pins how many of the texts are flagged; the figures stand in docs/security.md too. The held-out
// halves were written before any pattern was tuned, by the same hand: they say what the patterns are worth against
// attackers who write like us, and no more. SCAN_SHOW=hostile-tuning lists what is judged wrong.
func TestAttackCorpus(t *testing.T) {
	t.Parallel()
	hostile, innocent := [2]int{}, [2]int{}
	for _, c := range []struct {
		name  string
		flags int
		sum   *[2]int
	}{
		{"hostile-tuning", 148, &hostile},
		{"hostile-held", 131, &hostile},
		{"innocent-tuning", 0, &innocent},
		{"innocent-held", 1, &innocent},
	} {
		texts := corpus(t, c.name)
		flags := 0
		for _, text := range texts {
			found := scan.Flag(text)
			if len(found) > 0 {
				flags++
			}
			if os.Getenv("SCAN_SHOW") == c.name && (len(found) > 0) == strings.HasPrefix(c.name, "innocent") {
				t.Logf("%v %q", found, text)
			}
		}
		t.Logf("%s: %d of %d (%.1f %%)", c.name, flags, len(texts), 100*float64(flags)/float64(len(texts)))
		if flags != c.flags {
			t.Errorf("%s: %d texts are flagged, pinned are %d", c.name, flags, c.flags)
		}
		c.sum[0] += flags
		c.sum[1] += len(texts)
	}
	if hostile[1] < 300 || hostile[0]*100 < hostile[1]*70 {
		t.Errorf("%d of %d hostile texts are flagged: want 70 %% of at least 300", hostile[0], hostile[1])
	}
	if innocent[1] < 300 || innocent[0]*100 > innocent[1] {
		t.Errorf("%d of %d innocent texts are flagged: want at most 1 %% of at least 300", innocent[0], innocent[1])
	}
}
