// Package toolschema brings schemas of tools into the form that a model's server accepts. Tools come from
// everywhere, in every draft of JSON Schema; servers accept different subsets, and refuse a whole request for
// one schema that they do not like.
//
// A schema is read once into a canonical form (Read): references inlined, recursion cut, allOf merged, what the drafts
// say differently said in one way, always an object. From that it is written for a dialect (Schema.For). What a dialect
// cannot express is said in words, in the description of the property or of the tool; only two things are not, because
// every tool has them and they tell a model nothing: that other properties than the listed ones are not taken, and
// titles that repeat a name. A property whose name a server does not accept has another one on the wire (Keys).
//
// No argument that the tool takes is excluded, except where the dialect has no word for it: an argument of several
// types, or null, with a dialect that wants one type, and properties without a name with one that wants closed objects.
// The same schema always has the same bytes, because vendors cache the beginning of a prompt.
package toolschema

import (
	"bytes"
	"encoding/json"

	"github.com/zephbot/zephbot/agent/llm/dialect"
)

// Limits of a schema. What exceeds them is left out and said in words.
const (
	MaxBytes = 256 << 10 // of the text, and of all texts after following references
	maxNodes = 2000      // schemas within it, after following references
	maxDepth = 24        // of schemas within each other
	maxEnum  = 250       // values of one property
	// MaxTools is the number of tools in a request that the most servers accept.
	MaxTools = 128
	// MaxDescription is the length of a tool's description that every server accepts, in bytes.
	MaxDescription = 1024
)

// Schema is a schema in canonical form. It is never changed; safe for concurrent use.
type Schema struct{ root *node }

// Read brings a schema into canonical form. Whatever it is given, the result is a schema of an object: if the text is
// not a schema, one without properties that says so.
func Read(raw json.RawMessage) *Schema {
	if len(raw) > MaxBytes {
		return &Schema{&node{
			types: object,
			words: []string{"its arguments are not described here: their schema is too long"},
		}}
	}
	if len(bytes.TrimSpace(raw)) == 0 { // a tool without arguments
		return &Schema{&node{types: object}}
	}
	v, err := parseValue(raw)
	if err != nil || v.kind != isObject {
		if err == nil && (v.kind == isNull || v.kind == isBool) {
			return &Schema{&node{types: object}}
		}
		return &Schema{&node{
			types: object,
			words: []string{"its arguments are not described here: their schema cannot be read"},
		}}
	}
	r := newReader(v)
	return &Schema{r.readSchema(v, 0)}
}

// Written is a schema in the form of a dialect.
type Written struct {
	JSON  json.RawMessage
	Words string // what the schema itself cannot say of the arguments as a whole; for the tool's description
	// Keys translates the names of properties in arguments; nil = none is changed.
	Keys *Keys
	// Exact: the schema accepts the same arguments as the original one, as far as the properties are known that it
	// lists. Otherwise some condition is only said in words.
	Exact bool
}

// For writes the schema for a dialect.
func (s *Schema) For(d *dialect.Schema) Written {
	w := newWriter(d)
	w.keys = s.keysFor(d)
	out, words := w.writeRoot(s.root)
	return Written{JSON: out, Words: addWords("", words), Keys: w.keys, Exact: w.exact}
}

// Tool returns the description and the schema of a tool for a dialect, and how the names of its properties are
// translated. A description that is too long goes on in the schema, where no server limits it.
func Tool(description string, schema json.RawMessage, d *dialect.Schema) (string, json.RawMessage, *Keys) {
	w := newWriter(d)
	s := Read(schema)
	w.keys = s.keysFor(d)
	limit := d.MaxDescription
	if limit == 0 {
		limit = MaxDescription
	}
	out, words := w.writeObject(s.root)
	description = addWords(description, words)
	rest := out.description
	if len(description) > limit {
		head := shortenText(description, limit)
		rest = "…" + description[len(head)-len("…"):]
		if out.description != "" {
			rest += "\n" + out.description
		}
		description = head
	}
	out.description = rest
	return description, out.encodeJSON(), w.keys
}
