package route

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
)

// Observed returns a provider that is asked without a Router and whose calls are reported like a Router's attempts.
// unpriced names its model if nobody knows the price; "" = it is known.
func Observed(provider llm.Provider, unpriced string, observe func(context.Context, Attempt)) llm.Provider {
	return observed{provider, unpriced, observe}
}

type observed struct {
	llm.Provider
	unpriced string
	observe  func(context.Context, Attempt)
}

// Chat implements llm.Provider.
func (o observed) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	began := time.Now()
	res, err := o.Provider.Chat(ctx, req, onDelta)
	attempt := Attempt{Provider: o.Name(), Number: 1, Err: err, Duration: time.Since(began)}
	if err == nil && res != nil {
		attempt.Model, attempt.Usage, attempt.USD = res.Model, res.Usage, res.USD
	}
	o.observe(ctx, attempt)
	return res, err
}

// UnpricedFor implements llm.Unpriced.
func (o observed) UnpricedFor(string) string { return o.unpriced }

// Accepts implements llm.Accepter.
func (o observed) Accepts() llm.Accepts { return llm.AcceptsOf(o.Provider) }
