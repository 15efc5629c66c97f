package vendortest_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/vendortest"
)

// TestFailures: what every server says about keys, accounts, models and load is understood, in its own words.
func TestFailures(t *testing.T) {
	t.Parallel()
	busy := []llm.Kind{llm.RateLimited, llm.Unavailable} // both are waited for
	want := map[string][]llm.Kind{
		"key": {llm.Unauthorized}, "credit": {llm.NoCredit}, "model": {llm.UnknownModel}, "rate": busy, "overload": busy, "in flight": busy,
	}
	for _, vendor := range vendortest.Vendors() {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			s := serve(t, vendortest.Options{Vendor: vendor})
			for _, kind := range s.Failures() {
				if len(want[kind]) == 0 {
					continue
				}
				if err := s.Fail(kind); err != nil {
					t.Fatal(err)
				}
				before := len(s.Exchanges())
				_, err := provider(t, s, true).Chat(t.Context(), &llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hello"}}}, nil)
				if got := llm.KindOf(err); err == nil || !slices.Contains(want[kind], got) {
					t.Errorf("%s is taken for %q: %v", kind, got, err)
				}
				if n := len(s.Exchanges()) - before; n != 1 {
					t.Errorf("%s: %d requests", kind, n)
				}
			}
		})
	}
}

// TestWaits: how long to wait is read wherever a server says it.
func TestWaits(t *testing.T) {
	t.Parallel()
	s := serve(t, vendortest.Options{Vendor: "gemini"})
	if err := s.Fail("rate"); err != nil {
		t.Fatal(err)
	}
	_, err := provider(t, s, true).Chat(t.Context(), &llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hello"}}}, nil)
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.RetryAfter != 37*time.Second {
		t.Errorf("%v", err)
	}
}
