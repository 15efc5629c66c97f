package route_test

import (
	"slices"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
)

// thrifty is a payer whose USD are limited.
type thrifty struct{ cost.Unlimited }

func (thrifty) LimitsUSD() bool { return true }

// TestUnpriced: a fallback whose price nobody knows is asked only for a payer without a limit of USD. The provider that is
// asked first is not left out here: whoever reserves for its call knows its name, and refuses in words.
func TestUnpriced(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		payer cost.Payer
		asked []string
	}{
		"limited":  {thrifty{}, []string{"main unauthorized", "third ok"}},
		"no limit": {cost.Unlimited{}, []string{"main unauthorized", "own ok"}},
	} {
		b := newBench()
		b.options.Unpriced = map[string]string{"own": "our-model"}
		r := b.router(t, llmtest.Named("main", fail(llm.Unauthorized, 0)), llmtest.Named("own", say("a")), llmtest.Named("third", say("b")))
		if _, err := r.Chat(cost.WithPayer(t.Context(), tt.payer), &llm.Request{}, nil); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(b.attempts, tt.asked) {
			t.Errorf("%s: asked %v, want %v", name, b.attempts, tt.asked)
		}
		if r.UnpricedFor("") != "" || llm.UnpricedFor(r, "own") != "our-model" || llm.UnpricedFor(r, "gone") != "" {
			t.Errorf("%s: unpriced is mistaken", name)
		}
	}
}
