package code

import (
	"cmp"
	"slices"
)

// tier says which hits come before which others. Inside of a tier the score decides, except for fused ones.
type tier int

const (
	exact  tier = iota // has the name or the text that was asked for
	usage              // uses of that name
	likely             // fits the words or the meaning of the question
	rest
)

func (h *hit) tier() tier {
	switch {
	case h.exact || h.Source == fromSymbols:
		return exact
	case h.Source == fromServer || h.Source == fromText:
		return usage
	case h.Source == fromGrep:
		return rest
	}
	return likely
}

// mergeHits orders the hits and removes those that say the same, the one with the higher score is kept. What was asked
// for by its name or its text comes first. Scores of different layers cannot be compared, so that the others are
// ordered by their places in their layers.
func (s *search) mergeHits() {
	slices.SortStableFunc(s.hits, func(a, b hit) int {
		return cmp.Or(
			cmp.Compare(a.tier(), b.tier()),
			cmp.Compare(b.Score, a.Score),
			cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Start, b.Start),
		)
	})
	var out, fits, last []hit
	for _, h := range s.hits {
		switch t := h.tier(); {
		case t == likely:
			fits = append(fits, h)
		case slices.ContainsFunc(out, func(o hit) bool {
			return o.abs == h.abs && o.Start == h.Start && o.End == h.End
		}):
		case t == rest:
			last = append(last, h)
		default:
			out = append(out, h)
		}
	}
	for _, h := range fuseRanks(fits) {
		if !slices.ContainsFunc(out, func(o hit) bool { return o.sameDeclaration(&h) }) {
			out = append(out, h)
		}
	}
	s.hits = append(out, last...)
	s.hits = s.hits[:min(len(s.hits), s.args.resultLimit())]
}

// sameDeclaration reports whether two hits show the same declaration.
func (h *hit) sameDeclaration(o *hit) bool {
	return h.abs == o.abs && h.Start <= o.End && o.Start <= h.End && h.Symbol == o.Symbol
}

// Weights of places. The smaller smoothing is, the more the first places of a layer are worth in comparison with the
// next ones. A small model for embeddings is wrong more often than the words of names and comments; see docs/search.md.
const (
	smoothing   = 5.0
	wordsWeigh  = 1.0
	vectorWeigh = 0.6
)

// fuseRanks orders hits of several layers, each of which is in the order of its scores, by reciprocal rank fusion: a
// declaration counts weight/(smoothing+place) for each layer that has it.
func fuseRanks(hits []hit) []hit {
	type declaration struct {
		best   hit
		worth  float64
		layers []string
	}
	var list []*declaration
	places := map[string]int{}
	for _, h := range hits {
		at := slices.IndexFunc(list, func(d *declaration) bool {
			return d.best.sameDeclaration(&h) || d.best.sameLong(&h)
		})
		if at < 0 {
			at = len(list)
			list = append(list, &declaration{best: h})
		}
		d := list[at]
		if slices.Contains(d.layers, h.Source) {
			continue
		}
		places[h.Source]++
		d.layers = append(d.layers, h.Source)
		weight := wordsWeigh
		if h.Source == fromVectors {
			weight = vectorWeigh
		}
		d.worth += weight / (smoothing + float64(places[h.Source]))
	}
	slices.SortStableFunc(list, func(a, b *declaration) int { return cmp.Compare(b.worth, a.worth) })
	out := make([]hit, len(list))
	for i, d := range list {
		out[i] = d.best
	}
	return out
}

// sameLong reports whether two hits are passages of the same long declaration.
func (h *hit) sameLong(o *hit) bool {
	return h.abs == o.abs && h.Source == fromVectors &&
		o.Source == fromVectors && h.Symbol == o.Symbol && h.Symbol != ""
}
