package render

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is one dimension of formatting; the order is the order of nesting.
type kind int

const (
	kindQuote kind = iota
	kindPre
	kindLink
	kindSpoiler
	kindBold
	kindItalic
	kindStrike
	kindCode
	kindCount
)

// style holds for each kind which attribute of the document applies; 0 is none. Two neighbours with the same number
// belong to one entity.
type style [kindCount]int

// verbatim reports whether the text is code: nothing else may be formatted inside it, and its white space counts.
func (s style) verbatim() bool { return s[kindPre] != 0 || s[kindCode] != 0 }

// run is a stretch of text with one style, starting at the end of the previous run.
type run struct {
	end   int // byte offset
	style style
}

// document is rendered text of any length. Keeping a style for each run instead of
// a list of entities makes clipping, splitting and correct nesting trivial.
type document struct {
	text  string
	buf   strings.Builder
	runs  []run
	attrs []Entity // Type, URL and Language; attribute n is attrs[n-1]
}

// attr registers a new attribute and returns its number.
func (d *document) attr(e Entity) int {
	d.attrs = append(d.attrs, e)
	return len(d.attrs)
}

// append adds text. Telegram allows only block quotes around code, and no code in links, so other styles are dropped
// there. A spoiler is kept: what is hidden must remain hidden.
func (d *document) append(s string, st style) {
	if s == "" {
		return
	}
	if st[kindSpoiler] != 0 {
		st[kindPre], st[kindCode] = 0, 0
	}
	if st.verbatim() {
		st = style{kindQuote: st[kindQuote], kindPre: st[kindPre], kindCode: st[kindCode]}
	}
	d.buf.WriteString(s)
	d.text = d.buf.String()
	if n := len(d.runs); n > 0 && d.runs[n-1].style == st {
		d.runs[n-1].end = len(d.text)
		return
	}
	d.runs = append(d.runs, run{end: len(d.text), style: st})
}

// runAt returns the index of the run that contains the byte offset.
func (d *document) runAt(pos int) int {
	return sort.Search(len(d.runs), func(i int) bool { return d.runs[i].end > pos })
}

func (d *document) styleAt(pos int) style {
	if i := d.runAt(pos); i < len(d.runs) {
		return d.runs[i].style
	}
	return style{}
}

// span is an entity that is being collected.
type span struct {
	attr        int
	first, last int // UTF-16 offsets of visible text
	visible     bool
}

// located is an entity with its kind, for sorting.
type located struct {
	Entity
	kind kind
}

// entities returns the entities of text[start:end], with offsets relative to start, without white space at their ends
// and without those that cover nothing visible.
func (d *document) entities(start, end int) []Entity {
	var (
		open  [kindCount]span
		found []located
		pos   int
	)
	shut := func(k kind) {
		if s := open[k]; s.visible {
			e := d.attrs[s.attr-1]
			e.Offset, e.Length = s.first, s.last-s.first
			found = append(found, located{Entity: e, kind: k})
		}
	}
	for i := d.runAt(start); i < len(d.runs) && start < end; i++ {
		r := d.runs[i]
		stop := min(r.end, end)
		first, last, length := extent(d.text[start:stop], r.style.verbatim())
		for k := range kindCount {
			if open[k].attr != r.style[k] {
				shut(k)
				open[k] = span{attr: r.style[k]}
			}
			if s := &open[k]; s.attr != 0 && first < last {
				if !s.visible {
					s.first, s.visible = pos+first, true
				}
				s.last = pos + last
			}
		}
		pos += length
		start = stop
	}
	for k := range kindCount {
		shut(k)
	}
	return order(found)
}

func order(found []located) []Entity {
	slices.SortFunc(found, func(a, b located) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Length, a.Length), cmp.Compare(a.kind, b.kind))
	})
	out := make([]Entity, len(found))
	for i, l := range found {
		out[i] = l.Entity
	}
	return out
}

// extent returns where the visible part of s begins and ends and how long s is, in UTF-16 units; first == last if
// nothing is visible. White space of code counts as visible if the code is not blank.
func extent(s string, verbatim bool) (first, last, length int) {
	first = -1
	for _, r := range s {
		size := 1
		if r > 0xFFFF {
			size = 2
		}
		if !unicode.IsSpace(r) {
			if first < 0 {
				first = length
			}
			last = length + size
		}
		length += size
	}
	switch {
	case first < 0:
		return 0, 0, length
	case verbatim:
		return 0, length, length
	}
	return first, last, length
}

// message returns text[start:end] as a message, with lead before it.
func (d *document) message(lead string, start, end int) Message {
	end = start + len(strings.TrimRightFunc(d.text[start:end], unicode.IsSpace))
	m := Message{Text: lead + d.text[start:end], Entities: d.entities(start, end)}
	shift := Length(lead)
	for i := range m.Entities {
		m.Entities[i].Offset += shift
	}
	return m
}

// skipSpace moves start past white space, except that of code: Telegram trims the start of a message only up to its
// first entity.
func (d *document) skipSpace(start int) int {
	for start < len(d.text) {
		r, size := utf8.DecodeRuneInString(d.text[start:])
		if !unicode.IsSpace(r) || d.styleAt(start).verbatim() {
			break
		}
		start += size
	}
	return start
}
