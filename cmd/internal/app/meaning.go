package app

import (
	"context"

	"github.com/zephbot/zephbot/agent/recall"
	"github.com/zephbot/zephbot/bot/memory"
)

// memoryVectors is the collection of vectors of memories.
const memoryVectors = "memory"

// saidVectors is the collection of vectors of what was said, in which nothing is stored.
const saidVectors = "said"

// meanings ranks memories by meaning. It implements memory.Semantic. Without an index, words decide alone.
type meanings struct{ index *recall.Index }

// Similar implements memory.Semantic. The index is brought up to date first, which costs
// nothing if nothing has changed.
func (m *meanings) Similar(ctx context.Context, scope, text string, list []memory.Memory) (map[string]float32, error) {
	if m.index == nil {
		return nil, nil
	}
	docs := make([]recall.Doc, len(list))
	for i, entry := range list {
		docs[i] = recall.Doc{Key: entry.ID, Text: entry.Key + ": " + entry.Text}
	}
	if _, err := m.index.Sync(ctx, scope, recall.Docs(docs...), nil); err != nil {
		return nil, err
	}
	hits, err := m.index.Search(ctx, []string{scope}, text, len(list))
	if err != nil {
		return nil, err
	}
	similar := make(map[string]float32, len(hits))
	for _, h := range hits {
		similar[h.Key] = max(h.Score, 0)
	}
	return similar, nil
}

// Forget implements memory.Semantic.
func (m *meanings) Forget(ctx context.Context, scope string) error {
	if m.index == nil {
		return nil
	}
	return m.index.Forget(ctx, scope)
}

// openMeanings builds the index, if memories are searched by meaning and a provider computes embeddings.
func (c *Core) openMeanings() (err error) {
	if c.meanings == nil {
		return nil
	}
	if c.meanings.index, err = c.recall(memoryVectors); err != nil {
		return err
	}
	c.compared, err = c.recall(saidVectors)
	return err
}

// compareSaid is search.Deps.Meaning.
func (c *Core) compareSaid(ctx context.Context, text string, others []string) ([]float32, error) {
	if c.compared == nil {
		return nil, nil
	}
	return c.compared.Compare(ctx, text, others)
}
