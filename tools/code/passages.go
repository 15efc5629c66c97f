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
	maxImports    = 5
	maxHead       = 400 // bytes of the imports and the path before a passage
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
		r := x.root(path)
		if err := r.lock(ctx); err != nil {
			yield(Passage{}, err)
			return
		}
		x.load(ctx, r)
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
			p := pages.of(path + "/" + name)
			if p == nil {
				continue
			}
			for _, passage := range passages(name, x.language(name), p) {
				if !yield(passage, nil) {
					return
				}
			}
		}
	}
}

// passages splits a file at its symbols.
func passages(name string, lang outline.Language, p *page) []Passage {
	head := name + "\n" + imports(p)
	var out []Passage
	add := func(start, end int, symbol, doc string) {
		text := p.text(start, end)
		size := letters(text)
		if size == 0 {
			return
		}
		if n := len(out); n > 0 && size < leastPassage && out[n-1].End+3 >= start && letters(out[n-1].Text) < targetPassage {
			out[n-1].End = end
			out[n-1].Text += text
			return
		}
		if doc != "" {
			doc += "\n"
		}
		out = append(out, Passage{
			Key: name + "#" + strconv.Itoa(len(out)), Path: name, Start: start, End: end, Symbol: symbol,
			Text: head + doc + text,
		})
	}
	list := outline.Parse(lang, p.content).Symbols
	if whole(lang) || len(list) == 0 {
		_, end := cutLines(p, 1, len(p.lines))
		add(1, end, "", "")
		return out
	}
	last := 0 // the last line that is in a passage
	for i := range list {
		s := &list[i]
		start, end := max(s.Start, last+1), min(s.End, len(p.lines))
		if i+1 < len(list) && list[i+1].Start <= end && list[i+1].Start > s.Start { // it contains others
			end = list[i+1].Start - 1
		}
		symbol := s.Name
		if s.Container != "" {
			symbol = s.Container + "." + s.Name
		}
		for start <= end {
			from, to := cutLines(p, start, end)
			add(from, to, symbol, s.Doc)
			start = to + 1
		}
		last = max(last, end)
	}
	return out
}

// whole reports whether the files of a language are not split.
func whole(lang outline.Language) bool {
	return lang == outline.TOML || lang == outline.JSON || lang == outline.YAML
}

// cutLines returns lines from start on that are not more than a passage can hold.
func cutLines(p *page, start, end int) (from, to int) {
	size := 0
	for line := start; line <= end; line++ {
		size += letters(p.line(line))
		if size > mostPassage && line > start {
			return start, line - 1
		}
	}
	return start, end
}

func letters(s string) int {
	n := 0
	for _, r := range s {
		if !unicode.IsSpace(r) {
			n++
		}
	}
	return n
}

// imports returns the first lines of a file that import something.
func imports(p *page) string {
	var out []string
	size := 0
	for n := 1; n <= min(len(p.lines), 80) && len(out) < maxImports && size < maxHead; n++ {
		line := strings.TrimSpace(p.line(n))
		word, _, _ := strings.Cut(line, " ")
		switch word {
		case "import", "from", "use", "#include", "require", "require_relative", "package":
			line = oneLine(line)
			out = append(out, line)
			size += len(line)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "\n") + "\n"
}
