package catalog

import (
	"math"
	"slices"
)

// The parameters of BM25. b is lower than usual, because a tool with many parameters is long without being less
// specific.
const (
	bmK1        = 1.2
	bmB         = 0.4
	weightName  = 3 // weight of a term in the tool's own name
	idealTerms  = 2
	maxDescText = 2000 // bytes of a description that are used
)

// document holds the term frequencies of a tool's texts.
type document struct {
	terms  []string
	freq   []float32
	length float32
}

func newDocument(name, server, description string, params []string) document {
	at := map[string]int{}
	var d document
	add := func(text string, weight float32) {
		list, _ := splitTerms(text)
		for _, t := range list {
			i, ok := at[t]
			if !ok {
				i = len(d.terms)
				at[t] = i
				d.terms, d.freq = append(d.terms, t), append(d.freq, 0)
			}
			d.freq[i] += weight
			d.length += weight
		}
	}
	add(name, weightName)
	add(server, 1)
	add(description[:min(len(description), maxDescText)], 1)
	for _, p := range params {
		add(p, 1)
	}
	return d
}

// wordIndex ranks documents by words (Okapi BM25). Immutable.
type wordIndex struct {
	size int
	term map[string]int32
	idf  []float32
	post [][]posting
}

// posting is a term in a document with its saturated frequency, 0..1.
type posting struct {
	doc int32
	tf  float32
}

func newWordIndex(docs []document) *wordIndex {
	x := &wordIndex{size: len(docs), term: map[string]int32{}}
	var total float32
	for _, d := range docs {
		total += d.length
	}
	average := max(total/float32(max(len(docs), 1)), 1)
	for i, d := range docs {
		norm := bmK1 * (1 - bmB + bmB*d.length/average)
		for j, t := range d.terms {
			id, ok := x.term[t]
			if !ok {
				id = int32(len(x.post))
				x.term[t] = id
				x.post = append(x.post, nil)
			}
			x.post[id] = append(x.post[id], posting{int32(i), d.freq[j] / (d.freq[j] + norm)})
		}
	}
	x.idf = make([]float32, len(x.post))
	for id, list := range x.post {
		n := float64(len(list))
		x.idf[id] = float32(math.Log1p((float64(len(docs)) - n + 0.5) / (n + 0.5)))
	}
	return x
}

// rankDocuments scores every document, 0..1. The BM25 sum is divided by the weights of the two heaviest (rarest) words
// of the query that the index knows, so that a long message demands no more than a short one, and the result is capped
// at 1. A tool whose name contains one of two equally rare words scores about 0.35; one with only one of them in its
// description about 0.2, in two places of it about 0.3; one whose name contains the only known word about 0.7. A
// threshold of 0.30 therefore keeps tools that are named, or described by more than one word. known is the number of
// the query's terms that occur in any document.
func (x *wordIndex) rankDocuments(query []string) (scores []float32, known int) {
	scores = make([]float32, x.size)
	var weights []float32
	seen := map[int32]bool{}
	for _, t := range query {
		id, ok := x.term[t]
		if !ok || seen[id] {
			continue
		}
		seen[id] = true
		w := x.idf[id]
		weights = append(weights, w)
		for _, p := range x.post[id] {
			scores[p.doc] += w * p.tf
		}
	}
	slices.SortFunc(weights, func(a, b float32) int {
		switch {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return 0
	})
	var ideal float32
	for _, w := range weights[:min(len(weights), idealTerms)] {
		ideal += w
	}
	if ideal > 0 {
		for i := range scores {
			scores[i] = min(scores[i]/ideal, 1)
		}
	}
	return scores, len(weights)
}
