package paint_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/terminal/paint"
)

var update = flag.Bool("update", false, "write testdata")

const sample = `# Heading

A **bold** word, *italic*, ~~gone~~, ` + "`code`" + ` and a [link](https://example.org/a) in a paragraph that is longer than a line.

- first item that needs more than one line to be said in full
  - nested
- [x] done
1. one

> quoted text that goes on for longer than the line is wide

` + "```go\nfunc main() {\n\tprintln(\"a line that is longer than forty columns wide\")\n}\n```" + `

| name | size |
|------|-----:|
| a.go | 12 |

漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字 https://example.org
`

// TestMarkdown compares what is drawn with testdata; go test -update writes it.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		colour bool
		width  int
	}{"plain-40": {false, 40}, "colour-80": {true, 80}} {
		got := strings.Join(paint.Painter{Colour: c.colour}.Markdown(sample, c.width), "\n") + "\n"
		file := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// TestWidth: no line is wider than the terminal, also one of a few columns.
func TestWidth(t *testing.T) {
	t.Parallel()
	for width := 2; width < 90; width++ {
		for _, line := range (paint.Painter{Colour: true}).Markdown(sample, width) {
			if got := paint.Width(colours.ReplaceAllString(line, "")); got > max(width, 6) {
				t.Errorf("%d columns: %d: %q", width, got, line)
			}
		}
	}
}

// TestAttackPaint: nothing that a model or a tool says reaches the terminal as a control character.
func TestAttackPaint(t *testing.T) {
	t.Parallel()
	const evil = "a\x1b[2Jb\x07\u009b1mc\u202ed\r\nx [l](https://e.org/\x1b[1m) `\x1b[3m`"
	p := paint.Painter{Colour: true}
	lines := append(p.Markdown(evil, 40), p.Text(paint.Bold, evil, 40)...)
	lines = append(lines, p.Cut(paint.Red, evil, 20), p.Paint(paint.Dim, evil))
	diff, _ := p.Diff("x\n", evil, 40, 0)
	for _, line := range append(lines, diff...) {
		if clean := colours.ReplaceAllString(line, ""); strings.ContainsAny(clean, "\x1b\x07\u009b\u202e\r") {
			t.Errorf("%q", clean)
		}
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	p := paint.Painter{}
	got, ok := p.Diff("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nD\ne\nf\n", 40, 0)
	want := []string{"@@ -1,6 +1,6 @@", " a", " b", " c", "-d", "+D", " e", " f"}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if added, removed := paint.Count("a\nd\n", "a\nD\nE\n"); added != 2 || removed != 1 {
		t.Errorf("+%d -%d", added, removed)
	}
	if _, ok := p.Diff("a", "a", 40, 0); ok {
		t.Error("a difference between equal texts")
	}
	long, _ := p.Diff("", strings.Repeat("x\n", 100), 40, 10)
	if len(long) != 11 || long[10] != "… +91" {
		t.Errorf("%q", long)
	}
	colour, _ := paint.Painter{Colour: true}.Diff("a\n", "b\n", 40, 0)
	if !strings.Contains(strings.Join(colour, "\n"), "\x1b[32m+b\x1b[0m") {
		t.Errorf("%q", colour)
	}
}

// TestGrowingCode: while code grows, also cut in the middle of a string or a comment, what is drawn is the code and
// nothing else; only its end can change its colours, and in narrow terminals no line is too wide.
func TestGrowingCode(t *testing.T) {
	t.Parallel()
	const answer = "Look:\n\n```go\n// says ü😀 to everybody who is there\nfunc main() {\n\tprintln(\"a text\", `raw\nraw`, 12) /* done */\n}\n```\n\nDone."
	for _, width := range []int{8, 40, 80} {
		for end := range len(answer) + 1 {
			source := strings.ToValidUTF8(answer[:end], "")
			colour, plain := paint.Painter{Colour: true}.Markdown(source, width), paint.Painter{}.Markdown(source, width)
			for i, line := range colour {
				if clean := colours.ReplaceAllString(line, ""); i >= len(plain) || clean != plain[i] || paint.Width(clean) > width {
					t.Fatalf("%d columns, %q: line %d is %q, want %q", width, source, i, line, plain)
				}
			}
		}
	}
	got := strings.Join(paint.Painter{Colour: true}.Markdown(answer, 80), "\n")
	for _, want := range []string{"\x1b[2m  // says ü😀 to everybody who is there\x1b[0m", "\x1b[34mfunc\x1b[0m main() {", "\x1b[32m\"a text\"\x1b[0m", "\x1b[35m12\x1b[0m"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if other := strings.Join(paint.Painter{Colour: true}.Markdown("```\nfunc 12\n```", 80), "\n"); !strings.Contains(other, "\x1b[36mfunc 12\x1b[0m") {
		t.Errorf("code of no language: %q", other)
	}
	if none := strings.Join(paint.Painter{}.Markdown(answer, 80), "\n"); strings.Contains(none, "\x1b") {
		t.Errorf("without colours: %q", none)
	}
}

// BenchmarkGrowingCode draws a long block of code once, as happens with each picture while it grows.
func BenchmarkGrowingCode(b *testing.B) {
	source := "```go\n" + strings.Repeat("func f(x int) string { return \"text\" } // 12 words\n", 200)
	for name, p := range map[string]paint.Painter{"colour": {Colour: true}, "plain": {}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p.Markdown(source, 80)
			}
		})
	}
}
