package render_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/bot/render"
)

// A formula that is complete opens nothing.
func TestPartialFormula(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"so $a__m*b$ and", "so \\(a__m*b\\) **and", "$$x*y_1$$"} {
		want := strings.ReplaceAll(src, "**", "")
		if got := render.Partial(src).Text; got != want {
			t.Errorf("%q became %q", src, got)
		}
	}
}

func TestPartialClosesWhatIsOpen(t *testing.T) {
	t.Parallel()
	for _, c := range []example{
		{"nothing open", "a **b** c", "a b c", []string{"bold b"}},
		{"bold", "a **bold te", "a bold te", []string{"bold bold te"}},
		{"bold with space", "a **bold ", "a bold", []string{"bold bold"}},
		{"half closed", "a **bold*", "a bold", []string{"bold bold"}},
		{"just opened", "a **", "a", nil},
		{"italic", "a *it", "a it", []string{"italic it"}},
		{"both", "***x y", "x y", []string{"bold x y", "italic x y"}},
		{"nested", "**a *b", "a b", []string{"bold a b", "italic b"}},
		{"inner closed", "**a *b* c", "a b c", []string{"bold a b c", "italic b"}},
		{"spoiler stays hidden while it grows", "it was ||the but", "it was the but", []string{"spoiler the but"}},
		{"or", "a || b", "a || b", nil},
		{"underscore", "see __This", "see This", []string{"bold This"}},
		{"strike", "~~no", "no", []string{"strikethrough no"}},
		{"code", "run `ls -l", "run ls -l", []string{"code ls -l"}},
		{"code in bold", "**run `ls", "run ls", []string{"bold run", "code ls"}},
		{"stars in code", "run `a **b` and", "run a **b and", []string{"code a **b"}},
		{"only a tick", "run `", "run", nil},
		{"fence", "a\n```go\nx := 1", "a\n\nx := 1", []string{"pre x := 1 (go)"}},
		{"half a closing fence", "```\nx\n``", "x", []string{"pre x"}},
		{"fence without code", "a\n```go", "a", nil},
		{"half an opening fence", "a\n``", "a", nil},
		{"stars in a fence", "```\na **b", "a **b", []string{"pre a **b"}},
		{"quote", "> **a", "a", []string{"blockquote a", "bold a"}},
		{"link target", "see [the docs](https://exam", "see the docs", nil},
		{"link done", "see [docs](https://x.org)", "see docs", []string{"text_link docs → https://x.org"}},
		{"bullet to come", "text\n-", "text", nil},
		{"number to come", "- a\n2.", "• a", nil},
		{"open in an item before", "- **a\n- b", "• **a\n• b", nil},
		{"open in an item", "- a\n- **b", "• a\n• b", []string{"bold b"}},
		{"open in a paragraph before", "**a\n\nb", "**a\n\nb", nil},
		{"no emphasis", "2 * 3 and count(*) of a_b", "2 * 3 and count(*) of a_b", nil},
		{"escaped", `\*a and \` + "`b", "*a and `b", nil},
		{"only a marker", "##", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := render.Partial(c.in)
			wellFormed(t, got)
			if diff := cmp.Diff(c.text, got.Text); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.entities, describe(got)); diff != "" {
				t.Errorf("entities (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPartialKeepsTheNewest(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("some words in a line\n", 1000)
	for _, c := range []struct{ name, in, front, end string }{
		{"lines", lines + "the end", "…\nsome words", "the end"},
		{"one line", strings.Repeat("word ", 3000) + "the end", "…word", "the end"},
		{"no spaces", strings.Repeat("😀", 4000) + "x", "…😀", "😀x"},
		{"code", "```go\n" + lines + "x := 1", "…\nsome words", "x := 1"},
		{"much longer than a frame", strings.Repeat(lines, 5) + "the end", "…\nsome words", "the end"},
		{"much code", "intro\n\n```go\n" + strings.Repeat(lines, 5) + "x := 1", "…\nsome words", "x := 1"},
		{"many entities", strings.Repeat("**a** `b`\n", 300) + "the end", "…\na b", "the end"},
		{"little text of a long source", strings.Repeat("[a](https://x.org/"+strings.Repeat("p", 1900)+")\n", 20), "…\na", "a\na\na"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := render.Partial(c.in)
			wellFormed(t, got)
			if !strings.HasPrefix(got.Text, c.front) || !strings.HasSuffix(got.Text, c.end) {
				t.Errorf("got %.40q … %q, want %q … %q", got.Text, got.Text[max(0, len(got.Text)-40):], c.front, c.end)
			}
			if strings.HasPrefix(c.in, "```") || strings.Contains(c.in, "\n```") {
				if want := strings.TrimPrefix(got.Text, "…\n"); len(got.Entities) != 1 || part(got, got.Entities[0]) != want || got.Entities[0].Language != "go" {
					t.Errorf("entities %+v, want one pre over all but the first line", got.Entities)
				}
			}
		})
	}
}

// TestPartialFrames: every prefix of an answer gives a valid frame, and the whole
// answer looks in the last frame as in the message.
func TestPartialFrames(t *testing.T) {
	t.Parallel()
	src := answer(1)
	for i := range src {
		got := render.Partial(src[:i])
		wellFormed(t, got)
		if strings.Contains(got.Text, "**") || strings.Contains(got.Text, "```") || strings.Contains(got.Text, "](") {
			t.Errorf("markup shows in the frame of %q: %q", src[max(0, i-60):i], got.Text[max(0, len(got.Text)-60):])
		}
	}
	if diff := cmp.Diff(render.Markdown(src), []render.Message{render.Partial(src)}); diff != "" {
		t.Errorf("last frame (-message +frame):\n%s", diff)
	}
}

func TestPartialOfAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := fragments().Draw(t, "source")
		cut := rapid.IntRange(0, len(src)).Draw(t, "cut")
		got := render.Partial(src[:cut])
		wellFormed(t, got)
		if !utf8.ValidString(got.Text) {
			t.Fatalf("%q", got.Text)
		}
	})
}
