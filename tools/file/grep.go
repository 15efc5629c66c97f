package file

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/zephbot/zephbot/tools"
)

type grepArgs struct {
	Pattern       string `json:"pattern" jsonschema:"regular expression (RE2 syntax) that is looked for in every line"`
	Path          string `json:"path,omitempty" jsonschema:"file or directory to search; without it the working directory"`
	CaseSensitive *bool  `json:"case_sensitive,omitempty" jsonschema:"false: upper and lower case are the same; true when not given"`
}

// Limits of grep.
const (
	maxMatches     = 100
	maxMatchText   = 400     // bytes of a line that are shown
	maxSearch      = 4 << 30 // bytes that one call searches
	filesPerBatch  = 32
	mostSearchers  = 8
	leastSearchers = 2
)

func (t *toolset) grepTool() (tools.Tool, error) {
	return onPath[grepArgs]{
		def: tools.Definition{
			Name: "grep", ReadOnly: true,
			Description: fmt.Sprintf(
				"Searches the content of files for a regular expression. Gives path:line: text, sorted, at most %d "+
					"lines. Binary files, hidden names, target, node_modules and what .gitignore excludes "+
					"are left out.",
				maxMatches,
			),
		},
		path: func(in grepArgs) string {
			if in.Path == "" {
				return "."
			}
			return in.Path
		},
		follow: true,
		show: func(s *scope, p place, in grepArgs) string {
			return quoteName(in.Pattern) + " · " + showName(s.displayPath(p.abs))
		},
		may: mayGrep,
		run: grepFiles,
	}.newTool(t)
}

// mayGrep returns why a search cannot be made.
func mayGrep(s *scope, p place, in grepArgs) error {
	if _, err := newMatcher(in.Pattern, in.CaseSensitive == nil || *in.CaseSensitive); err != nil {
		return err
	}
	switch {
	case p.isRoot(): // it is made when it is used first
		return nil
	case !p.doesExist():
		return s.missingError(p)
	case !p.isDir():
		return s.checkReadable(p)
	}
	return nil
}

func grepFiles(s *scope, p place, in grepArgs) (*tools.Result, error) {
	m, err := newMatcher(in.Pattern, in.CaseSensitive == nil || *in.CaseSensitive)
	if err != nil {
		return nil, err
	}
	none := "No matches for " + showName(in.Pattern)
	if p.doesExist() && !p.isDir() {
		return grepFile(s, p, m, none)
	}
	if !p.doesExist() {
		return nil, s.missingError(p)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	inner := *s
	inner.ctx = ctx
	g := &search{
		s:       &inner,
		m:       m,
		late:    inner.startStopwatch(),
		cancel:  cancel,
		found:   map[int]finding{},
		batches: make(chan batch, 4),
	}
	if err := g.runSearch(p); err != nil {
		return nil, systemError(err, "search", p.given)
	}
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	total, more := g.joinFindings()
	return answerFound(total.lines, none, more, &g.w, total.skippedNotes()), nil
}

// grepFile searches a single file that the call names.
func grepFile(s *scope, p place, m *matcher, none string) (*tools.Result, error) {
	f, _, err := s.openContent(p) // reports why it must not be read
	if err != nil {
		return nil, err
	}
	_ = f.Close() // opened for reading; the searcher opens it again, with its own checks
	d, err := s.openParent(p)
	if err != nil {
		return nil, systemError(err, "search", p.given)
	}
	top := shareDir(d)
	defer top.release()
	var spent atomic.Int64
	found := newSearcher(s, m, &spent, s.startStopwatch()).searchBatch(batch{d: top, names: []string{p.base()}})
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	more := len(found.lines) > maxMatches
	found.lines = found.lines[:min(maxMatches, len(found.lines))]
	var w walker
	if found.late && !more {
		w.stopped = timeOver
	}
	return answerFound(found.lines, none, more, &w, found.skippedNotes()), nil
}

// batch is a number of files from one directory, in order.
type batch struct {
	seq   int
	d     *shared
	names []string
}

// finding is the result of a batch.
type finding struct {
	lines                        []string
	denied, locked, foreign, big int  // files that were not searched
	long                         int  // lines that were searched in pieces
	decoded                      int  // files with matches that are not UTF-8
	late                         bool // the time was over before everything was searched
}

func (f *finding) addFinding(o finding) {
	f.lines = append(f.lines, o.lines...)
	f.denied += o.denied
	f.locked += o.locked
	f.foreign += o.foreign
	f.big += o.big
	f.long += o.long
	f.decoded += o.decoded
	f.late = f.late || o.late
}

// skippedNotes returns remarks about what was not searched.
func (f *finding) skippedNotes() []string {
	var notes []string
	say := func(n int, why string) {
		if n > 0 {
			notes = append(notes, "["+countNoun(n, "file", "files")+" not searched: "+why+"]")
		}
	}
	say(f.denied, "may not be read here")
	say(f.locked, "could not be opened")
	say(f.foreign, "not UTF-8, and not decoded")
	say(f.big, "too much to search")
	if f.decoded > 0 {
		notes = append(notes, "["+countNoun(f.decoded, "file is", "files are")+" not UTF-8: decoded before the search]")
	}
	if f.long > 0 {
		notes = append(notes, fmt.Sprintf(
			"[%s longer than %d MiB: searched in pieces of that size, as if each were a line]",
			countNoun(f.long, "line is", "lines are"), mostBuffer>>20,
		))
	}
	return notes
}

// search is a walk whose files are searched by several goroutines. The results are in the order of the walk.
type search struct {
	s       *scope
	m       *matcher
	late    func() bool
	w       walker
	cancel  func()
	batches chan batch
	spent   atomic.Int64

	seq     int // used only by the walk
	current batch

	mu    sync.Mutex
	found map[int]finding
	done  int // number of successive batches, from the first, that are finished
	lines int // matches in them
}

// runSearch returns when the walk is over and all searchers have finished.
func (g *search) runSearch(p place) error {
	var wg sync.WaitGroup
	for range min(max(runtime.GOMAXPROCS(0), leastSearchers), mostSearchers) {
		wg.Go(func() {
			searcher := newSearcher(g.s, g.m, &g.spent, g.late)
			for b := range g.batches {
				found := searcher.searchBatch(b)
				b.d.release()
				g.keepFinding(b.seq, found)
			}
		})
	}
	g.w = walker{s: g.s, tidy: true, leave: g.flushBatch, visit: g.visitFile}
	err := g.w.walkPlace(p)
	if g.current.d != nil {
		g.current.d.release()
	}
	close(g.batches)
	wg.Wait()
	if g.hasEnough() {
		return nil // the walk was stopped because the answer is full
	}
	return err
}

func (g *search) visitFile(d *shared, _ string, e fs.DirEntry) error {
	if !e.Type().IsRegular() {
		return nil
	}
	if g.current.d == nil {
		g.current = batch{seq: g.seq, d: d.hold()}
		g.seq++
	}
	g.current.names = append(g.current.names, e.Name())
	if len(g.current.names) == filesPerBatch {
		return g.flushBatch()
	}
	return nil
}

// flushBatch passes the collected files to a searcher.
func (g *search) flushBatch() error {
	if g.current.d == nil {
		return nil
	}
	select {
	case g.batches <- g.current:
		g.current = batch{}
		return nil
	case <-g.s.ctx.Done():
		return g.s.ctx.Err()
	}
}

// keepFinding stores a finding, and stops the search when the finished batches at the beginning fill the answer.
func (g *search) keepFinding(seq int, f finding) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.found[seq] = f
	for {
		next, ok := g.found[g.done]
		if !ok {
			break
		}
		g.lines += len(next.lines)
		g.done++
	}
	if g.lines > maxMatches {
		g.cancel()
	}
}

func (g *search) hasEnough() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lines > maxMatches
}

// joinFindings joins the findings in order. Batches after the one that filled the answer do not count, because it is
// random whether they were searched.
func (g *search) joinFindings() (total finding, more bool) {
	for seq := range g.done {
		total.addFinding(g.found[seq])
		if len(total.lines) > maxMatches {
			total.lines = total.lines[:maxMatches]
			g.w.locked, g.w.stopped = 0, ""
			return total, true
		}
	}
	if total.late {
		g.w.stopped = timeOver
	}
	return total, false
}

// shownMatch returns a line of the answer.
func shownMatch(path string, line int, text []byte, at int) string {
	text = bytes.TrimSuffix(text, []byte("\r"))
	before, after := "", ""
	if len(text) > maxMatchText {
		from := max(0, min(at-maxMatchText/4, len(text)-maxMatchText))
		for from > 0 && from < len(text) && !utf8.RuneStart(text[from]) {
			from--
		}
		to := min(from+maxMatchText, len(text))
		for to < len(text) && !utf8.RuneStart(text[to]) {
			to--
		}
		if from > 0 {
			before = "… "
		}
		if to < len(text) {
			after = " …"
		}
		text = text[from:to]
	}
	return fmt.Sprintf("%s:%d: %s%s%s", path, line, before, text, after)
}
