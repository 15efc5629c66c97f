package code

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/tools/code/outline"
)

// found is a symbol that fits, before it is read again.
type found struct {
	root  *root
	path  string
	entry entry
	score float64
	named bool // it has the name that was asked for
}

// Scores of the layers. A structural hit for words is between weakest and structural, by how well it fits.
const (
	structural = 0.98
	lspSymbol  = 0.95
	lspRefs    = 0.90
	quotedText = 0.97
	semantic   = 0.75
	textRefs   = 0.60
	textOnly   = 0.45
	weakest    = 0.46
)

// saturation is the weight at which a word counts half.
const saturation = 4.0

// wanted is what symbols are compared with.
type wanted struct {
	words       []string
	others      map[string][]string // synonyms of words
	identifiers []string
	symbol      string // as given
	name        string // its last part
	container   string // what qualifies it; "" = anything
	match       func(path string) bool
	tests       bool // the question is about tests
	limit       int
}

// newWanted prepares a search.
func newWanted(query, symbol string, match func(string) bool, limit int) *wanted {
	w := &wanted{match: match, limit: limit, symbol: strings.TrimSpace(symbol)}
	w.words, w.identifiers = questionWords(query)
	w.others = synonymsOf(w.words)
	w.tests = slices.Contains(w.words, "test")
	if texts := quotedTexts(w.symbol); len(texts) == 1 {
		w.symbol = texts[0]
	}
	w.name = strings.TrimRight(w.symbol, "()")
	for _, mark := range []string{"::", ".", "#"} {
		if i := strings.LastIndex(w.name, mark); i > 0 {
			w.container, w.name = w.name[:i], w.name[i+len(mark):]
			break
		}
	}
	if i := strings.LastIndexAny(w.container, ".:"); i >= 0 {
		w.container = w.container[i+1:]
	}
	w.container = strings.Trim(w.container, "(*)&")
	return w
}

// rankSymbols returns the best symbols of a root.
func (r *root) rankSymbols(w *wanted) []found {
	r.mu.RLock()
	defer r.mu.RUnlock()
	q := r.lookupWords(w.words, w.others)
	telling := r.tellingNames(w.identifiers, len(w.words))
	var best top
	for _, f := range r.fitFiles(q, w) {
		for i := range f.entries {
			e := &f.entries[i]
			score := w.nameScore(e)
			if score == 0 && slices.Contains(telling, e.name) {
				score = structural - 0.005
			}
			named := score > 0
			if fit := f.fitOf(i); fit > 0 && score < structural {
				score = max(score, weakest+(structural-0.01-weakest)*fit*kindWorth(e.kind))
			}
			if score > 0 {
				best.addFound(found{r, f.path, *e, score, named}, w.limit)
			}
		}
	}
	return best.list
}

// Of a question in more words than shortQuestion, a name that more than fewNames symbols have, such as __init__ or
// String, does not tell what is looked for.
const (
	shortQuestion = 3
	fewNames      = 3
)

// tellingNames returns the identifiers of a question whose symbols are what it asks for. The caller must hold mu.
func (r *root) tellingNames(identifiers []string, words int) []string {
	if len(identifiers) == 0 || words <= shortQuestion {
		return identifiers
	}
	counts := make([]int, len(identifiers))
	for _, f := range r.files {
		for i := range f.entries {
			if at := slices.Index(identifiers, f.entries[i].name); at >= 0 {
				counts[at]++
			}
		}
	}
	var telling []string
	for i, n := range counts {
		if n <= fewNames {
			telling = append(telling, identifiers[i])
		}
	}
	return telling
}

// query is a question in the terms of a root.
type query struct {
	at    []uint8 // 1 + position in the question, by the id of the word; 0 = it is not in the question; see akin
	known int     // words of the question that the root has
	idf   []float64
	total float64
}

// akin marks a word that only means the same as one of the question. Its weight is akinShare sixteenths of that word's.
const (
	akin      = 1 << 7
	akinShare = 6
)

// lookupWords looks up the words of a question. A word that no symbol has counts too, because a hit lacks it.
func (r *root) lookupWords(words []string, others map[string][]string) *query {
	q := &query{at: make([]uint8, len(r.counts))}
	n := float64(r.symbols + len(r.files) + 1)
	for i, word := range words {
		count := 0.0
		if id, ok := r.ids[word]; ok {
			q.at[id] = uint8(i + 1)
			q.known++
			count = float64(r.counts[id])
		}
		idf := math.Log(1 + n/(count+0.5))
		if isVague(word) {
			idf *= vagueWeigh
		}
		for _, other := range others[word] {
			if id, ok := r.ids[other]; ok && q.at[id] == 0 {
				q.at[id] = uint8(i+1) | akin
				q.known++
			}
		}
		if count == 0 { // nobody has it: it must not make every hit bad
			idf = 1
		}
		q.idf = append(q.idf, idf)
		q.total += idf
	}
	return q
}

// wordWeights returns the weight of each word of the question in a list of terms; nil = none is in it.
func (q *query) wordWeights(terms []term) []uint32 {
	var out []uint32
	for _, t := range terms {
		if i := q.at[t.id()]; i > 0 {
			if out == nil {
				out = make([]uint32, len(q.idf))
			}
			weight := t.weight()
			if i&akin != 0 {
				i &^= akin
				weight = weight * akinShare / 16
			}
			out[i-1] = max(out[i-1], weight)
		}
	}
	return out
}

// fitScore returns how well a symbol fits, from 0 to 1: the share of the words that it has, rare words counting more
// (BM25 with fields), and how much of its name the question mentions. own are the weights of the words in the symbol,
// base those in the path of its file.
func (q *query) fitScore(e *entry, own, base []uint32) float64 {
	if own == nil || q.total == 0 {
		return 0 // only its file fits; another symbol of it may fit better
	}
	sum, covered, named := 0.0, 0.0, 0
	for i, idf := range q.idf {
		weight := own[i]
		if base != nil {
			weight += base[i]
		}
		if weight == 0 {
			continue
		}
		if own[i] >= inName {
			named++
		}
		sum += idf * float64(weight) / (float64(weight) + saturation)
		covered += idf
	}
	precision := float64(named) / float64(max(int(e.words), 1))
	return sum / q.total * (0.55 + 0.3*covered/q.total + 0.15*min(precision, 1))
}

// nameScore returns the score of a symbol by its name alone; 0 = it has another one.
func (w *wanted) nameScore(e *entry) float64 {
	if w.name == "" {
		return 0
	}
	if w.container != "" && !strings.EqualFold(e.container, w.container) {
		return 0
	}
	switch {
	case e.name == w.name || e.name == w.symbol:
		return structural
	case len(e.name) < len(w.name):
		return 0
	case strings.EqualFold(e.name, w.name):
		return structural - 0.01
	case containsFold(e.name, w.name):
		return structural - 0.02 - 0.06*(1-float64(len(w.name))/float64(len(e.name)))
	}
	return 0
}

// containsFold reports whether s contains part, ignoring the case of ASCII letters.
func containsFold(s, part string) bool {
	for i := 0; i+len(part) <= len(s); i++ {
		if s[i]|0x20 == part[0]|0x20 && strings.EqualFold(s[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// fileQuality is below 1 for files that are rarely looked for.
func fileQuality(p string, tests bool) float64 {
	base := strings.ToLower(path.Base(p))
	test := strings.Contains(base, "_test.") || strings.HasPrefix(base, "test_") || strings.Contains(base, ".test.") ||
		strings.Contains(base, ".spec.") || strings.Contains(base, "_spec.")
	forTests := false
	for dir := range strings.SplitSeq(path.Dir(p), "/") {
		test = test || dir == "testdata" || dir == "test" || dir == "tests"
		forTests = forTests || strings.HasSuffix(dir, "test") || strings.Contains(dir, "mock")
	}
	switch {
	case test && !tests:
		return 0.75
	case strings.HasPrefix(p, "vendor/") || strings.Contains(p, "/vendor/") || strings.Contains(p, "third_party/"),
		strings.HasSuffix(base, ".min.js"), strings.HasSuffix(base, ".pb.go"), strings.Contains(base, "generated"):
		return 0.7
	case forTests && !tests: // such as httptest
		return 0.85
	}
	return 1
}

// kindWorth is below 1 for symbols that are rarely looked for.
func kindWorth(kind outline.Kind) float64 {
	switch kind {
	case outline.Key, outline.Section:
		return 0.75
	case outline.Constant, outline.Variable:
		return 0.85
	}
	return 1
}

// top keeps the best hits.
type top struct {
	list []found
	bar  float64 // of the worst, once the list is full
}

func (t *top) addFound(f found, limit int) {
	if len(t.list) >= 4*limit {
		if f.score < t.bar {
			return
		}
		t.cutTop(limit * 2)
	}
	t.list = append(t.list, f)
}

func (t *top) cutTop(n int) {
	slices.SortFunc(t.list, compareFound)
	if len(t.list) > n {
		t.list = t.list[:n]
	}
	t.bar = t.list[len(t.list)-1].score
}

func compareFound(a, b found) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.path, b.path), cmp.Compare(a.entry.line, b.entry.line),
		cmp.Compare(a.entry.name, b.entry.name))
}
