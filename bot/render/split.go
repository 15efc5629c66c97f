package render

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kinds are the types of entities that Split keeps.
var kinds = map[string]kind{
	"blockquote":            kindQuote,
	"expandable_blockquote": kindQuote,
	"pre":                   kindPre,
	"text_link":             kindLink,
	"spoiler":               kindSpoiler,
	"bold":                  kindBold,
	"italic":                kindItalic,
	"strikethrough":         kindStrike,
	"code":                  kindCode,
}

// Split cuts a message of any length into messages that can be sent, between lines or words where it can; an entity
// that is cut goes on in the next one. Safe for concurrent use.
func Split(m Message) []Message {
	type edge struct {
		at   int // UTF-16 units
		kind kind
		attr int // 0 = an entity ends
	}
	doc := &document{}
	var edges []edge
	for _, e := range m.Entities {
		if k, ok := kinds[e.Type]; ok {
			attr := doc.attr(Entity{Type: e.Type, URL: e.URL, Language: e.Language})
			edges = append(edges, edge{e.Offset, k, attr}, edge{e.Offset + e.Length, k, 0})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.attr, b.attr))
	})
	from, units, now := 0, 0, style{}
	for _, e := range edges {
		to := forward(m.Text, from, e.at-units)
		doc.append(clean(normalize(m.Text[from:to])), now)
		from, units = to, e.at
		now[e.kind] = e.attr
	}
	doc.append(clean(normalize(m.Text[from:])), now)
	return doc.split()
}

// Above returns a message with another one below it, after an empty line.
func (m Message) Above(below Message) Message {
	shift := Length(m.Text) + 2
	out := Message{Text: m.Text + "\n\n" + below.Text, Entities: slices.Clone(m.Entities)}
	for _, e := range below.Entities {
		e.Offset += shift
		out.Entities = append(out.Entities, e)
	}
	return out
}

// split cuts the document into messages.
func (d *document) split() []Message {
	out := []Message{}
	for start := d.skipSpace(0); start < len(d.text); start = d.skipSpace(start) {
		end, next := len(d.text), len(d.text)
		if limit := d.limit(start); limit < len(d.text) {
			end, next = d.breakAt(start, limit)
		}
		if m := d.message("", start, end); !blank(m.Text) {
			out = append(out, m)
		}
		start = next
	}
	return out
}

// limit returns how far a message that begins at start may reach.
func (d *document) limit(start int) int {
	limit := forward(d.text, start, MaxLength)
	weight := 0
	for i, e := range d.entities(start, limit) {
		weight += weigh(e)
		if i >= MaxEntities || weight > maxWeight {
			return forward(d.text, start, e.Offset)
		}
	}
	return limit
}

func weigh(e Entity) int { return entityWeight + len(e.URL) + len(e.Language) }

// breakAt chooses where a message that may reach to limit ends and where the next one begins: between blocks, else at a
// line end, else at a space, else between characters. A better kind of break is only used if the message remains
// reasonably full.
func (d *document) breakAt(start, limit int) (end, next int) {
	half, quarter := start+(limit-start)/2, start+(limit-start)/4
	if i := d.lastParagraph(half, limit); i > start {
		return i, i
	}
	line := d.lastSpace(start, limit, isNewline)
	if line > quarter {
		return d.breakLine(line)
	}
	if i := d.lastSpace(start, limit, unicode.IsSpace); i > quarter {
		return i, i
	}
	if line > start {
		return d.breakLine(line)
	}
	i := graphemeBefore(d.text, start, limit)
	return i, i
}

func isNewline(r rune) bool { return r == '\n' }

// breakLine ends a message before the newline at line. In code, exactly this newline is dropped, so that the parts
// joined with newlines give the code again.
func (d *document) breakLine(line int) (end, next int) {
	if d.styleAt(line).verbatim() {
		return line, line + 1
	}
	return line, line
}

// lastParagraph finds the last empty line outside code in [from, limit].
func (d *document) lastParagraph(from, limit int) int {
	for stop := min(limit+2, len(d.text)); from < stop; {
		i := strings.LastIndex(d.text[from:stop], "\n\n")
		if i < 0 {
			break
		}
		if !d.styleAt(from + i).verbatim() {
			return from + i
		}
		stop = from + i + 1
	}
	return -1
}

// lastSpace returns the last white space of a kind in (start, limit], or -1. Of several in a row it returns the first:
// trailing space of a message is lost, leading space of code is not.
func (d *document) lastSpace(start, limit int, is func(rune) bool) int {
	stop := limit
	if r, size := utf8.DecodeRuneInString(d.text[limit:]); size > 0 && is(r) {
		stop += size
	}
	i := strings.LastIndexFunc(d.text[start:stop], is)
	if i < 0 {
		return -1
	}
	i = len(strings.TrimRightFunc(d.text[start:start+i], is))
	if i == 0 {
		return -1
	}
	return start + i
}

// tail returns the end of the document as one message; what does not fit is cut off at the front. If cut is set, the
// front is marked even if everything fits.
func (d *document) tail(cut bool) Message {
	start := d.skipSpace(0)
	if start == len(d.text) {
		return Message{Entities: []Entity{}}
	}
	lead := ""
	if cut || d.limit(start) < len(d.text) {
		start, lead = d.tailStart(max(start, backward(d.text, MaxLength-Length(ellipsis)-1)))
		start = d.skipSpace(start)
	}
	m := d.message(lead, start, len(d.text))
	if blank(m.Text) {
		return Message{Entities: []Entity{}}
	}
	return m
}

// tailStart moves start forward until the entities after it fit and a line or word begins there, and returns what to
// write before it.
func (d *document) tailStart(start int) (pos int, lead string) {
	start = d.lighten(start)
	if start == 0 || d.text[start-1] == '\n' {
		return start, ellipsis + "\n"
	}
	reach := start + (len(d.text)-start)/4
	if i := strings.IndexByte(d.text[start:reach], '\n'); i >= 0 {
		return start + i + 1, ellipsis + "\n"
	}
	if d.styleAt(start)[kindPre] != 0 {
		return graphemeAfter(d.text, start), ellipsis + "\n"
	}
	if i := strings.IndexByte(d.text[start:reach], ' '); i >= 0 {
		return start + i + 1, ellipsis
	}
	return graphemeAfter(d.text, start), ellipsis
}

// lighten moves start past the entities that end first until the rest fit.
func (d *document) lighten(start int) int {
	list := d.entities(start, len(d.text))
	count, weight := len(list), 0
	for _, e := range list {
		weight += weigh(e)
	}
	slices.SortStableFunc(list, func(a, b Entity) int {
		return cmp.Compare(a.Offset+a.Length, b.Offset+b.Length)
	})
	end := 0
	for _, e := range list {
		if count <= MaxEntities && weight <= maxWeight {
			break
		}
		count--
		weight -= weigh(e)
		end = e.Offset + e.Length
	}
	return forward(d.text, start, end)
}
