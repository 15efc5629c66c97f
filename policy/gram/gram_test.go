package gram_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/gram"
)

func TestMay(t *testing.T) {
	t.Parallel()
	var s gram.Set
	s.Add("/srv/work/notes.txt")
	s.Add("ab")
	for text, want := range map[string]bool{
		"": true, "x": true, "zz": true, "notes": true, "work/notes.txt": true, "secret": false, "notez": false, "/srv/work/notes.txt and more": true,
		strings.Repeat("q", 100): false,
	} {
		if got := s.May(gram.Of(text)); got != want && (want || !strings.HasPrefix(text, "/srv")) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// FuzzMay: what is in a text is never missed.
func FuzzMay(f *testing.F) {
	f.Add("some text", 2, 5)
	f.Add("\xff\x00ab", 0, 4)
	f.Fuzz(func(t *testing.T, text string, from, to int) {
		if from < 0 || to > len(text) || from > to {
			return
		}
		var s gram.Set
		s.Add(text)
		if !s.May(gram.Of(text[from:to])) {
			t.Errorf("%q is not found in %q", text[from:to], text)
		}
	})
}
