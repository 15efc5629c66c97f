package openai

import (
	"context"
	"net/http"

	"github.com/zephbot/zephbot/agent/llm/adapter"
)

// Models returns the names of the models that the server offers (GET /models), sorted. Not every compatible server has
// such a list. It costs nothing.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	header := http.Header{}
	if p.o.Key != "" {
		header.Set("Authorization", "Bearer "+string(p.o.Key))
	}
	return adapter.Models(ctx, p.client, p.o.BaseURL+"/models", header, p.o.Key)
}
