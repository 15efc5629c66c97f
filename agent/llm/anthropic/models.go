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
