package toolschema

import (
	"bytes"
	"encoding/json"
	"math/big"
	"regexp"
	"regexp/syntax"
	"slices"

	"github.com/zephbot/zephbot/agent/llm/dialect"
)

// Names that dialect.Schema.Keywords may have besides the keywords of JSON Schema.
const (
	typeList   = "type[]"  // lists of types
	anyEnum    = "enum*"   // enums that are not only strings
	anyKey     = "keys*"   // names of properties of any length and alphabet
	untyped    = "untyped" // properties without a type
	formatName = "format:" // followed by one format; "format" alone = all that JSON Schema defines
)

// key matches the names of properties that every server accepts.
var key = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// formats are those that JSON Schema defines; servers refuse others.
var formats = []string{
	"date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6", "uri",
	"uri-reference", "iri", "iri-reference", "uuid", "uri-template", "json-pointer", "relative-json-pointer", "regex",
}

// objectText is a schema in the form of a dialect, before its description is complete.
type objectText struct {
	kind        []string // type; empty = none
	description string
	fields      []field // the other keywords, in order
}

type field struct {
	name  string
	value []byte
}

func (w *objectText) addField(name string, value []byte) {
	w.fields = append(w.fields, field{name, value})
}

// encodeJSON returns the text: the type first, then what a person says of it.
func (w *objectText) encodeJSON() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	put := func(name string, value []byte) {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		b.WriteString(name)
		b.WriteString(`":`)
		b.Write(value)
	}
	switch len(w.kind) {
	case 0:
	case 1:
		put("type", quoteText(w.kind[0]))
	default:
		put("type", quoteTexts(w.kind))
	}
	if w.description != "" {
		put("description", quoteText(w.description))
	}
	for _, f := range w.fields {
		put(f.name, f.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// quoteTexts returns a list of texts in JSON.
func quoteTexts(list []string) []byte {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, s := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quoteText(s))
	}
	b.WriteByte(']')
	return b.Bytes()
}

// writer writes a schema for one dialect.
type writer struct {
	d     *dialect.Schema
	r     *reader // its budget for what is merged while writing
	keys  *Keys
	exact bool
}

func newWriter(d *dialect.Schema) *writer {
	return &writer{d: d, r: &reader{nodes: 4 * maxNodes, bytes: MaxBytes}, exact: true}
}

func (w *writer) hasKeyword(keyword string) bool { return slices.Contains(w.d.Keywords, keyword) }

// writeRoot writes the schema of a tool's arguments.
func (w *writer) writeRoot(n *node) (json.RawMessage, []string) {
	out, words := w.writeObject(n)
	return out.encodeJSON(), words
}

// writeObject writes the schema of a tool's arguments: one object, without a choice between several.
func (w *writer) writeObject(n *node) (*objectText, []string) {
	var words []string
	n, said := w.mergeChoices(n)
	words = append(words, said...)
	if n.types&object == 0 || n.allowsNothing() {
		w.exact = false
		words = append(words, "no arguments are known that it takes: "+phraseOf(n))
		n = &node{types: object, description: n.description}
	}
	if n.limited {
		w.exact = false
		words = append(words, "the arguments are "+phraseOf(n))
	}
	bare := *n
	bare.types, bare.enum, bare.limited = object, nil, false
	out := &objectText{kind: []string{"object"}, description: n.description}
	words = append(words, w.fillKeywords(out, &bare, true)...)
	return out, append(words, n.remarks...)
}

// mergeChoices returns a node without choices: all their forms in one, and what is lost by that in words.
func (w *writer) mergeChoices(n *node) (*node, []string) {
	var words []string
	for len(n.choices) > 0 {
		c := n.choices[0]
		base := *n
		base.choices = n.choices[1:]
		all := &node{}
		for _, b := range c.branches {
			rest, _ := w.mergeChoices(b)
			all = uniteNodes(all, rest)
		}
		w.exact = false
		words = append(words, describeForms(c, 0))
		bare := *all // it may be one of the branches
		bare.description, bare.remarks = "", nil
		n = w.r.intersectNodes(&base, &bare)
	}
	return n, words
}

// writeNode writes a schema within another one.
func (w *writer) writeNode(n *node) *objectText {
	if len(n.choices) > 0 {
		if out := w.writeChoice(n); out != nil {
			return out
		}
	}
	n, words := w.mergeChoices(n)
	out := &objectText{}
	words = append(words, w.writeTyped(out, n)...)
	out.description = addWords(n.description, append(words, n.remarks...))
	return out
}

// writeChoice writes a node that is a choice and nothing else as anyOf; nil if the dialect has none, or the node says
// more. Each branch has a type of its own, and there is none beside anyOf.
func (w *writer) writeChoice(n *node) *objectText {
	if !w.hasKeyword("anyOf") || len(n.choices) != 1 || len(n.properties) > 0 {
		return nil
	}
	base, c := *n, n.choices[0]
	base.choices, base.description, base.remarks, base.words, base.fallback = nil, "", nil, nil, nil
	var list []*node
	for _, b := range c.branches {
		if b = w.r.intersectNodes(b, &base); !b.allowsNothing() {
			if len(b.choices) > 0 {
				return nil
			}
			list = append(list, b)
		}
	}
	if len(list) < 2 {
		return nil
	}
	out := &objectText{}
	words := slices.Clone(n.words)
	if len(words) > 0 {
		w.exact = false
	}
	if c.one && !allDisjoint(list) {
		w.exact = false
		words = append(words, "exactly one of these forms")
	}
	var b bytes.Buffer
	b.WriteByte('[')
	for i, branch := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(w.writeNode(branch).encodeJSON())
	}
	b.WriteByte(']')
	out.addField("anyOf", b.Bytes())
	words = append(words, w.writeDefault(out, n)...)
	out.description = addWords(n.description, append(words, n.remarks...))
	return out
}

// allDisjoint reports whether no value matches two of several nodes, as far as that is easy to see.
func allDisjoint(list []*node) bool {
	for i, a := range list {
		for _, b := range list[i+1:] {
			if !areDisjoint(a, b) {
				return false
			}
		}
	}
	return true
}

func areDisjoint(a, b *node) bool {
	if a.types&b.types == 0 {
		return true
	}
	if a.limited && b.limited {
		enum, _ := bothEnums(a, b)
		return len(enum) == 0
	}
	if (a.types|b.types)&^object != 0 {
		return false
	}
	for _, p := range a.properties {
		for _, q := range b.properties {
			if p.name == q.name && p.required && q.required && areDisjoint(p.node, q.node) {
				return true
			}
		}
	}
	return false
}

// writeTyped writes a node without choices, and returns what it could not write.
func (w *writer) writeTyped(out *objectText, n *node) []string {
	switch {
	case n.allowsNothing():
		w.exact = false
		out.kind = []string{"string"}
		return []string{"no value is valid here"}
	case n.types == anything && w.hasKeyword(untyped):
		return w.fillKeywords(out, n, false)
	}
	var words []string
	list := typeFamilies(n.types)
	switch {
	case len(list) == 0: // null alone
		if w.hasKeyword(typeList) {
			out.kind = []string{"null"}
			return nil
		}
		w.exact = false
		out.kind = []string{"string"}
		return []string{"always null"}
	case len(list) > 1 && !w.hasKeyword(typeList):
		w.exact = false
		best := list[0]
		if n.types&^null == anything&^null {
			best = text
			words = append(words, "any JSON value")
		} else {
			for _, t := range list[1:] {
				other := n.restrictTo(t)
				other.words = nil
				words = append(words, "or "+phraseOf(other))
			}
			if n.types&null != 0 {
				words = append(words, "or null")
			}
		}
		n = n.restrictTo(best)
	case n.types&null != 0 && !w.hasKeyword(typeList):
		w.exact = false
		words = append(words, "or null")
		n = n.restrictTo(list[0])
	}
	out.kind = jsonTypes(n.types)
	return append(words, w.fillKeywords(out, n, false)...)
}

// restrictTo returns a node for the values of some types only.
func (n *node) restrictTo(t typeSet) *node {
	out := *n
	out.types = n.types & t
	return out.makeConsistent()
}

// fillKeywords writes the keywords of a node for the types that it has, and returns what it could not write.
func (w *writer) fillKeywords(out *objectText, n *node, root bool) []string {
	words := slices.Clone(n.words)
	if len(words) > 0 {
		w.exact = false
	}
	if n.cut {
		w.exact = false
	}
	lost := func(said string) {
		w.exact = false
		words = append(words, said)
	}
	if n.limited {
		w.writeEnum(out, n, lost)
	}
	w.writeLimits(out, n, lost)
	if n.types&text != 0 {
		w.writeTexts(out, n, lost)
	}
	if n.types&array != 0 {
		if len(out.kind) > 0 || n.items != nil || len(n.prefix) > 0 {
			w.writeItems(out, n, lost)
		}
		if n.unique {
			if w.hasKeyword("uniqueItems") {
				out.addField("uniqueItems", []byte("true"))
			} else {
				lost("no item twice")
			}
		}
	}
	if n.types&object != 0 && (len(out.kind) > 0 || len(n.properties) > 0 || n.additional != nil) {
		w.writeProperties(out, n, root, lost)
	}
	if !root {
		words = append(words, w.writeDefault(out, n)...)
	}
	return words
}

// writeDefault writes the default, or returns it in words.
func (w *writer) writeDefault(out *objectText, n *node) []string {
	switch {
	case n.fallback == nil:
		return nil
	case w.hasKeyword("default") && len(n.fallback.encodeJSON()) <= maxWords:
		out.addField("default", []byte(n.fallback.encodeJSON()))
		return nil
	}
	return []string{"default " + sourceText(n.fallback)}
}

// writeEnum writes the list of values of a node. Null is not listed where it cannot be said that null is valid.
func (w *writer) writeEnum(out *objectText, n *node, lost func(string)) {
	all := w.hasKeyword(anyEnum)
	listed := make([]string, 0, len(n.enum))
	for _, e := range n.enum {
		if !all && (e.kind != isString || e.text == "") {
			lost(phraseOf(n))
			return
		}
		listed = append(listed, e.encodeJSON())
	}
	if len(listed) > maxEnum {
		lost(phraseOf(n))
		return
	}
	var b bytes.Buffer
	b.WriteByte('[')
	for i, e := range listed {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(e)
	}
	b.WriteByte(']')
	out.addField("enum", b.Bytes())
}

// writeLimits writes the keywords with numbers.
func (w *writer) writeLimits(out *objectText, n *node, lost func(string)) {
	limits := n.limits
	if n.types&number == integer { // of integers, more than 1 is at least 2
		for exclusive, inclusive := range map[int]int{exclusiveMinimum: minimum, exclusiveMaximum: maximum} {
			step := int64(1)
			if exclusive == exclusiveMaximum {
				step = -1
			}
			r, ok := parseRational(limits[exclusive])
			if w.hasKeyword(limitNames[exclusive]) || !ok || !r.IsInt() {
				continue
			}
			next := new(big.Int).Add(r.Num(), big.NewInt(step)).String()
			limits[inclusive], _ = stricterLimit(inclusive, limits[inclusive], next)
			limits[exclusive] = ""
		}
	}
	for i, l := range limits {
		switch {
		case l == "" || n.types&limitTypes[i] == 0:
		case w.hasKeyword(limitNames[i]):
			out.addField(limitNames[i], []byte(l))
		default:
			lost(limitWords(i, l))
		}
	}
}

// writeTexts writes what is said of strings. A pattern that is not understood everywhere is said in words.
func (w *writer) writeTexts(out *objectText, n *node, lost func(string)) {
	if n.format != "" {
		if w.hasKeyword("format") && slices.Contains(formats, n.format) || w.hasKeyword(formatName+n.format) {
			out.addField("format", quoteText(n.format))
		} else {
			lost(formatWords(n.format))
		}
	}
	for i, p := range n.patterns {
		_, err := syntax.Parse(p, syntax.Perl)
		if i == 0 && err == nil && len(p) <= maxWords && w.hasKeyword("pattern") {
			out.addField("pattern", quoteText(p))
		} else {
			lost(patternWords(p))
		}
	}
}

// writeItems writes the items of a list: there always are some.
func (w *writer) writeItems(out *objectText, n *node, lost func(string)) {
	items := n.items
	if len(n.prefix) > 0 {
		said := make([]string, 0, len(n.prefix))
		all := &node{}
		for _, p := range n.prefix {
			said = append(said, phraseOf(p))
			all = eitherOf(all, p)
		}
		if items == nil {
			items = freeNode()
		}
		if !items.allowsNothing() {
			all = eitherOf(all, items)
		}
		items = all
		lost("its items in order: " + joinWords(said))
	}
	if items == nil || items.isFree() && !w.hasKeyword(untyped) && items.description == "" {
		lost("items of any type")
		out.addField("items", []byte(`{"type":"string"}`))
		return
	}
	out.addField("items", w.writeNode(items).encodeJSON())
}

// joinWords joins words up to a length.
func joinWords(list []string) string {
	var b bytes.Buffer
	for i, s := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(s)
	}
	return shortenText(b.String(), maxWords)
}

// writeProperties writes what is said of an object: there are always properties, if only none.
func (w *writer) writeProperties(out *objectText, n *node, root bool, lost func(string)) {
	var b bytes.Buffer
	var required []string
	b.WriteByte('{')
	for _, p := range n.properties {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		name, sub := w.keys.wireName(p.name), w.writeNode(p.node)
		if name != p.name {
			sub.description = addWords(sub.description, []string{
				"its full name is " + string(quoteText(shortenText(p.name, maxWords/2))),
			})
		}
		b.Write(quoteText(name))
		b.WriteByte(':')
		b.Write(sub.encodeJSON())
		if p.required {
			required = append(required, name)
		}
	}
	b.WriteByte('}')
	listed := b.Len() > len("{}")
	out.addField("properties", b.Bytes())
	if len(required) > 0 {
		out.addField("required", quoteTexts(required))
	}
	w.writeAdditional(out, n, root, listed, lost)
}

// writeAdditional writes what other properties than the listed ones may be. With a dialect that wants closed objects,
// those stay open that are for names nobody knows yet: closed, they would take nothing.
func (w *writer) writeAdditional(out *objectText, n *node, root, listed bool, lost func(string)) {
	closed := n.additional != nil && n.additional.allowsNothing()
	has := w.hasKeyword("additionalProperties")
	switch {
	case closed && (has || w.d.Closed):
		out.addField("additionalProperties", []byte("false"))
	case closed:
		w.exact = false
	case n.additional != nil:
		switch {
		case has && !w.d.Closed || has && !listed:
			out.addField("additionalProperties", w.writeNode(n.additional).encodeJSON())
		default:
			lost("other properties: " + phraseOf(n.additional))
			if w.d.Closed && listed {
				out.addField("additionalProperties", []byte("false"))
			}
		}
	case w.d.Closed && (listed || root) && !n.cut:
		w.exact = false
		out.addField("additionalProperties", []byte("false"))
	}
}
