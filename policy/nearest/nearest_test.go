package nearest_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/nearest"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 64)
	tests := []struct {
		name  string
		word  string
		known []string
		want  string
		ok    bool
	}{
		{"same word", "timeout", []string{"timeouts", "timeout"}, "timeout", true},
		{"case does not count", "TIMEOUT", []string{"timeout"}, "timeout", true},
		{"known keeps its spelling", "readme", []string{"ReadMe"}, "ReadMe", true},
		{"one letter missing", "timeot", []string{"token", "timeout"}, "timeout", true},
		{"one letter too many", "timeoutt", []string{"timeout"}, "timeout", true},
		{"one letter wrong", "timeoux", []string{"timeout"}, "timeout", true},
		{"swapped neighbours are one step", "tmo", []string{"tom"}, "tom", true},
		{"swap at the start", "otken", []string{"token"}, "token", true},
		{"swap is not counted twice", "ba", []string{"ab"}, "ab", true},
		{"closest wins", "stat", []string{"stop", "start", "state"}, "start", true},
		{"closer later word wins", "statuss", []string{"statu", "status"}, "status", true},
		{"first of equals wins", "hat", []string{"cat", "bat"}, "cat", true},
		{"letters of other alphabets", "ключч", []string{"ключ"}, "ключ", true},
		{"three steps in a long word", "max_tool_iteratns", []string{"max_tool_iterations"}, "max_tool_iterations", true},
		{"four steps are too many", "max_tool_iterat", []string{"max_tool_iterations"}, "", false},
		{"two steps are too many for a short word", "abc", []string{"axx"}, "", false},
		{"much shorter known word", "concurrency", []string{"con"}, "", false},
		{"much longer known word", "con", []string{"concurrency"}, "", false},
		{"nothing known", "x", nil, "", false},
		{"empty word", "", []string{"a"}, "", false},
		{"empty known word", "a", []string{""}, "", false},
		{"longest word", long[:63], []string{long}, long, true},
		{"too long", long + "a", []string{long}, "", false},
		{"far too long", strings.Repeat("a", 300), []string{long}, "", false},
		{"far too long known word", long, []string{strings.Repeat("a", 300)}, "", false},
		{"invalid bytes", "to\xffken", []string{"token"}, "token", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := nearest.Nearest(tt.word, tt.known)
			if got != tt.want || ok != tt.ok {
				t.Errorf("Nearest(%q, %q) = %q, %v; want %q, %v", tt.word, tt.known, got, ok, tt.want, tt.ok)
			}
		})
	}
}

func FuzzNearest(f *testing.F) {
	f.Add("timeot", "timeout", "token")
	f.Add("", "", "")
	f.Add("\xff", "ÿ", "y")
	f.Fuzz(func(t *testing.T, word, a, b string) {
		got, ok := nearest.Nearest(word, []string{a, b})
		if ok && got != a && got != b {
			t.Errorf("Nearest(%q) = %q, which is not one of the known words", word, got)
		}
		if !ok && got != "" {
			t.Errorf("Nearest(%q) = %q without ok", word, got)
		}
		if word != "" && len([]rune(word)) <= 64 && len(word) <= 256 {
			if got, ok := nearest.Nearest(word, []string{word}); !ok || got != word {
				t.Errorf("Nearest(%q) does not find itself: %q, %v", word, got, ok)
			}
		}
	})
}
