package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/zephbot/zephbot/agent/catalog"
)

// Semantic ranks memories by meaning. It derives everything from the list that it is given, so its index can be thrown
// away. The payer is in ctx. Safe for concurrent use. After an error, words decide.
type Semantic interface {
	// Similar returns how similar a text is to memories of one scope, from 0 to 1, by their ids; those that are left
	// out count as 0. list has all memories of the scope, newest first.
	Similar(ctx context.Context, scope, text string, list []Memory) (map[string]float32, error)
	// Forget deletes what was derived from a scope.
	Forget(ctx context.Context, scope string) error
}

// A similarity of unlike texts is not 0 with most models: what is below floor counts as 0, and full is as good as the
// same words.
const (
	similarFloor = 0.3
	similarFull  = 0.8
)

// hit is a memory with how well it fits a text, from 0 to 1.
type hit struct {
	*Memory
	score float32
}

// document is a memory as it is compared.
func (m *Memory) document() string { return m.Key + "\n" + m.Text }

// textsOf is the index of memories by their words.
func textsOf(list []Memory) *catalog.Texts {
	docs := make([]string, len(list))
	for i := range list {
		docs[i] = list[i].document()
	}
	return catalog.NewTexts(docs)
}

// rankMemories orders memories by how well they fit a text, best first; those that do not fit at all are left out.
func (s *Store) rankMemories(ctx context.Context, scope Scope, text string, of *read) []hit {
	list, scores := of.list, of.texts.Rank(text)
	if s.deps.Semantic != nil {
		ctx, cancel := context.WithTimeout(ctx, semanticWithin)
		defer cancel()
		similar, err := s.deps.Semantic.Similar(ctx, scope.key, text, list)
		if err != nil {
			s.deps.Log.Warn().Err(err).Msg("memories not ranked by meaning; by words only")
		}
		for i := range list {
			near := (similar[list[i].ID] - similarFloor) / (similarFull - similarFloor)
			scores[i] = max(scores[i], min(near, 1))
		}
	}
	var hits []hit
	for i := range list {
		if scores[i] > 0 {
			hits = append(hits, hit{&list[i], scores[i]})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	return hits
}

// alike is the share of common words from which on two memories may be about the same.
const alike = 0.5

// wordOverlap returns how many of the words of two texts they have in common, from 0 to 1.
func wordOverlap(a, b []string) float64 {
	one := map[string]bool{}
	for _, t := range a {
		one[t] = true
	}
	both, all := 0, len(one)
	seen := map[string]bool{}
	for _, t := range b {
		switch {
		case seen[t]:
		case one[t]:
			both++
		default:
			all++
		}
		seen[t] = true
	}
	if all == 0 {
		return 0
	}
	return float64(both) / float64(all)
}

// nearMemories lists the memories that may be about the same as a new one, most similar first, at most three.
func nearMemories(m *Memory, list []Memory) []Memory {
	const most = 3
	words := catalog.Stems(m.document())
	var hits []hit
	for i := range list {
		if o := wordOverlap(words, catalog.Stems(list[i].document())); o >= alike && list[i].ID != m.ID {
			hits = append(hits, hit{&list[i], float32(o)})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	out := make([]Memory, min(len(hits), most))
	for i := range out {
		out[i] = *hits[i].Memory
	}
	return out
}
