package openai

import (
	"context"
	"net/http"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// Models returns the names of the models that the server offers (GET /models), sorted. Not every compatible server has
// such a list. It costs nothing.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	return wire.ListModels(ctx, p.client, p.o.BaseURL+"/models", p.authHeader(), p.o.Key)
}

// Sizes asks the server how long the window and the answers of its model are. It costs nothing.
func (p *Provider) Sizes(ctx context.Context) dialect.Sizes {
	return wire.AskSizes(ctx, p.client, p.o.BaseURL, p.o.Dialect.Listings(), p.o.Model, p.authHeader, p.o.Key)
}

// authHeader returns the header of a request that is not sent through the SDK.
func (p *Provider) authHeader() http.Header {
	header := http.Header{}
	if p.o.Key != "" {
		header.Set("Authorization", "Bearer "+string(p.o.Key))
	}
	return header
}
