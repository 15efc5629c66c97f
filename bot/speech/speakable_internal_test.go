package speech

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSpeakable(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		markdown, want string
		left           bool
	}{
		"marks":         {"This is **bold**, `short` and [a link](https://example.com/x).", "This is bold, short and a link.", false},
		"address":       {"See https://www.example.com/a?b=c, or http://x.org.", "See example.com, or x.org.", false},
		"code":          {"Run it:\n\n```sh\nrm -rf /\n```\n\nDone.", "Run it:\n\nDone.", true},
		"table":         {"Costs:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThat is all.", "Costs:\n\nThat is all.", true},
		"rule":          {"One\n\n---\n\nTwo", "One\n\nTwo", false},
		"only code":     {"```\nx\n```", "", true},
		"nothing":       {" \n", "", false},
		"signs":         {"👍 …", "", false},
		"German":        {"Übrigens: „Schön“ kostet 3 €.", "Übrigens: „Schön“ kostet 3 €.", false},
		"list":          {"- one\n- two", "• one\n• two", false},
		"heading":       {"# Title\n\nText", "Title\n\nText", false},
		"emoji kept":    {"Fine 🙂\n\n```\n🙂\n```\nNext", "Fine 🙂\n\nNext", true},
		"code at start": {"```\nx\n```\nNext", "Next", true},
	} {
		text, whole := speakableText(row.markdown)
		if text != row.want || whole == row.left {
			t.Errorf("%s: %q, whole %t", name, text, whole)
		}
	}
}

// TestCut: a long text ends with a sentence, else between words, and is never longer than what is spoken.
func TestCut(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ text, end string }{
		"sentences":   {strings.Repeat("Vier Wörter sind das. ", 200), "das."},
		"words":       {strings.Repeat("wort ", 800), "wort…"},
		"no spaces":   {strings.Repeat("ß", 5000), "ß…"},
		"paragraphs":  {strings.Repeat(strings.Repeat("a", 1200)+"\n", 3), "a"},
		"Chinese":     {strings.Repeat("这是一句话。", 600), "。"},
		"one decimal": {strings.Repeat("3.14 ", 800), "3.14…"},
	} {
		text, whole := speakableText(row.text)
		if whole || utf8.RuneCountInString(text) > mostSpoken+1 || !strings.HasSuffix(text, row.end) {
			t.Errorf("%s: %d characters, whole %t, ends with %q", name, utf8.RuneCountInString(text), whole, text[max(0, len(text)-20):])
		}
	}
}

func FuzzSpeakable(f *testing.F) {
	for _, seed := range []string{"a **b** `c`", "```\nx\n```", "| a |\n|---|\n| b |", "https://x.y/z", "\xff🙂"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, markdown string) {
		text, _ := speakableText(markdown)
		if utf8.RuneCountInString(text) > mostSpoken+1 || !utf8.ValidString(text) || strings.TrimSpace(text) != text {
			t.Errorf("%q", text)
		}
	})
}
