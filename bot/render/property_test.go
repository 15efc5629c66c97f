package render_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/bot/render"
)

// failer is what testing.T, testing.F's T and rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// wellFormed checks what Telegram asks of a message.
func wellFormed(t failer, m render.Message) {
	t.Helper()
	units := utf16.Encode([]rune(m.Text))
	switch {
	case !utf8.ValidString(m.Text):
		t.Fatalf("text is not UTF-8: %q", m.Text)
	case len(units) != render.Length(m.Text) || len(units) > render.MaxLength:
		t.Fatalf("%d units, Length says %d", len(units), render.Length(m.Text))
	case len(m.Entities) > render.MaxEntities || m.Entities == nil:
		t.Fatalf("%d entities, nil: %v", len(m.Entities), m.Entities == nil)
	case strings.ContainsAny(m.Text, "\x00\r\t"):
		t.Fatalf("control characters in %q", m.Text)
	}
	weight := 0
	for i, e := range m.Entities {
		weight += len(e.URL) + len(e.Language)
		inside(t, m, units, e)
		for _, o := range m.Entities[:i] {
			compatible(t, o, e)
		}
	}
	if weight > 9000 {
		t.Fatalf("entities of %d bytes", weight)
	}
}

// inside checks one entity against the text.
func inside(t failer, m render.Message, units []uint16, e render.Entity) {
	t.Helper()
	end := e.Offset + e.Length
	if e.Offset < 0 || e.Length <= 0 || end > len(units) {
		t.Fatalf("%+v outside of %d units", e, len(units))
	}
	low := func(at int) bool { return at < len(units) && units[at] >= 0xDC00 && units[at] <= 0xDFFF }
	covered := part(m, e)
	block := strings.Contains(e.Type, "blockquote") || e.Type == "pre" || e.Type == "code"
	switch {
	case low(e.Offset), low(end):
		t.Fatalf("%+v cuts a surrogate pair", e)
	case strings.TrimSpace(covered) == "":
		t.Fatalf("%+v covers nothing", e)
	case (e.Type == "text_link") != (e.URL != ""), e.Language != "" && e.Type != "pre":
		t.Fatalf("fields of %+v", e)
	case !block && strings.TrimSpace(covered) != covered:
		t.Fatalf("%+v has white space at its ends: %q", e, covered)
	}
}

// compatible checks an entity against one before it in order: disjoint, or inside
// it where Telegram allows that.
func compatible(t failer, outer, inner render.Entity) {
	t.Helper()
	end := outer.Offset + outer.Length
	switch {
	case inner.Offset < outer.Offset:
		t.Fatalf("not sorted: %+v, %+v", outer, inner)
	case inner.Offset >= end:
	case inner.Offset+inner.Length > end:
		t.Fatalf("overlap: %+v, %+v", outer, inner)
	case outer.Type == "code" || outer.Type == "pre":
		t.Fatalf("%+v in code %+v", inner, outer)
	case strings.Contains(inner.Type, "blockquote") && strings.Contains(outer.Type, "blockquote"):
		t.Fatalf("nested quotes: %+v, %+v", outer, inner)
	case (inner.Type == "code" || inner.Type == "pre") && !strings.Contains(outer.Type, "blockquote"):
		t.Fatalf("code %+v in %+v", inner, outer)
	case inner.Type == outer.Type:
		t.Fatalf("nested in its own kind: %+v, %+v", outer, inner)
	}
}

// fragments are put together into sources that come close to what models write, and worse.
func fragments() *rapid.Generator[string] {
	pieces := []string{
		"word ", "long-word", "*", "**", "_", "~~", "`", "``", "```", "```go\n", "\n", "\n\n", "  \n", "# ", "- ", "  - ", "1. ", "- [x] ", "> ", ">> ",
		"[a](https://x.org/b)", "[a](", "](x)", "![i](http://y.z)", "[", "]", "<b>", "</b>", "<!--", "&amp;", "&#x1F600;", "\\", "|", "|-|-|\n", "|a|b|\n",
		"---\n", "===\n", "    ", "\t", "😀", "👩‍👩‍👧‍👦", "e\u0301", "שלום ", "漢字", "\u202E", "\x00", "\xff", "https://x.org/?q=1 ", "a@b.cd ", "[r]: http://r.s\n", "[r]", "<br>", "~~~\n",
		"||", "$", "$$", "$$\n", "\\(", "\\)", "\\[\n", "\\]", "__init__", "2*3", "x:",
	}
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for _, p := range rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 60).Draw(t, "pieces") {
			b.WriteString(p)
		}
		s := b.String()
		if times := rapid.IntRange(0, 40).Draw(t, "times"); times > 30 {
			s = strings.Repeat(s, times)
		}
		return s
	})
}

func everything(t failer, src string) {
	t.Helper()
	for _, list := range [][]render.Message{render.Markdown(src), render.Plain(src)} {
		for _, m := range list {
			wellFormed(t, m)
			if strings.TrimSpace(m.Text) == "" {
				t.Fatalf("blank message of %q", src)
			}
		}
	}
	wellFormed(t, render.Partial(src))
}

func TestEverythingIsWellFormed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { everything(t, fragments().Draw(t, "source")) })
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"**a** `b`", "```go\nx\n```", "> a\n> > b", "|a|b|\n|-|-|\n|1|2|", "- [ ] a\n  1. b", "[x](tg://user?id=1)", "||a|| $b_c$ \\(d\\)\n$$\n+ x\n$$", "__init__ 2*3*4 **x:**y", "😀*😀*", "&#xD83D;\x00\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > 64<<10 {
			t.Skip("longer than any answer")
		}
		everything(t, src)
	})
}

// TestLettersAreKept: whatever the marks between them mean, letters and digits arrive, each in its place.
func TestLettersAreKept(t *testing.T) {
	t.Parallel()
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return r
			}
			return -1
		}, s)
	}
	pieces := rapid.SampledFrom([]string{
		"a", "bc", "2", "Über", "漢字", " ", "\n", "\n\n", "*", "**", "_", "__", "c~~", "||", "$", "$$", "\n$$\n", "\\(", "\\)", "\\[", "\\]", "`", ":", ".", "(", ")", "|", "\n|a|b|\n|-|-|\n|", "> ", "- ", "+ ",
	})
	rapid.Check(t, func(t *rapid.T) {
		src := strings.Join(rapid.SliceOfN(pieces, 0, 50).Draw(t, "pieces"), "")
		var got strings.Builder
		for _, m := range render.Markdown(src) {
			got.WriteString(m.Text)
		}
		if letters(got.String()) != letters(src) {
			t.Fatalf("letters of %q became %q", src, got.String())
		}
	})
}

func TestCutIsShortEnough(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, limit := fragments().Draw(t, "text"), rapid.IntRange(-1, 200).Draw(t, "limit")
		got := render.Cut(s, limit)
		if render.Length(got) > max(0, limit) || !utf8.ValidString(got) {
			t.Fatalf("Cut to %d gives %d units: %q", limit, render.Length(got), got)
		}
		if whole := strings.ToValidUTF8(s, "\uFFFD"); !strings.HasPrefix(whole, strings.TrimSuffix(got, "…")) {
			t.Fatalf("%q is not the beginning of %q", got, whole)
		}
	})
}

// TestPlainKeepsText: nothing but white space at the cuts is lost.
func TestPlainKeepsText(t *testing.T) {
	t.Parallel()
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.RuneFrom([]rune("ab .\n😀漢é")), 0, 9000, -1).Draw(t, "text")
		var got strings.Builder
		for _, m := range render.Plain(s) {
			got.WriteString(m.Text)
		}
		if squeeze(got.String()) != squeeze(s) {
			t.Fatalf("text changed")
		}
	})
}
