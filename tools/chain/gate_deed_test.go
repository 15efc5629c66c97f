package chain_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// TestDeedConceals: the card of a call that asks says what it would do. Of the differences, what the file already
// contains is redacted, and what the call adds is shown exactly. Where that cannot be told apart, or the deed is not
// known, the card shows the text of the call.
func TestDeedConceals(t *testing.T) {
	t.Parallel()
	const diff = "@@ -1,3 +1,3 @@\n key=SECRET\n-old=SECRET\n+new=SECRET\n"
	for name, c := range map[string]struct {
		effect policy.Effect
		deed   func(context.Context, *tools.Call) (tools.Effect, error)
		redact func(string) string
		want   *tools.Effect
	}{
		"asks": {
			effect: policy.Ask, deed: func(context.Context, *tools.Call) (tools.Effect, error) {
				return tools.Effect{Deleted: []string{"a"}, Diff: diff}, nil
			},
			redact: func(s string) string { return strings.ReplaceAll(s, "SECRET", "[hidden]") },
			want:   &tools.Effect{Deleted: []string{"a"}, Diff: "@@ -1,3 +1,3 @@\n key=[hidden]\n-old=[hidden]\n+new=SECRET\n"},
		},
		"a secret over several lines": {
			effect: policy.Ask, deed: func(context.Context, *tools.Call) (tools.Effect, error) { return tools.Effect{Diff: diff}, nil },
			redact: func(string) string { return "[hidden]" }, want: &tools.Effect{},
		},
		"not known": {effect: policy.Ask, deed: func(context.Context, *tools.Call) (tools.Effect, error) { return tools.Effect{}, errors.New("gone") }},
		"a panic":   {effect: policy.Ask, deed: func(context.Context, *tools.Call) (tools.Effect, error) { panic("deed") }},
		"none":      {effect: policy.Ask},
		"allowed":   {effect: policy.Allow, deed: func(context.Context, *tools.Call) (tools.Effect, error) { return tools.Effect{Diff: diff}, nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := tools.NewRegistry(tools.Tool{Definition: tools.Definition{Name: "change"}, Run: runNothing, Deed: c.deed})
			if err != nil {
				t.Fatal(err)
			}
			call := decoded(t, r, "change", `{}`)
			if _, err := chain.NewGate(r, chain.GateOptions{Policy: toolstest.Always(c.effect), Redact: c.redact})(runNothing)(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			var got *tools.Effect
			if call.Subject.Deed != nil {
				got = call.Subject.Deed()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
