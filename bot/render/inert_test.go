package render_test

import (
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
		"(/stop)":                        {{Type: "code", Offset: 0, Length: 7}},
		"tg://resolve?domain=x":          {{Type: "code", Offset: 0, Length: 21}},
	} {
		if diff := cmp.Diff(want, render.Inert(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
