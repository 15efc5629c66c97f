package render_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/render"
)

func TestInert(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]render.Entity{
		"":                               nil,
		"bash · in the workspace":        nil,
		"expires 14:10 UTC, see a/b. No": nil,
		"😀 @ben":                         {{Type: "code", Offset: 3, Length: 4}},
		"a\nsee t.me/x or /go now":       {{Type: "code", Offset: 6, Length: 6}, {Type: "code", Offset: 16, Length: 3}},
		"$ABC #tag":                      {{Type: "code", Offset: 0, Length: 4}, {Type: "code", Offset: 5, Length: 4}},
		"2 calls · $0.0020 · $12":        nil,
		"call +49 (30) 123456, please":   {{Type: "code", Offset: 5, Length: 15}},
		"the last one 9d599026560d48d9":  {{Type: "code", Offset: 13, Length: 16}},
		"(/stop)":                        {{Type: "code", Offset: 1, Length: 5}},
		"Deletes a.tmp, f(1).md. May I?": {{Type: "code", Offset: 8, Length: 5}, {Type: "code", Offset: 15, Length: 7}},
		"„a.md“, «b.md»; see c.d(1)…":    {{Type: "code", Offset: 1, Length: 4}, {Type: "code", Offset: 9, Length: 4}, {Type: "code", Offset: 20, Length: 6}},
		"a.tmp?! @ben):":                 {{Type: "code", Offset: 0, Length: 5}, {Type: "code", Offset: 8, Length: 4}},
		"tg://resolve?domain=x":          {{Type: "code", Offset: 0, Length: 21}},
		"next 2026-11-23 16:40 UTC":      nil,
		"from 2026-11-23T16:40:05Z on":   nil,
		"😀 2026-11-23 @ben":              {{Type: "code", Offset: 14, Length: 4}},
		"@ben2026-11-23":                 {{Type: "code", Offset: 0, Length: 14}},
		"call +2026-11-23 now":           {{Type: "code", Offset: 5, Length: 11}},
		"call 2026-11-2345 now":          {{Type: "code", Offset: 5, Length: 12}},
	} {
		if diff := cmp.Diff(want, render.Inert(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestInertMany: no part of a text stays without an entity because a message has only so many.
func TestInertMany(t *testing.T) {
	t.Parallel()
	text := strings.TrimSpace(strings.Repeat("@ben and @cy.\n", 45))
	list := render.Inert(text)
	if len(list) != 45 || list[0] != (render.Entity{Type: "code", Offset: 0, Length: 12}) {
		t.Errorf("%d entities: %+v", len(list), list[0])
	}
}

func TestMarked(t *testing.T) {
	t.Parallel()
	text, list := render.Marked("😀 Deletes " + render.Code("a b") + ", " + render.Code("c.md\x00") + ". @ben")
	want := []render.Entity{{Type: "code", Offset: 11, Length: 3}, {Type: "code", Offset: 16, Length: 4}, {Type: "code", Offset: 22, Length: 4}}
	if diff := cmp.Diff(want, list); diff != "" || text != "😀 Deletes a b, c.md. @ben" {
		t.Errorf("%q %s", text, diff)
	}
}

func TestQuoted(t *testing.T) {
	t.Parallel()
	type quoted struct {
		Text string
		List []render.Entity
	}
	code := func(offset, length int) render.Entity {
		return render.Entity{Type: "code", Offset: offset, Length: length}
	}
	for text, want := range map[string]quoted{
		"":                              {},
		"No rule allows `touch a.txt`.": {"No rule allows touch a.txt.", []render.Entity{code(15, 11)}},
		"😀 `a b`, `c` (`d`)\n@ben `e`":  {"😀 a b, c (d)\n@ben e", []render.Entity{code(3, 3), code(8, 1), code(11, 1), code(14, 4), code(19, 1)}},
		// Whose ticks are whose is not known: all stay.
		"No rule allows `echo `date``.": {"No rule allows `echo `date``.", nil},
		"one ` tick":                    {"one ` tick", nil},
		"`a`b`":                         {"`a`b`", nil},
		"nothing `` and ` `":            {"nothing `` and ` `", nil},
		"a`b`":                          {"a`b`", nil},
		"`x` `/go` now":                 {"x /go now", []render.Entity{code(0, 1), code(2, 3)}},
		"`x` t.me/x":                    {"x t.me/x", []render.Entity{code(0, 1), code(2, 6)}},
		"see `x":                        {"see `x", nil},
		"`x":                            {"`x", nil},
	} {
		var got quoted
		if got.Text, got.List = render.Quoted(text); !cmp.Equal(want, got) {
			t.Errorf("%q (-want +got):\n%s", text, cmp.Diff(want, got))
		}
	}
}

// FuzzQuoted: only back ticks are removed, and entities are in order within the text.
func FuzzQuoted(f *testing.F) {
	f.Add("No rule allows `touch a.txt`. @ben\n`x` (`y`)")
	f.Fuzz(func(t *testing.T, text string) {
		got, list := render.Quoted(text)
		if strings.ReplaceAll(got, "`", "") != strings.ReplaceAll(text, "`", "") {
			t.Errorf("%q became %q", text, got)
		}
		end := 0
		for _, e := range list {
			if e.Offset < end || e.Length <= 0 {
				t.Fatalf("%q: entity %+v begins before %d", text, e, end)
			}
			end = e.Offset + e.Length
		}
		if end > render.Length(got) {
			t.Errorf("%q: the last entity ends at %d of %d", text, end, render.Length(got))
		}
	})
}
