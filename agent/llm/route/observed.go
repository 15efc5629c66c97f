package route

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
)

// Observed returns a provider that is asked without a Router and whose calls are reported like a Router's attempts.
func Observed(provider llm.Provider, observe func(context.Context, Attempt)) llm.Provider {
	return observed{provider, observe}
}

type observed struct {
	llm.Provider
	observe func(context.Context, Attempt)
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

// Accepts implements llm.Accepter.
func (o observed) Accepts() llm.Accepts { return llm.AcceptsOf(o.Provider) }
