package search

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestTerms: words are found by how they begin, whatever their accents, letters' sizes and forms, in any script.
func TestTerms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		query, text string
		want        bool
	}{
		{"heron", "We call it Heron.", true},
		{"heron", "the HERONS fly", true},
		{"eron", "Heron", false},
		{"resume", "my résumé", true},
		{"résumé", "my resume", true},
		{"strasse", "In der Straße", true},
		{"STRAẞE", "strasse", true},
		{"Łódź", "lodz", true},
		{"ёлка", "елка", true},
		{"решение", "Решения", false}, // another ending within the word
		{"решени", "Решения", true},
		{"ΟΔΟΣ", "οδός", true},
		{"日本", "来週日本へ行く", true},
		{"ปลา", "ฉันกินปลาทุกวัน", true},
		{"heron", "日本heron", true},
		{"שלום", "שָׁלוֹם", true},
		{"ﬁne", "fine", true},
		{"soft", "so\u00ADft", true},
		{"हिन्दी", "हिन्दी में", true},
		{"हिन्दा", "हिन्दी", false}, // vowel signs are letters
		{"c++", "in C++ or Go", true},
		{"#42,", "issue 42", true},
		{`"blue heron"`, "a Blue heron", true},
		{`"blue heron"`, "a heron, blue", false},
		{"„blauer Reiher“", "Der blaue Reiher", false},
		{"x", "a\x00x", true},
	} {
		terms := parseQuery(c.query)
		if len(terms) != 1 {
			t.Errorf("%q: terms %v", c.query, terms)
			continue
		}
		if got := matchTerms(terms, c.text) == 1; got != c.want {
			t.Errorf("%q in %q: %t", c.query, c.text, got)
		}
	}
	for query, want := range map[string]int{"": 0, " ?! ": 0, "a b A b": 2, `one "two three" four`: 3, `""`: 0, "\u00AD": 0} {
		if got := parseQuery(query); len(got) != want {
			t.Errorf("%q: %v, want %d", query, got, want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 100)
	for _, c := range []struct {
		query, text, want string
		most              int
	}{
		{"heron", "We\ncall it\tHeron", "We call it [Heron]", 99},
		{"resume", "my re\u0301sume\u0301!", "my [re\u0301sume\u0301]!", 99},
		{"strasse weg", "Weg zur Straße", "[Weg] zur [Straße]", 99},
		{"heron", long + "Heron " + long, "… word [Heron] word word word …", 30},
		{"heron", "Heron " + long, "[Heron] word word word word …", 30},
		{"heron", long + "Heron", "… word [Heron]", 30},
		{"日本", strings.Repeat("語", 50) + "日本", "… 語語語[日本]", 10},
		{"none", long, "word word word word word word …", 30},
		{"blue bluebell", "bluebell", "[bluebell]", 30},
	} {
		part, hits := excerptOf(c.text, parseQuery(c.query), c.most)
		var b strings.Builder
		last := 0
		for _, h := range hits {
			b.WriteString(part[last:h.from] + "[" + part[h.from:h.to] + "]")
			last = h.to
		}
		b.WriteString(part[last:])
		if b.String() != c.want {
			t.Errorf("%q in %.40q: %q, want %q", c.query, c.text, b.String(), c.want)
		}
	}
}

// FuzzExcerpt: whatever is searched in whatever, excerpts are short and their hits are inside, in order.
func FuzzExcerpt(f *testing.F) {
	f.Add("heron x", "Héron\xff ẞ x", 5)
	f.Add("日 “a b”", "a b 日\u0301\u00AD", 1)
	f.Fuzz(func(t *testing.T, query, text string, most int) {
		most = max(1, min(most, 500))
		part, hits := excerptOf(text, parseQuery(query), most)
		if n := utf8.RuneCountInString(part); !utf8.ValidString(part) || n > most+4 {
			t.Errorf("%d characters, %q", n, part)
		}
		last := -1
		for _, h := range hits {
			if h.from <= last || h.to <= h.from || h.to > len(part) || !utf8.ValidString(part[h.from:h.to]) {
				t.Errorf("hits %v in %q", hits, part)
			}
			last = h.to
		}
	})
}
