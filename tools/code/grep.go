package code

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/gram"
	"github.com/zephbot/zephbot/tools/code/outline"
	"github.com/zephbot/zephbot/tools/file"
)

// Limits of a search in the text of files.
const (
	maxTextFiles = 20_000
	maxTextBytes = 256 << 20
	maxTextHits  = 1000
)

// textHit is a line that contains what is looked for.
type textHit struct {
	abs   string
	line  int
	score float64
}

// searchText searches the lines of all files: for a name as a whole word, or for a text, and if it is a question, for
// the lines that contain most of its words.
func (s *search) searchText(term string, reference bool) {
	if term == "" {
		return
	}
	list := s.textLines(newTextMatcher(term, reference))
	slices.SortStableFunc(list, func(a, b textHit) int { return cmp.Compare(b.score, a.score) })
	source, score, name := fromGrep, textOnly, ""
	if reference {
		source, score, name = fromText, textRefs, term
	}
	for _, t := range list[:min(len(list), 2*s.args.resultLimit())] {
		if reference && slices.ContainsFunc(s.hits, func(h hit) bool { return h.abs == t.abs && h.line == t.line }) {
			continue // the declaration itself
		}
		s.hits = append(s.hits, s.newHit(t.abs, t.line, t.line, t.line, name, score*t.score, source))
	}
}

// textLines returns the lines that fit, in the order of the files.
func (s *search) textLines(m *textMatcher) (list []textHit) {
	var spent int64
	files := 0
	for _, r := range s.roots {
		tree, err := s.textTree(r.path)
		if err != nil {
			s.addNote("[the text of " + s.view.Display(r.path) + " could not be searched]")
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			if r.lacksText(name, tree[name], m) {
				continue
			}
			if files++; s.ctx.Err() != nil || spent > maxTextBytes || files > maxTextFiles || len(list) > maxTextHits {
				s.addNote("[the search in the text of the files is not complete: narrow it by file_pattern]")
				return list
			}
			content, stamp, err := s.view.Read(r.path+"/"+name, outline.MaxBytes)
			if err == nil {
				s.x.rememberWords(r, name, stamp, content)
			}
			if err != nil || bytes.IndexByte(content[:min(len(content), 8<<10)], 0) >= 0 {
				continue
			}
			spent += int64(len(content))
			list = append(list, m.matchLines(r.path+"/"+name, content)...)
		}
	}
	return list
}

// lacksText reports whether a file cannot have a line that fits, because the index knows its text.
func (r *root) lacksText(name string, stamp file.Stamp, m *textMatcher) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t := r.texts[name]
	if f := r.files[name]; f != nil {
		t = text{f.stamp, f.grams}
	}
	if t.grams == nil || t.stamp != stamp || t.grams.May(m.grams) {
		return false
	}
	some := 0
	for _, word := range m.words {
		if t.grams.May(gram.Of(word)) {
			some++
		}
	}
	return !isEnough(some, len(m.words))
}

// rememberWords notes what a file that is not indexed can contain, so that the next search need not read it.
func (x *Index) rememberWords(r *root, name string, stamp file.Stamp, content []byte) {
	if x.languageOf(name) != "" || x.Now().UnixNano()-stamp.Modified < int64(racy) {
		return
	}
	set := &gram.Set{}
	set.Add(strings.ToLower(string(content)))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.texts == nil || len(r.texts) >= maxTextFiles {
		r.texts = map[string]text{}
	}
	r.texts[name] = text{stamp, set}
}

// textTree lists the files whose text is searched, of any language.
func (s *search) textTree(root string) (map[string]file.Stamp, error) {
	tree, err := s.walkFiles(root, func(name string) bool { return s.want.match(name) })
	return tree.Files, err
}

func (s *search) walkFiles(root string, want func(string) bool) (file.Tree, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.x.Patience)
	defer cancel()
	view := s.x.Sources.Below(ctx, filepath.Clean(root))
	defer view.Close()
	return view.Walk(root, want)
}

// textMatcher finds lines without regard to case.
type textMatcher struct {
	whole     string
	grams     gram.Needle // of whole in lower case
	words     []string
	reference bool
}

func newTextMatcher(term string, reference bool) *textMatcher {
	m := literalMatcher(term)
	if reference {
		m.whole, m.reference = term, true
		return m
	}
	for _, word := range strings.FieldsFunc(m.whole, func(r rune) bool {
		return classOf(r) == classOther && r != '_'
	}) {
		if len(word) > 2 && !isFiller(word) {
			m.words = append(m.words, word)
		}
	}
	return m
}

// literalMatcher finds a text and nothing else.
func literalMatcher(text string) *textMatcher {
	m := &textMatcher{whole: strings.ToLower(text)}
	const step = 12 // of which gram.Of takes all groups
	for from := 0; from == 0 || from+2 < len(m.whole); from += step {
		m.grams = append(m.grams, gram.Of(m.whole[from:])...)
	}
	return m
}

// matchLines returns the lines of a file that fit. Those with the whole term have the score 1, others the share of its
// words, of which more than half must be in the line.
func (m *textMatcher) matchLines(abs string, content []byte) []textHit {
	search := content
	if !m.reference {
		search = bytes.ToLower(content)
	}
	if !m.canMatch(search) {
		return nil
	}
	var out []textHit
	number := 0
	for line := range bytes.Lines(search) {
		number++
		if score := m.scoreLine(line); score > 0 {
			out = append(out, textHit{abs, number, score})
			if len(out) >= maxTextHits {
				break
			}
		}
	}
	return out
}

// canMatch reports whether a file can have a line that fits.
func (m *textMatcher) canMatch(content []byte) bool {
	if bytes.Contains(content, []byte(m.whole)) {
		return true
	}
	return !m.reference && slices.ContainsFunc(m.words, func(w string) bool {
		return bytes.Contains(content, []byte(w))
	})
}

func (m *textMatcher) scoreLine(line []byte) float64 {
	if m.reference {
		switch {
		case !wholeWord(line, m.whole):
			return 0
		case isRemark(line):
			return 0.9
		}
		return 1
	}
	if bytes.Contains(line, []byte(m.whole)) {
		return 1
	}
	n := 0
	for _, word := range m.words {
		if bytes.Contains(line, []byte(word)) {
			n++
		}
	}
	if !isEnough(n, len(m.words)) {
		return 0
	}
	return 0.95 * float64(n) / float64(len(m.words))
}

// isEnough reports whether so many of the words of a question make a line fit.
func isEnough(n, words int) bool { return n > 0 && 2*n > words }

// isRemark reports whether a line is a comment.
func isRemark(line []byte) bool {
	line = bytes.TrimSpace(line)
	return bytes.HasPrefix(line, []byte("//")) ||
		bytes.HasPrefix(line, []byte("#")) || bytes.HasPrefix(line, []byte("*"))
}

// wholeWord reports whether a line contains a word that is not a part of a longer one.
func wholeWord(line []byte, word string) bool {
	for from := 0; ; {
		i := bytes.Index(line[from:], []byte(word))
		if i < 0 {
			return false
		}
		i += from
		before := i > 0 && wordByte(line[i-1])
		after := i+len(word) < len(line) && wordByte(line[i+len(word)])
		if !before && !after {
			return true
		}
		from = i + 1
	}
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}
