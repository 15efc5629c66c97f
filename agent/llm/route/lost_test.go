package route_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
)

// wallet pays for a number of attempts.
type wallet struct {
	mu     sync.Mutex
	pays   int
	booked []llm.Usage
}

var errEmpty = &cost.Denied{Scope: "user", Text: "Your money is used up."}

func (w *wallet) Reserve(_ context.Context, _ string, most cost.Amount) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.booked) == w.pays {
		return errEmpty
	}
	w.booked = append(w.booked, most.Tokens)
	return nil
}

func (w *wallet) Settle(_ context.Context, _ string, used cost.Amount) error {
	if used.USD != cost.ReservedUSD {
		return errors.New("not what was set aside")
	}
	return nil
}

func lost(said string) llmtest.Step {
	return llmtest.Step{Text: said, Err: &llm.Error{Kind: llm.Truncated, UnderWay: true, Err: errors.New("cut")}}
}

// TestLostAttempts: an attempt of which nobody knows what it has cost is paid for before the next one is made; the caller
// pays for the last one. Without money there is no next one.
func TestLostAttempts(t *testing.T) {
	t.Parallel()
	const most = 50
	refused := fail(llm.Unavailable, 0)
	for name, tt := range map[string]struct {
		main, back []llmtest.Step
		pays       int
		booked     []int // output tokens
		asked      int   // requests to main
		ends       string
		callerPays bool
	}{
		"an answer at last":         {main: []llmtest.Step{lost(""), lost(""), say("yes")}, pays: 9, booked: []int{most, most}, asked: 3},
		"text had come":             {main: []llmtest.Step{lost("half an answer"), say("yes")}, pays: 9, booked: []int{len("half an answer")}, asked: 2},
		"the fallback answers":      {main: []llmtest.Step{lost(""), lost(""), lost("")}, back: []llmtest.Step{say("yes")}, pays: 9, booked: []int{most, most, most}, asked: 3},
		"none answers":              {main: []llmtest.Step{lost(""), lost(""), lost("")}, pays: 9, booked: []int{most, most}, asked: 3, ends: "cut", callerPays: true},
		"the last one never left":   {main: []llmtest.Step{lost(""), lost(""), refused}, pays: 9, booked: []int{most, most}, asked: 3, ends: "down"},
		"none of them left":         {main: []llmtest.Step{refused, refused, say("yes")}, pays: 9, asked: 3},
		"no money for another one":  {main: []llmtest.Step{lost(""), lost(""), say("never")}, pays: 1, booked: []int{most}, asked: 2, ends: "used up", callerPays: true},
		"no money for the fallback": {main: []llmtest.Step{lost(""), lost(""), lost("")}, back: []llmtest.Step{say("never")}, pays: 2, booked: []int{most, most}, asked: 3, ends: "used up", callerPays: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, purse := newBench(), &wallet{pays: tt.pays}
			main := llmtest.Named("main", tt.main...)
			providers := []llm.Provider{main}
			if tt.back != nil {
				providers = append(providers, llmtest.Named("back", tt.back...))
			}
			req := request()
			req.Size, req.MaxTokens, req.OnReset = 10, most, func() {}
			_, err := b.router(t, providers...).Chat(cost.WithPayer(t.Context(), purse), req, func(string) {})
			if (err == nil) != (tt.ends == "") || err != nil && !strings.Contains(err.Error(), tt.ends) {
				t.Errorf("error %v, want %q", err, tt.ends)
			}
			if llm.MayHaveCost(err) != tt.callerPays {
				t.Errorf("the caller pays for the last attempt: %t, want %t: %v", llm.MayHaveCost(err), tt.callerPays, err)
			}
			if tt.ends == "used up" && !cost.Refused(err) {
				t.Errorf("error %v is no refusal", err)
			}
			var want []llm.Usage
			for _, output := range tt.booked {
				want = append(want, llm.Usage{Input: 10, Output: output})
			}
			if diff := cmp.Diff(want, purse.booked); diff != "" {
				t.Errorf("booked (-want +got):\n%s", diff)
			}
			if n := len(main.Requests()); n != tt.asked {
				t.Errorf("main was asked %d times, want %d", n, tt.asked)
			}
		})
	}
}

// TestLostAndGivenUp: a caller that gives up between two attempts pays for the one before.
func TestLostAndGivenUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(cost.WithPayer(t.Context(), &wallet{pays: 9}))
	b := newBench()
	b.options.Sleep = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return ctx.Err()
	}
	_, err := b.router(t, llmtest.Named("main", lost(""))).Chat(ctx, request(), nil)
	if !errors.Is(err, context.Canceled) || !llm.MayHaveCost(err) {
		t.Errorf("error %v, may have cost something: %t", err, llm.MayHaveCost(err))
	}
}
