package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot/render"
)

func TestFolding(t *testing.T) {
	t.Parallel()
	lines := func(prefix string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%sline %d\n", prefix, i)
		}
		return b.String()
	}
	fence := func(lang string, n int) string { return "```" + lang + "\n" + lines("", n) + "```" }
	usual := render.Folding{Quotes: 10, Output: 20}
	for name, row := range map[string]struct {
		folding render.Folding
		src     string
		want    string // the types of the entities
	}{
		"a short quote":                      {usual, lines("> ", 9), "blockquote"},
		"a long quote":                       {usual, lines("> ", 10), "expandable_blockquote"},
		"one long line counts as several":    {usual, "> " + strings.Repeat("word ", 140), "expandable_blockquote"},
		"its last line does not fill one":    {usual, "> " + strings.Repeat("w", 630), "blockquote"},
		"another limit":                      {render.Folding{Quotes: 3}, lines("> ", 3), "expandable_blockquote"},
		"never":                              {render.Folding{}, lines("> ", 60), "blockquote"},
		"short output":                       {usual, fence("", 19), "pre"},
		"long output":                        {usual, fence("", 20), "expandable_blockquote pre"},
		"long output with a name":            {usual, fence("Console", 20), "expandable_blockquote pre"},
		"code is shown":                      {usual, fence("go", 60), "pre"},
		"output in a quote":                  {usual, "> " + strings.ReplaceAll(fence("", 20), "\n", "\n> "), "expandable_blockquote pre"},
		"output is not collapsed by default": {render.Folding{Quotes: 10}, fence("", 60), "pre"},
		"output never":                       {render.Folding{}, fence("", 60), "pre"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var types []string
			for _, m := range row.folding.Markdown(row.src) {
				wellFormed(t, m)
				for _, e := range m.Entities {
					types = append(types, e.Type)
				}
			}
			if got := strings.Join(types, " "); got != row.want {
				t.Errorf("entities %q, want %q", got, row.want)
			}
		})
	}
}

// A long output that needs several messages is collapsed in each, and no line of it is lost.
func TestFoldedOutputIsWhole(t *testing.T) {
	t.Parallel()
	var src strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&src, "line %d\n", i)
	}
	list := render.Folding{Output: 20}.Markdown("```\n" + src.String() + "```")
	var got strings.Builder
	for _, m := range list {
		wellFormed(t, m)
		if len(m.Entities) != 2 || m.Entities[0].Type != "expandable_blockquote" || m.Entities[1].Type != "pre" {
			t.Errorf("entities: %+v", m.Entities)
		}
		got.WriteString(m.Text + "\n")
	}
	if len(list) < 3 || got.String() != src.String() {
		t.Errorf("%d messages, %d bytes of %d", len(list), got.Len(), src.Len())
	}
}

// What is being written is never collapsed: the newest text could not be read.
func TestPartialIsNotFolded(t *testing.T) {
	t.Parallel()
	for _, e := range render.Partial(strings.Repeat("> line\n", 60)).Entities {
		if e.Type != "blockquote" {
			t.Errorf("collapsed: %+v", e)
		}
	}
}
