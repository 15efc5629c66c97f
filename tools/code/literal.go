package code

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Limits of texts in quotes.
const (
	maxQuoted    = 3 // of one question
	leastQuoted  = 2 // bytes
	leastLiteral = 8 // bytes of a question that may be a text itself
)

// inQuotes finds texts in quotes. Apostrophes are none.
var inQuotes = regexp.MustCompile("\"([^\"]+)\"|`([^`]+)`|“([^”]+)”|„([^“”]+)[“”]|«([^»]+)»")

// quotedTexts returns the texts that a question quotes.
func quotedTexts(question string) (list []string) {
	for _, m := range inQuotes.FindAllStringSubmatch(question, -1) {
		text := strings.TrimSpace(strings.Join(m[1:], "")) // only one is not empty
		if len(text) >= leastQuoted && !slices.Contains(list, text) && len(list) < maxQuoted {
			list = append(list, text)
		}
	}
	return list
}

// searchQuotes searches for the texts that the question quotes, in all files.
func (s *search) searchQuotes() {
	for _, text := range quotedTexts(s.args.Query + " " + s.args.Symbol) {
		list := s.textLines(literalMatcher(text))
		for i := range list {
			list[i].score = s.literalScore(&list[i], text)
		}
		slices.SortStableFunc(list, func(a, b textHit) int { return cmp.Compare(b.score, a.score) })
		for _, t := range list[:min(len(list), s.args.resultLimit())] {
			s.hits = append(s.hits, s.literalHit(t.abs, t.line, t.score))
		}
	}
}

// literalScore is how likely a line is the one that is meant: where the text begins a string rather than where a
// comment mentions it, in the same case, and not in a test.
func (s *search) literalScore(t *textHit, text string) float64 {
	p := s.pages.pageOf(t.abs)
	if p == nil {
		return 0
	}
	line, score := p.line(t.line), 1.0
	if !strings.Contains(line, text) {
		score -= 0.04
	}
	if !strings.Contains(line, `"`+text) && !strings.Contains(line, "'"+text) && !strings.Contains(line, "`"+text) {
		score -= 0.02
	}
	if isRemark([]byte(line)) {
		score -= 0.01
	}
	if fileQuality(s.view.Display(t.abs), s.want.tests) < 1 {
		score -= 0.1
	}
	return score
}

// literalHit makes a hit of a line that has the text that was asked for.
func (s *search) literalHit(abs string, line int, score float64) hit {
	h := s.newHit(abs, line, line, line, s.symbolAround(abs, line), quotedText*score, fromLiteral)
	h.exact = true
	return h
}

// symbolAround returns the name of the innermost symbol that has a line; "" = none.
func (s *search) symbolAround(abs string, line int) (name string) {
	for _, r := range s.roots {
		rel, ok := strings.CutPrefix(abs, strings.TrimSuffix(r.path, "/")+"/")
		if !ok {
			continue
		}
		r.mu.RLock()
		defer r.mu.RUnlock()
		f := r.files[rel]
		if f == nil {
			return ""
		}
		for i := range f.entries {
			if e := &f.entries[i]; int(e.start) <= line && line <= int(e.end) {
				name = e.fullName() // an inner one comes later
			}
		}
		return name
	}
	return ""
}

// addSpoken adds a hit for a symbol whose lines contain the whole question, which was a
// text of the code without quotes.
func (s *search) addSpoken(h *hit) {
	text := strings.ToLower(strings.TrimSpace(s.args.Query))
	if len(text) < leastLiteral || !strings.Contains(text, " ") {
		return
	}
	p := s.pages.pageOf(h.abs)
	if p == nil || !strings.Contains(strings.ToLower(p.text(h.Start, h.End)), text) {
		return
	}
	for n := h.Start; n <= h.End; n++ {
		if strings.Contains(strings.ToLower(p.line(n)), text) {
			s.hits = append(s.hits, s.literalHit(h.abs, n, 1))
			return
		}
	}
}
