package code

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/policy/gram"
	"github.com/zephbot/zephbot/tools/code/outline"
	"github.com/zephbot/zephbot/tools/file"
)

// indexed is a file in memory.
type indexed struct {
	stamp   file.Stamp
	hash    string
	entries []entry
	path    []term // of its name
	grams   *gram.Set
}

// text is what a file can contain, in lower case.
type text struct {
	stamp file.Stamp
	grams *gram.Set
}

// entry is a symbol in memory.
type entry struct {
	name, container string
	kind            outline.Kind
	start, line     int32
	end             int32
	words           uint8 // of the name
	terms           []term
}

// fullName returns the name with its container.
func (e *entry) fullName() string {
	if e.container == "" {
		return e.name
	}
	return e.container + "." + e.name
}

// term is a word with its weight in a symbol: the number of the word times 256, and the weight.
type term uint32

func (t term) id() uint32     { return uint32(t) >> 8 }
func (t term) weight() uint32 { return uint32(t) & 0xff }

// maxTerms limits the different words of a root; others are not found.
const maxTerms = 1 << 23

// root is the state of a directory.
type root struct {
	path string
	turn chan struct{} // holds one value while somebody refreshes it
	used int64         // guarded by Index.mu

	mu      sync.RWMutex
	files   map[string]*indexed
	texts   map[string]text // files that are not indexed and were read by a search
	symbols int
	ids     map[string]uint32
	counts  []uint32 // by id: symbols and files with the word
	loaded  bool     // from the store
	dirty   bool     // something may have changed
	watched bool
	walked  time.Time
	partial string // why not everything is in it; "" = it is complete
}

func (r *root) size() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.symbols
}

// lock waits for the right to refresh the root.
func (r *root) lock(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *root) unlock() { <-r.turn }

// touchRoot says that something may have changed.
func (r *root) touchRoot() {
	r.mu.Lock()
	r.dirty = true
	r.mu.Unlock()
}

// Weights of the words of a symbol, by where they are.
const (
	inName      = 16
	inContainer = 6
	inPath      = 6
	inDoc       = 3
	// The words of a body count less the more there are.
	inShortBody = 3
	inBody      = 2
	inLongBody  = 1

	shortBody = 25 // words
	longBody  = 80
)

// putFile stores or replaces a file. The caller must hold mu.
func (r *root) putFile(path string, stamp file.Stamp, hash string, k known) {
	r.removeFile(path)
	f := &indexed{stamp: stamp, hash: hash, entries: make([]entry, 0, len(k.symbols)), grams: k.grams}
	weights := map[uint32]uint32{}
	f.path = r.countTerms(weights, part{path, inPath})
	for i := range k.symbols {
		s := &k.symbols[i]
		e := entry{
			name: s.Name, container: s.Container, kind: s.Kind,
			start: line32(s.Start), line: line32(s.Line), end: line32(s.End),
			words: uint8(min(len(searchWords(s.Name)), math.MaxUint8)),
		}
		e.terms = r.countTerms(weights, part{
			s.Name,
			inName,
		}, part{s.Container, inContainer}, part{string(s.Kind), inDoc}, part{s.Doc, inDoc})
		e.terms = r.addBody(e.terms, s.body)
		f.entries = append(f.entries, e)
	}
	r.files[path] = f
	r.symbols += len(f.entries)
}

func line32(n int) int32 { return int32(min(n, math.MaxInt32)) }

// part is a text with the weight of its words.
type part struct {
	text   string
	weight uint32
}

// countTerms returns the words of some texts and counts them. A word that occurs repeatedly
// has the largest of its weights.
func (r *root) countTerms(weights map[uint32]uint32, parts ...part) []term {
	clear(weights)
	for _, p := range parts {
		for _, word := range searchWords(p.text) {
			if id, ok := r.wordID(word); ok {
				weights[id] = max(weights[id], p.weight)
			}
		}
	}
	out := make([]term, 0, len(weights))
	for id, weight := range weights {
		out = append(out, term(id<<8|weight))
		r.counts[id]++
	}
	return out
}

// wordID returns the number of a word, a new one if it is new; false = there are too many words.
func (r *root) wordID(word string) (uint32, bool) {
	id, ok := r.ids[word]
	if ok {
		return id, true
	}
	if len(r.counts) >= maxTerms {
		return 0, false
	}
	if r.ids == nil {
		r.ids = map[string]uint32{}
	}
	id = uint32(len(r.counts))
	r.ids[strings.Clone(word)] = id
	r.counts = append(r.counts, 0)
	return id, true
}

// addBody adds the words of a body to the terms of its symbol, and counts them.
func (r *root) addBody(terms []term, body string) []term {
	if body == "" {
		return terms
	}
	n := strings.Count(body, " ") + 1
	weight := uint32(inBody)
	switch {
	case n < shortBody:
		weight = inShortBody
	case n > longBody:
		weight = inLongBody
	}
	out := make([]term, len(terms), len(terms)+n)
	copy(out, terms)
	for word := range strings.SplitSeq(body, " ") {
		if id, ok := r.wordID(word); ok {
			out = append(out, term(id<<8|weight))
			r.counts[id]++
		}
	}
	return out
}

// removeFile removes a file. The caller must hold mu.
func (r *root) removeFile(path string) {
	f := r.files[path]
	if f == nil {
		return
	}
	for _, t := range f.path {
		r.counts[t.id()]--
	}
	for i := range f.entries {
		for _, t := range f.entries[i].terms {
			r.counts[t.id()]--
		}
	}
	r.symbols -= len(f.entries)
	delete(r.files, path)
}
