package code

import (
	"path"

	"github.com/zephbot/zephbot/tools/code/outline"
)

// A question in words is about a subject more often than about a line, and the declarations of a file or a directory
// share theirs. So a declaration counts more if what is around it fits too.
const (
	fileShare  = 0.2 // of the fit of a declaration that is the fit of its file
	dirShare   = 0.25
	aboutWeigh = 10.0 // how often the words of a package comment count for its directory
	halfFile   = 8.0  // weight of a word at which it counts half, in a file of usual length
	halfDir    = 32.0
	longer     = 0.5 // how much the length of a file or directory matters, from 0 to 1 (b of BM25)
)

// weighed is a file or a directory with the weights of a question's words in it.
type weighed struct {
	words []float64
	terms int // words of its symbols
}

// fitWhole returns how well it fits, from 0 to 1.
func (c *weighed) fitWhole(q *query, half, usual float64) float64 {
	if q.total == 0 || usual == 0 {
		return 0
	}
	half *= 1 - longer + longer*float64(c.terms)/usual
	sum := 0.0
	for i, n := range c.words {
		if n > 0 {
			sum += q.idf[i] * n / (n + half)
		}
	}
	return sum / q.total
}

// fitted is a file with how well it and its symbols fit.
type fitted struct {
	*indexed
	path    string
	fits    []float64 // of the entries; nil = none fits
	around  float64   // share of the file and its directory
	quality float64
	weighed weighed
}

// fitOf returns how well an entry fits, from 0 to 1.
func (f *fitted) fitOf(i int) float64 {
	if f.fits == nil || f.fits[i] == 0 {
		return 0
	}
	return (f.fits[i]*(1-fileShare-dirShare) + f.around) * f.quality
}

// fitFiles compares the files that are searched with a question. The caller must hold mu.
func (r *root) fitFiles(q *query, w *wanted) []*fitted {
	list := make([]*fitted, 0, len(r.files))
	dirs := map[string]*weighed{}
	total := 0
	for p, indexed := range r.files {
		if !w.match(p) {
			continue
		}
		f := &fitted{indexed: indexed, path: p}
		list = append(list, f)
		if q.known == 0 {
			continue
		}
		f.quality = fileQuality(p, w.tests)
		about := f.fitEntries(q)
		dir := dirs[path.Dir(p)]
		if dir == nil {
			dir = &weighed{words: make([]float64, len(q.idf))}
			dirs[path.Dir(p)] = dir
		}
		for i, n := range f.weighed.words {
			dir.words[i] += n * f.quality
		}
		for i, n := range about {
			dir.words[i] += aboutWeigh * float64(n) * f.quality
		}
		dir.terms += f.weighed.terms
		total += f.weighed.terms
	}
	byDir := map[string]float64{}
	for name, dir := range dirs {
		byDir[name] = dirShare * dir.fitWhole(q, halfDir, float64(total)/float64(len(dirs)))
	}
	for _, f := range list {
		if f.fits != nil {
			f.around = byDir[path.Dir(f.path)] + fileShare*f.weighed.fitWhole(q, halfFile, float64(total)/float64(len(list)))
		}
	}
	return list
}

// fitEntries compares the entries of a file with a question, and returns the weights of the words in its package
// comment.
func (f *fitted) fitEntries(q *query) (about []uint32) {
	base := q.wordWeights(f.indexed.path)
	add := func(weights []uint32) {
		if weights != nil && f.weighed.words == nil {
			f.weighed.words = make([]float64, len(q.idf))
		}
		for i, n := range weights {
			f.weighed.words[i] += float64(n)
		}
	}
	add(base)
	for i := range f.entries {
		e := &f.entries[i]
		f.weighed.terms += len(e.terms)
		own := q.wordWeights(e.terms)
		if own == nil {
			continue
		}
		add(own)
		if e.kind == outline.Module {
			about = own
		}
		if f.fits == nil {
			f.fits = make([]float64, len(f.entries))
		}
		f.fits[i] = q.fitScore(e, own, base)
	}
	return about
}
