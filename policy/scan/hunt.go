package scan

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// maxMatches limits the matches of one rule.
const maxMatches = 64

// span is a piece of the folded text.
type span struct{ start, end int }

// progress is the state of a rule in a text.
type progress struct {
	found []span
	// What is known about the text ahead, so that no part of it is searched repeatedly.
	order span // payload: from the first order in a line to the end of the line
	name  stop // markdownImage: the end of a name
	url   stop // markdownImage: the end of an address
	tag   int  // htmlImage: the end of the tag that was searched
}

// add records a match.
func (p *progress) add(start, end int) { p.found = append(p.found, span{start, end}) }

// free reports whether a further match may begin at i: matches of one rule do not overlap.
func (p *progress) free(i int) bool {
	n := len(p.found)
	return n == 0 || n < maxMatches && p.found[n-1].end <= i
}

// hunt is the search of one text.
type hunt struct {
	text   string     // folded
	spaced string     // the same with only ASCII white space
	rules  []progress // of each rule

	anchors []anchor // where instructions are searched
	found   []ordered
	encoded []span
}

// ordered is an instruction that was found.
type ordered struct {
	order *order
	span
}

// idle reports whether nothing was found.
func (h *hunt) idle() bool {
	return len(h.found) == 0 && len(h.encoded) == 0 &&
		!slices.ContainsFunc(h.rules, func(p progress) bool { return len(p.found) > 0 })
}

// look checks a phrase that ends at end. The automaton treats some bytes as equal; look checks whether they are.
func (h *hunt) look(f *phrase, end int) {
	start, leet := end, false
	for i := len(f.text) - 1; i >= 0; i-- {
		start--
		if f.text[i] == ' ' {
			for space(h.spaced[start-1]) { // no phrase begins with a blank
				start--
			}
			continue
		}
		if c := h.spaced[start]; c != f.text[i] && c|0x20 != f.text[i] {
			if c >= utf8.RuneSelf || f.rule != anchorRule {
				return
			}
			leet = true
		}
	}
	if f.rule < 0 {
		h.anchored(f, start, end, leet)
		return
	}
	rules()[f.rule].find(h, &h.rules[f.rule], start, end)
}

// matches returns the matches; at maps positions to the original.
func (h *hunt) matches(at func(int) int) []Match {
	var found []Match
	add := func(name, category string, s span) {
		found = append(found, Match{Rule: name, Category: category, Start: at(s.start), End: at(s.end)})
	}
	for i, r := range rules() {
		for _, m := range h.rules[i].found {
			add(r.name, r.category, m)
		}
	}
	for _, m := range h.found {
		add(m.order.name, m.order.category, m.span)
	}
	for _, m := range h.encoded {
		add(ruleEncoded, "encoding", m)
	}
	slices.SortStableFunc(found, func(a, b Match) int { return a.Start - b.Start })
	return found
}

// maxStretch limits how many bytes are searched as one piece.
const maxStretch = 2 << 10

// orders searches the text around the anchors.
func (h *hunt) orders() {
	for i := 0; i < len(h.anchors); i++ {
		a := h.anchors[i]
		start := boundary(h.text, max(0, a.start-reachBack))
		end := min(len(h.text), a.end+reachAhead)
		for a.rule == anchorRule && i+1 < len(h.anchors) && h.anchors[i+1].rule == a.rule &&
			h.anchors[i+1].leet == a.leet &&
			h.anchors[i+1].start < end && h.anchors[i+1].end+reachAhead-start < maxStretch {
			i++
			end = min(len(h.text), h.anchors[i].end+reachAhead)
		}
		h.stretch(a, start, boundary(h.text, end))
	}
}

// stretch searches the text around an anchor, as it is or reversed.
func (h *hunt) stretch(a anchor, start, end int) {
	text := h.spaced[start:end]
	whole := func(*order, int, int) { h.encoded = append(h.encoded, span{start, end}) }
	switch a.rule {
	case rotatedRule:
		judge(rotate(text), false, false, whole)
	case reversedRule:
		judge(reverse(text), false, false, whole)
	case gluedRule:
		from := a.start - start
		text = text[from : from+upTo(text[from:], " \t\n")]
		end = a.start + len(text)
		judge(text, false, true, func(o *order, _, to int) {
			h.add(o, span{a.start, a.start + to})
		})
	default:
		judge(text, a.leet, false, func(o *order, from, to int) { h.add(o, span{start + from, start + to}) })
	}
}

// add records an instruction, once.
func (h *hunt) add(o *order, s span) {
	count := 0
	for _, f := range h.found {
		if f.order.name != o.name {
			continue
		}
		if count++; count == maxMatches || f.start < s.end && s.start < f.end {
			return
		}
	}
	h.found = append(h.found, ordered{o, s})
}

// space reports whether c is white space of a folded text.
func space(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// wholeWord accepts a phrase that is not part of a longer word.
func wholeWord(h *hunt, p *progress, start, end int) {
	if (start == 0 || !wordByte(h.text[start-1])) && (end == len(h.text) || !wordByte(h.text[end])) && p.free(start) {
		p.add(start, end)
	}
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// payload accepts the text from the first instruction to decode in a line to the last base64.
func payload(h *hunt, p *progress, start, end int) {
	n := len(p.found)
	switch base64 := h.text[start] == 'b' || h.text[start] == 'B'; {
	case !base64 && end > p.order.end:
		p.order = span{start, end + upTo(h.text[end:], "\n")}
	case !base64 || end > p.order.end: // not the first instruction in its line, or nothing to decode with
	case n > 0 && p.found[n-1].start == p.order.start:
		p.found[n-1].end = end
	case p.free(p.order.start):
		p.add(p.order.start, end)
	}
}

// upTo returns the length of s before the first of the given bytes.
func upTo(s, bytes string) int {
	if i := strings.IndexAny(s, bytes); i >= 0 {
		return i
	}
	return len(s)
}

// stop is the next position of certain bytes. Its zero value is unknown.
type stop struct{ at int }

// after returns the first position of one of the bytes at or after i. Calls with increasing i cost no more than one
// pass over the text.
func (s *stop) after(text string, i int, bytes string) int {
	if s.at < i {
		s.at = i + upTo(text[i:], bytes)
	}
	return s.at
}

// markdownImage accepts an image with a foreign address.
func markdownImage(h *hunt, p *progress, start, end int) {
	name := p.name.after(h.text, end, "]\n")
	if !p.free(start) || !strings.HasPrefix(h.text[name:], "](") {
		return
	}
	url := name + len("](")
	switch head := strings.ToLower(h.text[url:min(len(h.text), url+len("https://"))]); {
	case head == "https://":
		url += len("https://")
	case strings.HasPrefix(head, "http://"):
		url += len("http://")
	default:
		return
	}
	if to := p.url.after(h.text, url, ") \t\n"); to > url && to < len(h.text) && h.text[to] == ')' {
		p.add(start, to+1)
	}
}

// htmlImage accepts an image up to its last source.
func htmlImage(h *hunt, p *progress, start, end int) {
	if end <= p.tag || !p.free(start) {
		return
	}
	p.tag = end + upTo(h.text[end:], ">")
	for i := p.tag - len("src="); i > end; i-- {
		if !space(h.text[i-1]) || !strings.EqualFold(h.text[i:i+len("src")], "src") {
			continue
		}
		if rest := strings.TrimLeft(h.spaced[i+len("src"):p.tag], " \t\n"); strings.HasPrefix(rest, "=") {
			p.add(start, p.tag-len(rest)+1)
			return
		}
	}
}
