package scan

import (
	"slices"
	"strings"
)

// maxMatches is how many matches of one rule are listed.
const maxMatches = 64

// span is a piece of the folded text.
type span struct{ start, end int }

// progress is how far a rule has come in a text.
type progress struct {
	found []span
	// What follows is known of the text ahead, so that no part of it is looked at again and again.
	order span // payload: from the first order in a line to the end of the line
	name  stop // markdownImage: the end of a name
	url   stop // markdownImage: the end of an address
	tag   int  // htmlImage: the end of the tag that was looked at
}

// add notes a match.
func (p *progress) add(start, end int) { p.found = append(p.found, span{start, end}) }

// free says whether a further match may begin at i: matches of one rule do not overlap.
func (p *progress) free(i int) bool {
	n := len(p.found)
	return n == 0 || n < maxMatches && p.found[n-1].end <= i
}

// hunt is one text being searched.
type hunt struct {
	text   string     // folded
	spaced string     // the same with white space in ASCII only
	rules  []progress // of each rule
}

// idle says that nothing was found.
func (h *hunt) idle() bool {
	return !slices.ContainsFunc(h.rules, func(p progress) bool { return len(p.found) > 0 })
}

// look follows up a phrase that ends at end.
func (h *hunt) look(f *phrase, end int) {
	start := end
	for i := len(f.text) - 1; i >= 0; i-- {
		start--
		for f.text[i] == ' ' && space(h.spaced[start-1]) { // no phrase begins with a blank
			start--
		}
	}
	rules[f.rule].find(h, &h.rules[f.rule], start, end)
}

// space says whether c is white space of a folded text.
func space(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// wholeWord takes a phrase that is no part of a longer word.
func wholeWord(h *hunt, p *progress, start, end int) {
	if (start == 0 || !wordByte(h.text[start-1])) && (end == len(h.text) || !wordByte(h.text[end])) && p.free(start) {
		p.add(start, end)
	}
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// payload takes what stands between the first order to decode in a line and the last base64.
func payload(h *hunt, p *progress, start, end int) {
	n := len(p.found)
	switch base64 := h.text[start] == 'b' || h.text[start] == 'B'; {
	case !base64 && end > p.order.end:
		p.order = span{start, end + upTo(h.text[end:], "\n")}
	case !base64 || end > p.order.end: // not the first order in its line; nothing to decode with
	case n > 0 && p.found[n-1].start == p.order.start:
		p.found[n-1].end = end
	case p.free(p.order.start):
		p.add(p.order.start, end)
	}
}

// upTo is the length of s before the first of some bytes.
func upTo(s, bytes string) int {
	if i := strings.IndexAny(s, bytes); i >= 0 {
		return i
	}
	return len(s)
}

// stop is the next place of some bytes. The zero value knows of none.
type stop struct{ at int }

// after gives the first place of one of the bytes at i or behind it. Calls with rising i cost no more than one pass over the text.
func (s *stop) after(text string, i int, bytes string) int {
	if s.at < i {
		s.at = i + upTo(text[i:], bytes)
	}
	return s.at
}

// markdownImage takes an image of a foreign address.
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

// htmlImage takes an image up to its last source.
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
