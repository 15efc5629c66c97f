package code

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/zephbot/zephbot/tools/code/outline"
)

// Sizes of passages, in characters without white space.
const (
	targetPassage = 600
	mostPassage   = 1200
	leastPassage  = 100
)

// Passage is a piece of code for a search by meaning.
type Passage struct {
	Key        string // unique in its root
	Path       string // relative to the root
	Start, End int    // lines
	Symbol     string
	Text       string
}

// Passages returns the passages of a root, file by file, as the file tools may read them. Files of configuration and
// data are one passage each.
func (x *Index) Passages(ctx context.Context, path string) iter.Seq2[Passage, error] {
	return func(yield func(Passage, error) bool) {
		r := x.loadRoot(path)
		if err := r.lock(ctx); err != nil {
			yield(Passage{}, err)
			return
		}
		x.loadStored(ctx, r)
		r.unlock()
		r.mu.RLock()
		names := slices.Sorted(maps.Keys(r.files))
		r.mu.RUnlock()
		view := x.Sources.Below(ctx, path)
		defer view.Close()
		pages := &pages{view: view, read: map[string]*page{}}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				yield(Passage{}, err)
				return
			}
			clear(pages.read)
			p := pages.pageOf(path + "/" + name)
			if p == nil {
				continue
			}
			for _, passage := range splitPassages(name, x.languageOf(name), p) {
				if !yield(passage, nil) {
					return
				}
			}
		}
	}
}

// splitPassages splits a file at its symbols. A passage begins with what says most about it, because models read the
// beginning of a text best, and small ones nothing else: the words of its name, its
// comment, then its path and its lines.
func splitPassages(name string, lang outline.Language, p *page) []Passage {
	s := &splitting{name: name, page: p}
	list := outline.Parse(lang, p.content).Symbols
	if isUnsplit(lang) || len(list) == 0 {
		_, end := cutLines(p, 1, len(p.lines))
		s.addLines(1, end, &outline.Symbol{})
		return s.out
	}
	last := 0 // the last line that is in a passage
	for i := range list {
		symbol := list[i]
		start, end := max(symbol.Start, last+1), min(symbol.End, len(p.lines))
		if i+1 < len(list) && list[i+1].Start <= end && list[i+1].Start > symbol.Start { // it contains others
			end = list[i+1].Start - 1
		}
		for start <= end {
			from, to := cutLines(p, start, end)
			s.addLines(from, to, &symbol)
			start = to + 1
			symbol.Doc = "" // is about the whole
		}
		last = max(last, end)
	}
	return s.out
}

// splitting collects the passages of a file.
type splitting struct {
	name string
	page *page
	out  []Passage
}

// addLines appends lines of a symbol. Few of them are added to the passage before.
func (s *splitting) addLines(start, end int, of *outline.Symbol) {
	text := s.page.text(start, end)
	size := countLetters(text)
	if size == 0 {
		return
	}
	title := splitIdentifier(of.Name)
	if n := len(s.out); n > 0 && size < leastPassage &&
		s.out[n-1].End+3 >= start && countLetters(s.out[n-1].Text) < targetPassage {
		s.out[n-1].End = end
		s.out[n-1].Text += strings.TrimLeft(title+"\n", "\n") + text
		return
	}
	symbol := of.Name
	if of.Container != "" {
		symbol = of.Container + "." + of.Name
		title += ", " + splitIdentifier(of.Container)
	}
	head := slices.DeleteFunc([]string{title, of.Doc, s.name, text}, func(part string) bool { return part == "" })
	s.out = append(s.out, Passage{
		Key:    s.name + "#" + strconv.Itoa(len(s.out)),
		Path:   s.name,
		Start:  start,
		End:    end,
		Symbol: symbol,
		Text:   strings.Join(head, "\n"),
	})
}

// splitIdentifier returns an identifier as the words that it consists of.
func splitIdentifier(name string) string {
	var words []string
	splitWords(name, func(word string) { words = append(words, strings.ToLower(word)) })
	return strings.Join(words, " ")
}

// isUnsplit reports whether the files of a language are not split.
func isUnsplit(lang outline.Language) bool {
	return lang == outline.TOML || lang == outline.JSON || lang == outline.YAML
}

// cutLines returns lines from start on that are not more than a passage can hold.
func cutLines(p *page, start, end int) (from, to int) {
	size := 0
	for line := start; line <= end; line++ {
		size += countLetters(p.line(line))
		if size > mostPassage && line > start {
			return start, line - 1
		}
	}
	return start, end
}

func countLetters(s string) int {
	n := 0
	for _, r := range s {
		if !unicode.IsSpace(r) {
			n++
		}
	}
	return n
}
