package policy_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy"
)

func TestGlob(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, text string
		fold, want    bool
	}{
		{"git *", "git status", false, true},
		{"git *", "git ", false, true},
		{"git *", "git", false, false},
		{"git *", "legit x", false, false},
		{"*", "", false, true},
		{"**", "a\nb/c", false, true},
		{"a*b", "ab", false, true},
		{"a*b", "a/x\ny/b", false, true},
		{"a*a", "a", false, false},
		{"ab*bc", "abc", false, false},
		{"*abc*", "xxabcyy", false, true},
		{"*a*b*c", "1a2b3c", false, true},
		{"*a*b*c", "1b2a3c", false, false},
		{"*a*b", "ab ab a", false, false},
		{"?", "é", false, true},
		{"?", "", false, false},
		{"?", "ab", false, false},
		{"?b*", "b", false, false},
		{"*?", "", false, false},
		{"*?", "x", false, true},
		{"*?x?*", "axb", false, true},
		{"*?x?*", "xb", false, false},
		{"a?c", "abc", false, true},
		{"[abc]", "b", false, true},
		{"[abc]", "d", false, false},
		{"[!abc]", "d", false, true},
		{"[!abc]", "a", false, false},
		{"[a-c]x", "bx", false, true},
		{"[]]", "]", false, true},
		{"[!]]", "]", false, false},
		{"[a-]", "-", false, true},
		{"[*]", "*", false, true},
		{"[*]", "a", false, false},
		{"*[ab]", "xb", false, true},
		{"*[ab]", "xc", false, false},
		{"\\*", "\\x", false, true},
		{"{a,b}", "a", false, false},
		{"{a,b}", "{a,b}", false, true},
		{"ABC", "abc", false, false},
		{"ABC", "aBc", true, true},
		{"*É*", "xéx", true, true},
		{"[A-C]", "b", true, true},
		{"[a-c]", "B", true, true},
		{"[!A]", "a", true, false},
		{"[ſ]", "s", true, true},
		{"K?", "\u212ax", true, true},
		{"?", "\xff", false, true},
		{"\ufffd?", "\xffx", false, false},
		{"\ufffd", "\ufffd", false, true},
	}
	for _, tt := range tests {
		g, err := policy.CompileGlob(tt.pattern, tt.fold)
		if err != nil {
			t.Errorf("%q: %v", tt.pattern, err)
			continue
		}
		if got := g.Match(tt.text); got != tt.want {
			t.Errorf("%q matches %q: %t", tt.pattern, tt.text, got)
		}
		if g.String() != tt.pattern {
			t.Errorf("String %q of %q", g, tt.pattern)
		}
	}
}

func TestGlobErrors(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"": "empty", "[": "not closed", "[]": "not closed", "[!": "not closed", "[!]": "not closed", "x[ab": "at byte 1",
		"[^a]": "negated by [!…]", "[c-a]": "wrong way round", "\xff": "UTF-8",
	} {
		if _, err := policy.CompileGlob(pattern, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", pattern, err, want)
		}
	}
}

func TestQuoteGlob(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"ls *.go", "a[b]?c", "é", "[", "]", "a\nb", "!x", "[^a]", "[!a]"} {
		g, err := policy.CompileGlob(policy.QuoteGlob(text), false)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if !g.Match(text) || g.Match(text+"x") || g.Match("x"+text) {
			t.Errorf("%q as %q", text, policy.QuoteGlob(text))
		}
	}
}

func TestGlobDoesNotAllocate(t *testing.T) {
	globs := make([]*policy.Glob, 0, 4)
	for _, p := range []string{"*sudo*", "git *", "*?x[ab]*", "a?c"} {
		g, err := policy.CompileGlob(p, true)
		if err != nil {
			t.Fatal(err)
		}
		globs = append(globs, g)
	}
	text := strings.Repeat("git status; xb ", 50)
	if n := testing.AllocsPerRun(100, func() {
		for _, g := range globs {
			g.Match(text)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzGlob compares the matcher with the same pattern as an expression.
func FuzzGlob(f *testing.F) {
	f.Add("git *", "git status", false)
	f.Add("*a?[b-d]*[!x]", "zaqcyy", false)
	f.Add("[]A]*", "]a", true)
	f.Add("*ab*ab*", "abab", true)
	f.Add("?\ufffd", "\xff\ufffd", false)
	f.Fuzz(func(t *testing.T, pattern, text string, fold bool) {
		g, err := policy.CompileGlob(pattern, fold)
		if err != nil {
			return
		}
		if fold {
			// TestGlob has separate rows for folding beyond ASCII.
			if strings.ContainsFunc(pattern+text, func(r rune) bool { return r >= utf8.RuneSelf }) || strings.Contains(pattern, "[") {
				return
			}
			pattern, text = strings.ToLower(pattern), strings.ToLower(text)
		}
		if !utf8.ValidString(text) && strings.ContainsRune(pattern, utf8.RuneError) {
			return // the expression takes a broken byte for U+FFFD
		}
		re, err := regexp.Compile(expression(pattern))
		if err != nil {
			t.Skip(err)
		}
		if got, want := g.Match(text), re.MatchString(text); got != want {
			t.Fatalf("%q matches %q: %t, the expression %v says %t", pattern, text, got, re, want)
		}
	})
}

// expression translates a valid glob.
func expression(pattern string) string {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	runes := []rune(pattern)
	for i := 0; i < len(runes); i++ {
		switch runes[i] {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteString(".")
		case '[':
			i++
			b.WriteString("[")
			if runes[i] == '!' {
				i++
				b.WriteString("^")
			}
			for first := true; first || runes[i] != ']'; first = false {
				fmt.Fprintf(&b, `\x{%x}`, runes[i])
				if i+2 < len(runes) && runes[i+1] == '-' && runes[i+2] != ']' {
					fmt.Fprintf(&b, `-\x{%x}`, runes[i+2])
					i += 2
				}
				i++
			}
			b.WriteString("]")
		default:
			b.WriteString(regexp.QuoteMeta(string(runes[i])))
		}
	}
	return b.String() + `\z`
}
