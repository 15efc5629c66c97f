package render_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/bot/render"
)

func TestRich(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ src, want string }{
		"heading":          {"## So **it** is\nand `x`", `[{"type":"heading","text":["So ",{"type":"bold","text":"it"}," is"],"size":2},{"type":"paragraph","text":["and ",{"type":"code","text":"x"}]}]`},
		"formula":          {"so $x_1*y$ holds", `[{"type":"paragraph","text":["so ",{"type":"mathematical_expression","expression":"x_1*y"}," holds"]}]`},
		"formula in a row": {"\\[\na*b*c\n\\]", `[{"type":"mathematical_expression","expression":"a*b*c"}]`},
		"table": {"|a|b|\n|:-|-:|\n|1||", `[{"type":"table","cells":[[{"text":"a","is_header":true,"align":"left","valign":"middle"},{"text":"b","is_header":true,"align":"right","valign":"middle"}],` +
			`[{"text":"1","align":"left","valign":"middle"},{"align":"right","valign":"middle"}]],"is_bordered":true}]`},
		"surplus cells": {"|a|\n|-|\n|1|2|", `[{"type":"table","cells":[[{"text":"a","is_header":true,"align":"left","valign":"middle"},{"is_header":true,"align":"left","valign":"middle"}],` +
			`[{"text":"1","align":"left","valign":"middle"},{"text":"2","align":"left","valign":"middle"}]],"is_bordered":true}]`},
		"tasks":   {"- [x] a\n- [ ] b", `[{"type":"list","items":[{"blocks":[{"type":"paragraph","text":"a"}],"has_checkbox":true,"is_checked":true},{"blocks":[{"type":"paragraph","text":"b"}],"has_checkbox":true}]}]`},
		"numbers": {"# t\n3. a\n4. b", `[{"type":"heading","text":"t","size":1},{"type":"list","items":[{"blocks":[{"type":"paragraph","text":"a"}],"value":3,"type":"1"},{"blocks":[{"type":"paragraph","text":"b"}],"value":4,"type":"1"}]}]`},
		"rest":    {"# t\n> q\n\n```go\nx\n```\n---", `[{"type":"heading","text":"t","size":1},{"type":"blockquote","blocks":[{"type":"paragraph","text":"q"}]},{"type":"pre","text":"x","language":"go"},{"type":"divider"}]`},
		"link":    {"# [a](https://x.org) [b](file:///x)", `[{"type":"heading","text":[{"type":"url","text":"a","url":"https://x.org"}," ","b"," (file:///x)"],"size":1}]`},
		// The server would fetch it.
		"picture":            {"# t\n![a](https://x.org/?secret)", `[{"type":"heading","text":"t","size":1},{"type":"paragraph","text":{"type":"url","text":"a","url":"https://x.org/?secret"}}]`},
		"markup of a server": {"# t\n<tg-thinking>x</tg-thinking> <img src=\"https://x.org\">", `[{"type":"heading","text":"t","size":1},{"type":"paragraph","text":["<tg-thinking>","x","</tg-thinking>"," ","<img src=\"https://x.org\">"]}]`},
		"nothing gained":     {"a **b**\n- c", ""},
		"nothing":            {"", ""},
		"money":              {"$5 and $6", ""},
		"too many columns":   {strings.Repeat("|a", 21) + "|\n" + strings.Repeat("|-", 21) + "|\n", ""},
		"too deep":           {"# t\n" + strings.Repeat("> ", 20) + "a", ""},
		"too many blocks":    {"# t\n" + strings.Repeat("a\n\n", 501), ""},
		"too long":           {"# t\n" + strings.Repeat("word ", 7000), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, ok := render.Rich(row.src)
			want := row.want
			if want != "" {
				want = `{"blocks":` + want + `}`
			}
			var got, expected any
			if ok {
				if err := json.Unmarshal(raw, &got); err != nil {
					t.Fatal(err)
				}
			}
			if want != "" {
				if err := json.Unmarshal([]byte(want), &expected); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("blocks (-want +got):\n%s\n%s", diff, raw)
			}
		})
	}
}

// visibleOf collects what a rich message shows.
func visibleOf(v any, b *strings.Builder) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			visibleOf(e, b)
		}
	case string:
		b.WriteString(v)
	case map[string]any:
		for _, key := range []string{"blocks", "items", "cells", "text", "expression"} {
			visibleOf(v[key], b)
		}
	}
}

// Whatever the marks mean, a rich message shows the letters of its source, each in its place.
func TestRichKeepsLetters(t *testing.T) {
	t.Parallel()
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) {
				return r
			}
			return -1
		}, s)
	}
	pieces := rapid.SampledFrom([]string{
		"a", "bc", "Über", "漢字", " ", "\n", "\n\n", "*", "**", "_", "__", "c~~", "||", "$", "$$", "\n$$\n", "\\(", "\\)", "\\[", "\\]", "`", ":", ".", "(", ")", "|", "\n|a|b|\n|-|-|\n|", "\n> ", "\n- ", "\n+ ", "\n1. ", "<b>", "\n# ",
	})
	rapid.Check(t, func(t *rapid.T) {
		src := "# t\n" + strings.Join(rapid.SliceOfN(pieces, 0, 50).Draw(t, "pieces"), "")
		raw, ok := render.Rich(src)
		if !ok {
			t.Skip("a limit is exceeded")
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		visibleOf(v, &got)
		if letters(got.String()) != letters(src) {
			t.Fatalf("letters of %q became %q", src, got.String())
		}
	})
}

func FuzzRich(f *testing.F) {
	for _, s := range []string{"# a", "|a|b|\n|-|-|\n|1|2|3|", "$x$ $$y$$", "- [ ] a", "> > # b", "![x](y)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > 64<<10 {
			t.Skip("longer than any answer")
		}
		if raw, ok := render.Rich(src); ok && !json.Valid(raw) {
			t.Fatalf("not JSON: %s", raw)
		}
	})
}
