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

// Window asks the server how long the window of its model is, in tokens; 0 = it does not say. It costs nothing.
func (p *Provider) Window(ctx context.Context) int {
	return adapter.Window(ctx, p.client, p.o.BaseURL, p.o.Dialect.Listings(), p.o.Model, func() http.Header {
		header := http.Header{}
		if p.o.Key != "" {
			header.Set("Authorization", "Bearer "+string(p.o.Key))
		}
		return header
	}, p.o.Key)
}
