package offline

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTonguesAreWhole: each language has every sentence that another one has, with values of the same kinds, and every
// noun in its forms; its examples are understood.
func TestTonguesAreWhole(t *testing.T) {
	t.Parallel()
	gaps := regexp.MustCompile(`%(?:\[\d\])?[sd]`)
	first := tongues[0].said()
	for i := range tongues {
		language := &tongues[i]
		s := language.said()
		for _, key := range slices.Sorted(maps.Keys(first.Sentences)) {
			said := s.Sentences[key]
			if said == "" || strings.Contains(said, "%") && !strings.Contains(said, "%[") &&
				!slices.Equal(gaps.FindAllString(said, -1), gaps.FindAllString(key, -1)) {
				t.Errorf("%d: %q: %q", i, key, said)
			}
		}
		if len(s.Sentences) != len(first.Sentences) || len(s.Nouns) != len(first.Nouns) {
			t.Errorf("%d: %d sentences, %d nouns", i, len(s.Sentences), len(s.Nouns))
		}
		for noun, forms := range s.Nouns {
			for n := range 30 {
				if language.plural(n) >= len(forms) {
					t.Errorf("%d: %d of %s", i, n, noun)
				}
			}
		}
		for _, e := range language.examples {
			if inEnglish(e.text) == e.text || tongueOf(e.text) != language {
				t.Errorf("%d: %q is not understood", i, e.text)
			}
		}
	}
}
