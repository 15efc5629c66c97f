package bottest_test

import (
	"errors"
	"testing"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
)

func TestHooks(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	change := &bot.Change{Facts: []bot.Fact{{Bucket: "b", Key: "k", Value: "v"}}}
	for name, test := range map[string]struct {
		hooks bottest.Hooks
		want  string
	}{
		"before: nothing is changed": {bottest.Hooks{BeforeApply: func(*bot.Change) error { return broken }}, ""},
		"after: the change stands":   {bottest.Hooks{AfterApply: func(*bot.Change) error { return broken }}, "v"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := bottest.New()
			store.Hooks = test.hooks
			if _, err := store.Apply(t.Context(), change); !errors.Is(err, broken) {
				t.Fatalf("got %v, want the hook's error", err)
			}
			value, err := store.Fact(t.Context(), "b", "k", store.Now())
			if err != nil || value != test.want {
				t.Errorf("fact %q (%v), want %q", value, err, test.want)
			}
		})
	}
}
