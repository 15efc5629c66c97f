package anthropic

import (
	"context"
	"net/http"

	"github.com/zephbot/zephbot/agent/llm/adapter"
)

// Models returns the names of the models that the vendor offers (GET /v1/models), sorted. It costs nothing.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	header := http.Header{}
	header.Set("Anthropic-Version", version)
	header.Set("X-Api-Key", string(p.o.Key))
	return adapter.Models(ctx, p.client, p.o.BaseURL+"v1/models?limit=1000", header, p.o.Key)
}

// Window asks the vendor how long the window of the model is, in tokens; 0 = it does not say. It costs nothing.
func (p *Provider) Window(ctx context.Context) int {
	return adapter.Window(ctx, p.client, p.o.BaseURL, p.o.Dialect.Listings(), p.o.Model, func() http.Header {
		return http.Header{"Anthropic-Version": {version}, "X-Api-Key": {string(p.o.Key)}}
	}, p.o.Key)
}
