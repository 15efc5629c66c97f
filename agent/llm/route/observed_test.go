package route_test

import (
	"context"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/route"
)

// single answers or fails.
type single struct{ err error }

func (single) Name() string { return "judge" }

func (s single) Chat(context.Context, *llm.Request, func(string)) (*llm.Response, error) {
	if s.err != nil {
		return nil, s.err
	}
	return &llm.Response{Text: "yes", Model: "m-1", Usage: llm.Usage{Input: 3, Output: 1}, USD: 0.5}, nil
}

// TestObserved: what a model costs that has no fallbacks is counted too.
func TestObserved(t *testing.T) {
	t.Parallel()
	var seen []route.Attempt
	observe := func(_ context.Context, a route.Attempt) { seen = append(seen, a) }
	for _, err := range []error{nil, &llm.Error{Kind: llm.Unauthorized, Err: context.Canceled}} {
		if _, got := route.Observed(single{err}, "", observe).Chat(t.Context(), &llm.Request{}, nil); (got == nil) != (err == nil) {
			t.Errorf("%v, want %v", got, err)
		}
	}
	if len(seen) != 2 || seen[0].Provider != "judge" || seen[0].Usage.Input != 3 || seen[0].USD != 0.5 || seen[0].Model != "m-1" || llm.KindOf(seen[1].Err) != llm.Unauthorized {
		t.Errorf("%+v", seen)
	}
}
