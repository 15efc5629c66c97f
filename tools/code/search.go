package code

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/code/outline"
	"github.com/zephbot/zephbot/tools/file"
)

// Sources of hits, as shown.
const (
	fromStructure = "structural"
	fromVectors   = "vector search"
	fromSymbols   = "LSP symbol search"
	fromServer    = "LSP references"
	fromText      = "text references"
	fromLiteral   = "text search"
	fromGrep      = "grep fallback"
)

// hit is a result.
type hit struct {
	Path    string  `json:"file_path"` // as shown
	Start   int     `json:"line_start"`
	End     int     `json:"line_end"`
	Snippet string  `json:"snippet"`
	Source  string  `json:"source"`
	Score   float64 `json:"score"`
	Symbol  string  `json:"symbol_name,omitempty"`
	Hover   string  `json:"hover,omitempty"`

	abs   string
	line  int  // with the name
	exact bool // has the name or the text that was asked for
}

// search is one call of the tool.
type search struct {
	x     *Index
	ctx   context.Context //nolint:containedctx // a search lives as long as the call whose context it is
	call  *tools.Call
	view  *file.View
	pages *pages
	args  searchArgs
	want  *wanted
	roots []*root
	hits  []hit
	notes []string
}

// runLayers searches layer by layer.
func (s *search) runLayers() error {
	fresh := s.readyRoots(false)
	s.searchStructure()
	if len(s.hits) == 0 && !fresh && s.ctx.Err() == nil { // a file may have been written a moment ago
		s.readyRoots(true)
		s.searchStructure()
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	s.searchQuotes()
	s.searchMeaning()
	s.searchServer()
	if s.args.IncludeReferences && s.want.name != "" && !s.hasSource(fromServer) {
		s.searchText(s.want.name, true)
	}
	if len(s.hits) == 0 {
		s.searchText(cmp.Or(s.want.symbol, strings.TrimSpace(s.args.Query)), false)
	}
	s.mergeHits()
	return s.ctx.Err()
}

func (s *search) hasSource(source string) bool {
	return slices.ContainsFunc(s.hits, func(h hit) bool { return h.Source == source })
}

// readyRoots brings the index of each root up to date, within the time that a search waits. It reports
// whether the files were looked at.
func (s *search) readyRoots(again bool) (fresh bool) {
	fresh = true
	until, cancel := context.WithTimeout(s.ctx, s.x.Patience)
	defer cancel()
	s.notes = nil
	for _, r := range s.roots {
		if !again && s.x.isCurrent(until, r) {
			fresh = false
			continue
		}
		err := s.x.Refresh(until, r.path, s.tellProgress)
		r.mu.RLock()
		known, partial := len(r.files), r.partial
		r.mu.RUnlock()
		switch {
		case errors.Is(err, context.DeadlineExceeded) && s.ctx.Err() == nil:
			s.addNote(fmt.Sprintf(
				"[the index is not complete yet: %d files were read so far; ask again to go on]", known,
			))
		case err != nil && s.ctx.Err() == nil:
			s.x.logOnce(err, "code index: a directory cannot be read")
			s.addNote("[" + s.view.Display(r.path) + " could not be read]")
		case partial != "":
			s.addNote("[not everything is indexed, because " + partial + ": narrow the directory, or [index] paths]")
		}
	}
	return fresh
}

func (s *search) addNote(text string) {
	if !slices.Contains(s.notes, text) {
		s.notes = append(s.notes, text)
	}
}

// tellProgress tells the person who waits how far the index is.
func (s *search) tellProgress(p Progress) {
	if s.call.Progress == nil || p.Total == 0 {
		return
	}
	const width = 10
	full := min(width, width*p.Done/p.Total)
	bar := strings.Repeat("▓", full) + strings.Repeat("░", width-full)
	s.call.Progress(fmt.Sprintf("%s %d / %d", bar, p.Done, p.Total))
}

// isCurrent reports whether the index of a root is up to date without looking at its files.
func (x *Index) isCurrent(ctx context.Context, r *root) bool {
	r.mu.RLock()
	watched := r.watched
	r.mu.RUnlock()
	if !watched || x.Watcher == nil || !x.Watcher.Sync(ctx) {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return !r.dirty && r.watched
}

// searchStructure searches the symbols.
func (s *search) searchStructure() {
	var list []found
	for _, r := range s.roots {
		list = append(list, r.rankSymbols(s.want)...)
	}
	slices.SortFunc(list, compareFound)
	for i := range list {
		if len(s.hits) >= 2*s.args.resultLimit() {
			break
		}
		if h, ok := s.confirmFound(&list[i]); ok {
			s.hits = append(s.hits, h)
			s.addSpoken(&h)
		}
	}
}

// confirmFound reads the file of a symbol again, as the conversation may. A file that changed
// meanwhile is understood again.
func (s *search) confirmFound(f *found) (hit, bool) {
	abs := f.root.path + "/" + f.path
	p := s.pages.pageOf(abs)
	if p == nil {
		return hit{}, false
	}
	e := f.entry
	f.root.mu.RLock()
	known := f.root.files[f.path]
	same := known != nil && known.stamp.Size == p.stamp.Size && known.stamp.Modified == p.stamp.Modified
	f.root.mu.RUnlock()
	if !same {
		at := -1
		list := outline.Parse(s.x.languageOf(f.path), p.content).Symbols
		for i := range list {
			if list[i].Name == e.name && list[i].Container == e.container && list[i].Kind == e.kind {
				at = i
				break
			}
		}
		if at < 0 {
			return hit{}, false
		}
		e.start, e.line, e.end = line32(list[at].Start), line32(list[at].Line), line32(list[at].End)
	}
	h := s.newHit(abs, int(e.start), int(e.end), int(e.line), e.fullName(), f.score, fromStructure)
	h.exact = f.named
	return h, true
}

// newHit makes a result of lines of a file.
func (s *search) newHit(abs string, start, end, line int, symbol string, score float64, source string) hit {
	h := hit{
		Path: s.view.Display(abs), Start: start, End: max(start, end), Source: source, Score: score, Symbol: symbol,
		abs: abs, line: line,
	}
	if p := s.pages.pageOf(abs); p != nil {
		h.Snippet = p.snippetOf(line)
		h.End = min(h.End, len(p.lines))
	}
	return h
}

// searchMeaning searches passages.
func (s *search) searchMeaning() {
	if s.x.Semantic == nil || strings.TrimSpace(s.args.Query) == "" {
		return
	}
	for _, r := range s.roots {
		list, err := s.x.Semantic.Near(s.ctx, r.path, s.args.Query, 2*s.args.resultLimit())
		if err != nil {
			if s.ctx.Err() == nil {
				s.x.logOnce(err, "code index: the search by meaning failed; the other layers answer")
				s.addNote("[the search by meaning is not available at the moment]")
			}
			return
		}
		for _, near := range list {
			abs, ok := s.view.Canonical(r.path + "/" + near.Path)
			if !ok || !s.want.match(near.Path) {
				continue
			}
			p := s.pages.pageOf(abs)
			if p == nil || near.Start < 1 || near.Start > len(p.lines) {
				continue
			}
			score := near.Score
			if score <= 0 {
				score = semantic
			}
			line := near.Start
			for line < near.End && strings.TrimSpace(p.line(line)) == "" {
				line++
			}
			s.hits = append(s.hits, s.newHit(abs, near.Start, near.End, line, near.Symbol, min(score, 1), fromVectors))
		}
	}
}
