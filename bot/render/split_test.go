package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/bot/render"
)

func texts(list []render.Message) []string {
	var out []string
	for _, m := range list {
		out = append(out, m.Text)
	}
	return out
}

func TestSplitPrefersGoodPlaces(t *testing.T) {
	t.Parallel()
	long := func(word string, n int) string { return strings.TrimSpace(strings.Repeat(word+" ", n)) }
	a, b := long("alpha", 400), long("beta", 400) // 2399 and 1999 units
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"paragraph", a + "\n\n" + b, []string{a, b}},
		{"line", a + "\n" + b, []string{a, b}},
		{"paragraph before line", a + "\n\nx\n" + b, []string{a, "x\n" + b}},
		{"word", long("gamma", 1000), []string{long("gamma", 682), long("gamma", 318)}},
		{"word rather than a tiny message", "x\n" + long("gamma", 1000), []string{"x\n" + long("gamma", 682), long("gamma", 318)}},
		{"nothing to break at", strings.Repeat("x", 5000), []string{strings.Repeat("x", 4096), strings.Repeat("x", 904)}},
		{"surrogate pair at the edge", "a" + strings.Repeat("😀", 3000), []string{"a" + strings.Repeat("😀", 2047), strings.Repeat("😀", 953)}},
		{"joined emoji at the edge", strings.Repeat("x", 4090) + "👩‍👩‍👧‍👦y", []string{strings.Repeat("x", 4090), "👩‍👩‍👧‍👦y"}},
		{"combining mark at the edge", strings.Repeat("x", 4095) + "e\u0301y", []string{strings.Repeat("x", 4095), "e\u0301y"}},
		{"one character longer than a message", "a" + strings.Repeat("\u0301", 5000), []string{"a" + strings.Repeat("\u0301", 4095), strings.Repeat("\u0301", 905)}},
		{"exactly full", strings.Repeat("x", 4096), []string{strings.Repeat("x", 4096)}},
		{"full and a paragraph", strings.Repeat("x", 4096) + "\n\ny", []string{strings.Repeat("x", 4096), "y"}},
		{"full and a word", strings.Repeat("x", 4096) + " y", []string{strings.Repeat("x", 4096), "y"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for name, got := range map[string][]render.Message{"Markdown": render.Markdown(c.in), "Plain": render.Plain(c.in)} {
				if diff := cmp.Diff(c.want, texts(got)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func TestSplitClipsEntities(t *testing.T) {
	t.Parallel()
	words := strings.TrimSpace(strings.Repeat("word ", 1500))
	for _, c := range []struct{ name, in, kind string }{
		{"bold", "**" + words + "**", "bold"},
		{"link", "[" + words + "](https://x.org)", "text_link"},
		{"quote", "> " + words, "expandable_blockquote"},
		{"fence", "```go\n" + strings.ReplaceAll(words, "word word ", "word word\n") + "\n```", "pre"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := render.Markdown(c.in)
			if len(got) != 2 {
				t.Fatalf("%d messages, want 2", len(got))
			}
			for _, m := range got {
				wellFormed(t, m)
				if len(m.Entities) != 1 || m.Entities[0].Type != c.kind || part(m, m.Entities[0]) != m.Text {
					t.Errorf("entities %+v, want one %s over the whole text", m.Entities, c.kind)
				}
				if c.kind == "pre" && m.Entities[0].Language != "go" {
					t.Errorf("language %q is lost", m.Entities[0].Language)
				}
			}
		})
	}
}

func TestSplitByEntities(t *testing.T) {
	t.Parallel()
	var src, want strings.Builder
	for i := range 250 {
		fmt.Fprintf(&src, "**b%d** `c%d` ", i, i)
		fmt.Fprintf(&want, "b%d c%d ", i, i)
	}
	got := render.Markdown(src.String())
	count := 0
	for _, m := range got {
		wellFormed(t, m)
		count += len(m.Entities)
	}
	if len(got) != 5 || count != 500 {
		t.Errorf("%d messages with %d entities, want 5 with 500", len(got), count)
	}
	if text := strings.Join(texts(got), " "); text != strings.TrimSpace(want.String()) {
		t.Errorf("text changed: %s", text)
	}
}

func TestSplitByEntityBytes(t *testing.T) {
	t.Parallel()
	link := "[a](https://x.org/" + strings.Repeat("p", 1900) + ") "
	got := render.Markdown(strings.Repeat(link, 20))
	if len(got) != 5 {
		t.Errorf("%d messages, want 5 of four links each", len(got))
	}
	for _, m := range got {
		wellFormed(t, m)
		if len(m.Entities) != 4 {
			t.Errorf("%d links in a message, want 4", len(m.Entities))
		}
	}
	tooLong := render.Markdown("[a](https://x.org/" + strings.Repeat("p", 2048) + ")")
	if len(tooLong) != 1 || len(tooLong[0].Entities) != 0 || render.Length(tooLong[0].Text) != 2048+len("a (https://x.org/)") {
		t.Errorf("a URL too long for a link is not shown as text: %+v", tooLong)
	}
}

// pieces returns the parts of a code block, one for each message.
func pieces(t failer, list []render.Message, lang string) []string {
	t.Helper()
	var out []string
	for _, m := range list {
		wellFormed(t, m)
		for _, e := range m.Entities {
			if e.Type == "pre" {
				if e.Language != lang {
					t.Fatalf("language %q, want %q", e.Language, lang)
				}
				out = append(out, part(m, e))
			}
		}
	}
	return out
}

// TestCodeSurvivesSplitting: code whose lines fit into a message is cut at line ends
// only, and the parts joined with newlines are the code, empty lines and all.
func TestCodeSurvivesSplitting(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"", "x", "  indented(code) { 😀 }", "\treturn nil, err", "**a** <b> &amp; [l](u) `q`", strings.Repeat("long line ", 40) + "end", "漢字"})
		lines := rapid.SliceOfN(line, 1, 400).Draw(t, "lines")
		code := "first\n" + strings.Join(lines, "\n") + "\nlast"
		before := strings.Repeat("intro ", rapid.IntRange(0, 1200).Draw(t, "before"))
		got := pieces(t, render.Markdown(before+"\n\n```go\n"+code+"\n```\n\nafter"), "go")
		if want := strings.ReplaceAll(code, "\t", "    "); strings.Join(got, "\n") != want {
			t.Fatalf("code changed: %s", cmp.Diff(want, strings.Join(got, "\n")))
		}
	})
}

// TestLongLineOfCode: a line longer than a message is cut inside, and nothing is lost.
func TestLongLineOfCode(t *testing.T) {
	t.Parallel()
	for _, line := range []string{strings.Repeat("a😀", 4000), strings.Repeat("ab  c ", 2000) + "."} {
		got := pieces(t, render.Markdown("```json\n"+line+"\n```"), "json")
		if len(got) < 3 || strings.Join(got, "") != line {
			t.Errorf("%d parts, joined equal: %v", len(got), strings.Join(got, "") == line)
		}
	}
}

// answer is a long answer with everything models like, of at least n bytes.
func answer(n int) string {
	var b strings.Builder
	for i := 1; b.Len() < n; i++ {
		fmt.Fprintf(&b, "## Step %d: *check* the `config`\n\nThe **quick** brown 🦊 reads [the docs](https://example.org/%d) and https://example.org.\n\n", i, i)
		fmt.Fprintf(&b, "1. First _thing_ with `code %d`\n   - nested ~~wrong~~ right\n   - [x] done\n2. Second\n\n> Note: do not forget.\n\n", i)
		fmt.Fprintf(&b, "```go\nfunc f%d() error {\n\tif err != nil {\n\t\treturn fmt.Errorf(\"step: %%w\", err)\n\t}\n\n\treturn nil\n}\n```\n\n", i)
		fmt.Fprintf(&b, "| Key | Value |\n|---|---:|\n| a%d | %d |\n| b | 漢字 |\n\n", i, i*i)
	}
	return b.String()
}

func TestLongAnswer(t *testing.T) {
	t.Parallel()
	src := answer(20_000)
	got := render.Markdown(src)
	all := strings.Join(texts(got), "\n\n")
	if len(got) < 4 || len(got) > 8 {
		t.Errorf("%d messages for 20 000 characters", len(got))
	}
	last := 0
	for i := 1; strings.Contains(src, fmt.Sprintf("## Step %d:", i)); i++ {
		at := strings.Index(all, fmt.Sprintf("Step %d: check the config", i))
		if at < last {
			t.Fatalf("step %d is missing or out of order", i)
		}
		if !strings.Contains(all[at:], fmt.Sprintf("func f%d() error {\n    if err != nil {", i)) {
			t.Errorf("code of step %d is missing", i)
		}
		last = at
	}
	for _, m := range got {
		wellFormed(t, m)
		if strings.TrimSpace(m.Text) != m.Text {
			t.Errorf("white space at the ends of %q", m.Text)
		}
	}
}

// TestHostileNesting: deep or endless structures give messages, not a stack overflow
// or an answer a hundred times as long.
func TestHostileNesting(t *testing.T) {
	t.Parallel()
	deep := ""
	for i := range 60 {
		deep += strings.Repeat("  ", i) + "- x\n"
	}
	for name, src := range map[string]string{
		"quotes":    strings.Repeat("> ", 300) + "x",
		"lists":     deep,
		"brackets":  strings.Repeat("[", 3000),
		"stars":     strings.Repeat("*a **b ", 500),
		"links":     strings.Repeat("[a](", 1000),
		"backticks": strings.Repeat("`` ` ", 1000),
		"html":      strings.Repeat("<a ", 1000),
		"images":    strings.Repeat("![", 500) + "a" + strings.Repeat("](b)", 500),
		"badges":    strings.Repeat("[![a", 200) + strings.Repeat("](http://x.y)](http://x.y)", 200),
		"columns":   strings.Repeat("|a", 500) + "\n" + strings.Repeat("|-", 500) + "\n" + strings.Repeat("|b\n", 200),
		"wide cell": "|a|b|\n|-|-|\n|" + strings.Repeat("x", 5000) + "|y|\n" + strings.Repeat("|x|y|\n", 100),
		"defs":      strings.Repeat("[a]: b\n", 1000),
		"dollars":   strings.Repeat("$$\na\n", 20_000),
		"formulas":  strings.Repeat("$a ", 20_000),
		"spoilers":  strings.Repeat("||a", 2000),
		"huge":      strings.Repeat("word ", 60_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			total := 0
			for _, m := range render.Markdown(src) {
				wellFormed(t, m)
				total += len(m.Text)
			}
			if total == 0 || total > 20*len(src) {
				t.Errorf("%d bytes of text from %d of source", total, len(src))
			}
			wellFormed(t, render.Partial(src))
		})
	}
}

func BenchmarkMarkdown(b *testing.B) {
	src := answer(4096)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		render.Markdown(src)
	}
}

func BenchmarkPartial(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			src := answer(size)
			b.ReportAllocs()
			for b.Loop() {
				render.Partial(src)
			}
		})
	}
}

// TestSplit: a message that fits stays as it is, and one that was put together again from its parts has all its text and
// is formatted as before.
func TestSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := rapid.SliceOf(rapid.SampledFrom([]string{"word ", "🙂", "**bold** ", "`code` ", "\n", "\n\n", "[link](https://example.org) ", "||hidden|| ", "x"})).Draw(t, "src")
		for _, m := range render.Markdown(strings.Join(src, "")) {
			if got := render.Split(m); len(got) != 1 || !cmp.Equal(got[0], m) {
				t.Fatalf("%+v\nbecomes\n%+v", m, got)
			}
			long := m
			for range 200 {
				long = long.Above(m)
			}
			text, code := "", 0
			for _, part := range render.Split(long) {
				if render.Length(part.Text) > render.MaxLength || len(part.Entities) > render.MaxEntities {
					t.Fatalf("a part has %d units and %d entities", render.Length(part.Text), len(part.Entities))
				}
				text += part.Text
				code += len(part.Entities)
			}
			if strings.Join(strings.Fields(text), "") != strings.Join(strings.Fields(long.Text), "") || code < len(long.Entities) {
				t.Fatalf("%d entities of %d, or text is lost", code, len(long.Entities))
			}
		}
	})
}
