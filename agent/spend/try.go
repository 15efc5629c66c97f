package spend

import (
	"context"

	"github.com/zephbot/zephbot/agent/llm"
)

// tryTokens is the longest answer of Try: the least that every API takes.
const tryTokens = 16

// Try asks a model for one word, to see whether it answers. Nobody's budget is charged: the operator asks, and it costs
// less than a hundredth of a cent. Errors are those of llm.Provider.
func Try(ctx context.Context, provider llm.Provider) (*llm.Response, error) {
	return TryTools(ctx, provider, nil)
}

// TryTools is Try with tools on offer; the answer may call one, which nobody runs.
func TryTools(ctx context.Context, provider llm.Provider, tools []llm.Tool) (*llm.Response, error) {
	return provider.Chat(ctx, &llm.Request{ //nolint:wrapcheck // the provider's own error
		Messages: []llm.Message{{Role: llm.User, Text: "Answer with the word ok."}}, Tools: tools, MaxTokens: tryTokens,
	}, nil)
}
