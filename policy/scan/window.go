package scan

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Rules of anchors, with numbers below those of the rule table. The text around an anchor is searched as it is, or
// reversed first.
const (
	anchorRule = -1 - iota
	rotatedRule
	reversedRule
	gluedRule
)

// How many bytes around an anchor are searched.
const (
	reachBack  = 190
	reachAhead = 230
	// maxAnchor is how many bytes of an anchor are compared, so that the table of the automaton fits in the cache.
	maxAnchor = 11
	// maxEvents limits the words in one stretch of text.
	maxEvents = 512
)

// twisted are words that reveal ROT13 or reversed text, and beginnings of sentences without blanks.
const (
	plainWords = `ignore,disregard,forget,instructions,guidelines,previous,prompt,password`
	gluedWords = `ignore(all|any|the|your|previous),disregard(all|any|the|your|previous),forget(all|any|the|your|` +
		`everything),bypass(all|your),(reveal|show|print|output)(your|the)(system|hidden|instructions)`
)

// anchorPhrases returns the anchors for the automaton, each text once.
func anchorPhrases() []*phrase {
	short := map[string]*phrase{}
	var list []*phrase
	add := func(p *phrase) {
		if p.rule == anchorRule {
			p.whole = []word{{text: p.text, stem: p.stem, loose: p.loose}}
			p.text = strings.TrimRight(p.text[:min(len(p.text), maxAnchor)], " ")
		}
		if known := short[p.text]; known != nil {
			known.whole = append(known.whole, p.whole...)
			return
		}
		short[p.text] = p
		list = append(list, p)
	}
	for _, w := range words(false) {
		if w.concept&orderTable().anchors != 0 {
			add(&phrase{text: w.text, rule: anchorRule, stem: w.stem, loose: w.loose})
		}
	}
	for _, text := range expand(plainWords) {
		add(&phrase{text: rotate(text), rule: rotatedRule})
		add(&phrase{text: reverse(text), rule: reversedRule})
	}
	for _, text := range expand(gluedWords) {
		add(&phrase{text: text, rule: gluedRule, stem: true, loose: true})
	}
	slices.SortFunc(list, func(a, b *phrase) int { return strings.Compare(a.text, b.text) })
	return list
}

// anchor is a position in a text where a phrase of anchorPhrases was found.
type anchor struct {
	start, end int
	rule       int
	leet       bool // written with digits for letters
}

// anchored records an anchor.
func (h *hunt) anchored(f *phrase, start, end int, leet bool) {
	if f.whole == nil && !fits(h.spaced, start, end, f.stem, f.loose) {
		return
	}
	if f.whole != nil && !slices.ContainsFunc(f.whole, func(w word) bool {
		end, ok := occurs(h.spaced, start, w.text, leet)
		return ok && fits(h.spaced, start, end, w.stem, w.loose)
	}) {
		return
	}
	if n := len(h.anchors); n > 0 && h.anchors[n-1].rule == f.rule && h.anchors[n-1].leet == leet &&
		start < h.anchors[n-1].start+reachBack/4 {
		h.anchors[n-1].end = end
		return
	}
	h.anchors = append(h.anchors, anchor{start: start, end: end, rule: f.rule, leet: leet})
}

// occurs reports whether a word of the vocabulary occurs at i, in any case, and where it ends.
func occurs(text string, i int, word string, leetToo bool) (end int, ok bool) {
	for n := 0; n < len(word); n++ {
		if i >= len(text) {
			return 0, false
		}
		switch c := text[i]; {
		case word[n] == ' ':
			if !blank(c) {
				return 0, false
			}
			for i+1 < len(text) && blank(text[i+1]) {
				i++
			}
		case c == word[n], c|0x20 == word[n] && c >= 'A' && c <= 'Z', leetToo && c < utf8.RuneSelf && !latin(c):
		default:
			return 0, false
		}
		i++
	}
	return i, true
}

// blank reports whether c joins or separates words.
func blank(c byte) bool { return space(c) || c == '_' || c == '-' }

func latin(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// fits reports whether a match is a word of its own.
func fits(text string, start, end int, stem, loose bool) bool {
	if loose {
		return true
	}
	first, last := text[start], text[end-1]
	if start > 0 && (letterByte(first) || first == '.') && letterByte(text[start-1]) {
		return false
	}
	return stem || end == len(text) || !letterByte(last) || !letterByte(text[end])
}

// dictionary finds words of the vocabulary by their first two bytes.
type dictionary map[[2]byte][]word

// plainDictionary and gluedDictionary are the vocabulary with and without blanks.
var (
	plainDictionary = sync.OnceValue(func() dictionary { return index(words(false)) })
	gluedDictionary = sync.OnceValue(func() dictionary { return index(words(true)) })
)

func index(list []word) dictionary {
	d := dictionary{}
	for _, w := range list {
		key := [2]byte{w.text[0], 0}
		if len(w.text) > 1 {
			key[1] = w.text[1]
		}
		d[key] = append(d[key], w)
	}
	for _, bucket := range d {
		slices.SortFunc(bucket, func(a, b word) int { return strings.Compare(a.text, b.text) })
	}
	return d
}

// lowered returns a text in lower case, with blanks for white space and for what joins words, keeping the length.
func lowered(text string, leetToo bool) string {
	b := []byte(text)
	for i, c := range b {
		switch {
		case c >= 'A' && c <= 'Z':
			b[i] = c + 'a' - 'A'
		case c == '_' || c == '-' || space(c):
			b[i] = ' '
		case leetToo:
			for _, l := range leet {
				if c == l.digit {
					b[i] = l.letter
				}
			}
		}
	}
	return string(b)
}

// events returns the words of the vocabulary in a lowered text. broken is the same text with line breaks, in which
// empty lines end a sentence.
func (d dictionary) events(text, broken string, glued bool) []event {
	var list []event
	for i := 0; i < len(text) && len(list) < maxEvents; i++ {
		if e, ok := stopAt(text, broken, i); ok {
			list = append(list, e)
			continue
		}
		key := [2]byte{text[i], 0}
		for _, w := range d[key] {
			if text[i] != '@' || mailAddress(text, i) {
				list = append(list, event{w.concept, i, i + len(w.text)})
			}
		}
		if i+1 == len(text) {
			break
		}
		key[1] = text[i+1]
		for _, w := range d[key] {
			end, ok := spans(text, i, w.text)
			if !ok || !glued && !fits(text, i, end, w.stem, w.loose) {
				continue
			}
			is := w.concept
			if w.loose && text[i] >= utf8.RuneSelf {
				is |= foreign
			}
			list = append(list, event{is, i, end})
		}
	}
	return list
}

// stopAt returns the event for the end of a sentence, or for a colon or comma after the name of somebody who is
// addressed.
func stopAt(text, broken string, i int) (event, bool) {
	switch c := text[i]; {
	case c == '.' || c == '!' || c == '?':
		if i+1 == len(text) || text[i+1] == ' ' {
			return event{sentenceEnd, i, i + 1}, true
		}
	case c == ':' || c == ',':
		return event{colon, i, i + 1}, true
	case broken[i] == '\n' && i+1 < len(broken) && broken[i+1] == '\n', strings.HasPrefix(text[i:], "。"):
		return event{sentenceEnd, i, i + 1}, true
	}
	return event{}, false
}

// spans reports whether a word occurs at i, and where it ends. A blank in it represents several.
func spans(text string, i int, word string) (end int, ok bool) {
	for n := 0; n < len(word); n++ {
		if i >= len(text) || text[i] != word[n] {
			return 0, false
		}
		i++
		if word[n] == ' ' {
			for i < len(text) && text[i] == ' ' {
				i++
			}
		}
	}
	return i, true
}

// judge searches a stretch of text for orders. It calls do with each, and with its position in the stretch.
func judge(text string, leetToo, glued bool, do func(o *order, start, end int)) {
	d := plainDictionary()
	if glued {
		d = gluedDictionary()
	}
	events := d.events(lowered(text, leetToo), text, glued)
	var all concept
	for _, e := range events {
		all |= e.is
	}
	table := orderTable().orders
	for n := range table {
		o := &table[n]
		if o.steps == nil && !o.complete(all) {
			continue
		}
		for i := 0; i < len(events); i++ {
			last, ok := o.match(events, i)
			if !ok {
				continue
			}
			do(o, events[i].start, events[last].end)
			for i+1 < len(events) && events[i+1].start < events[last].end {
				i++
			}
		}
	}
}

// mailAddress reports whether there is a name before and a host after the sign at i.
func mailAddress(text string, i int) bool {
	host := text[i+1 : i+1+upTo(text[i+1:min(len(text), i+1+64)], " ,;:)>\"'")]
	return i > 0 && letterByte(text[i-1]) && strings.Contains(strings.Trim(host, "."), ".") &&
		!strings.Contains(host, "/")
}
