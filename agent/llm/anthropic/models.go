package anthropic

import (
	"context"
	"net/http"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// Models returns the names of the models that the vendor offers (GET /v1/models), sorted. It costs nothing.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	return wire.ListModels(ctx, p.client, p.o.BaseURL+"v1/models?limit=1000", p.authHeader(), p.o.Key)
}

// Sizes asks the vendor how long the window and the answers of the model are. It costs nothing.
func (p *Provider) Sizes(ctx context.Context) dialect.Sizes {
	d := p.o.Dialect
	if d.Name == "" { // a server that nobody knows, with this API
		d, _ = dialect.Named("anthropic")
	}
	return wire.AskSizes(ctx, p.client, p.o.BaseURL, d.Listings(), p.o.Model, p.authHeader, p.o.Key)
}

// authHeader returns the header of a request.
func (p *Provider) authHeader() http.Header {
	return http.Header{"Anthropic-Version": {version}, "X-Api-Key": {string(p.o.Key)}}
}
