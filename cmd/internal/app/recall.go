package app

import (
	"context"
	"iter"

	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/route"

	"github.com/zephbot/zephbot/agent/recall"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/tools/cache"
	"github.com/zephbot/zephbot/tools/code"
)

// Names of collections of vectors.
const codePassages = "code"

// recall opens an index of texts by their meaning. It is nil where no provider computes
// embeddings, or nothing is stored.
func (c *Core) recall(name string) (*recall.Index, error) {
	if c.stores == nil {
		return nil, nil
	}
	provider, err := c.models.Embedding("")
	if err != nil || provider == nil {
		return nil, err
	}
	embedder, err := c.models.EmbedderOf(*provider)
	if err != nil {
		return nil, err
	}
	log := c.log.With().Str("component", "recall").Logger()
	retry, err := route.NewRetry(route.Options{Attempts: embedAttempts, Now: c.now, Log: log})
	if err != nil {
		return nil, err
	}
	return recall.New(recall.Options{
		Name: name, Spaces: c.stores.Vectors.Spaces(), Model: provider.EmbeddingModel, Embedder: embedder,
		Former: func(model string) *spend.Embedder { // the same provider knows the model that was configured before
			former := *provider
			former.EmbeddingModel = model
			embedder, err := c.models.EmbedderOf(former)
			if err != nil {
				return nil
			}
			return embedder
		},
		Cache: vectorCache{c.redis.Cache()}, Retry: retry, Now: c.now, Log: log,
	})
}

// embedAttempts is more than a model gets that somebody waits for.
const embedAttempts = 5

// vectorCache keeps vectors in the cache of results, which bounds each of their groups.
type vectorCache struct{ store cache.Store }

// Get implements recall.Cache.
func (v vectorCache) Get(ctx context.Context, group, key string) ([]byte, error) {
	entry, err := v.store.Get(ctx, group, key)
	return entry.Value, err
}

// Set implements recall.Cache.
func (v vectorCache) Set(ctx context.Context, group, key string, value []byte) error {
	entry, err := v.store.Get(ctx, group, key) // for the generation of the group
	if err != nil {
		return err
	}
	entry.Value = value
	return v.store.Set(ctx, group, key, entry, cache.MaxTTL)
}

// openPassages lets the code index find passages by their meaning, where there are embeddings.
func (c *Core) openPassages(o *code.Options) error {
	index, err := c.recall(codePassages)
	if err != nil || index == nil {
		return err
	}
	c.code.passages = recall.NewCode(recall.CodeOptions{
		Index: index, Now: c.now, Log: o.Log,
		Passages: func(ctx context.Context, root string) iter.Seq2[code.Passage, error] {
			return c.code.index.Passages(ctx, root)
		},
	})
	o.Semantic = c.code.passages
	return nil
}

// embedsCode embeds the passages of the code index until ctx ends. The budget of the bot pays.
func (s *service) embedsCode(ctx context.Context) error {
	if s.core.code.passages == nil {
		return nil
	}
	return s.core.code.passages.Run(cost.WithPayer(ctx, s.meter.House(s.ch.name, s.ch.bot)))
}
