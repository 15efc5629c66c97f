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
		"a\nsee t.me/x or /go now":       {{Type: "code", Offset: 6, Length: 13}},
		"$ABC #tag":                      {{Type: "code", Offset: 0, Length: 9}},
		"2 calls · $0.0020 · $12":        nil,
		"call +49 (30) 123456, please":   {{Type: "code", Offset: 5, Length: 15}},
		"the last one 9d599026560d48d9":  {{Type: "code", Offset: 13, Length: 16}},
		"(/stop)":                        {{Type: "code", Offset: 0, Length: 7}},
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
