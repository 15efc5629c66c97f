package toolschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
)

// value is a piece of JSON whose objects keep their order: the order of properties is part of what a model reads, and
// the same schema must always have the same bytes.
type value struct {
	kind   kind
	text   string // of a string, decoded; of a number, as it was written; "true" or "false"
	list   []*value
	names  []string // of an object, in the order of the text; each once
	fields map[string]*value
}

type kind byte

const (
	isNull kind = iota
	isBool
	isNumber
	isString
	isList
	isObject
)

const (
	maxNesting = 400 // objects and lists within each other, in the text of a schema
	maxNumber  = 64  // bytes of a number; a longer one is no limit that anybody has set by intention
)

var (
	errNesting  = errors.New("it is nested too deeply")
	errTrailing = errors.New("something follows it")
)

// parseValue reads one piece of JSON. If a name occurs twice in an object, the last one counts.
func parseValue(raw []byte) (*value, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := readValue(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errTrailing
	}
	return v, nil
}

func readValue(dec *json.Decoder, level int) (*value, error) {
	if level > maxNesting {
		return nil, errNesting
	}
	token, err := dec.Token()
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	switch t := token.(type) {
	case nil:
		return &value{kind: isNull}, nil
	case bool:
		return &value{kind: isBool, text: fmt.Sprint(t)}, nil
	case json.Number:
		return &value{kind: isNumber, text: t.String()}, nil
	case string:
		return &value{kind: isString, text: t}, nil
	case json.Delim:
		if t == '[' {
			return readList(dec, level)
		}
		return readObject(dec, level)
	}
	return nil, fmt.Errorf("unexpected token %v", token) // unreachable: these are all the tokens of the decoder
}

func readList(dec *json.Decoder, level int) (*value, error) {
	v := &value{kind: isList}
	for dec.More() {
		sub, err := readValue(dec, level+1)
		if err != nil {
			return nil, err
		}
		v.list = append(v.list, sub)
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	return v, nil
}

func readObject(dec *json.Decoder, level int) (*value, error) {
	v := &value{kind: isObject, fields: map[string]*value{}}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("read JSON: %w", err)
		}
		name, _ := token.(string)
		sub, err := readValue(dec, level+1)
		if err != nil {
			return nil, err
		}
		if _, again := v.fields[name]; !again {
			v.names = append(v.names, name)
		}
		v.fields[name] = sub
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	return v, nil
}

// fieldAt returns a field of an object; nil if there is none, or no object.
func (v *value) fieldAt(name string) *value {
	if v == nil {
		return nil
	}
	return v.fields[name]
}

// stringAt returns a field that is a text; "" otherwise.
func (v *value) stringAt(name string) string {
	if f := v.fieldAt(name); f != nil && f.kind == isString {
		return f.text
	}
	return ""
}

// isKind reports whether a field has a kind.
func (v *value) isKind(name string, k kind) bool {
	f := v.fieldAt(name)
	return f != nil && f.kind == k
}

// isTrue reports whether a field is true.
func (v *value) isTrue(name string) bool {
	return v.isKind(name, isBool) && v.fields[name].text == "true"
}

// typeOf returns the type of a value.
func (v *value) typeOf() typeSet {
	switch v.kind {
	case isNull:
		return null
	case isBool:
		return boolean
	case isString:
		return text
	case isList:
		return array
	case isObject:
		return object
	}
	if r, ok := parseRational(v.text); ok && r.IsInt() {
		return integer
	}
	return fraction
}

// parseRational returns a number; false if it is too long to be read at a bounded cost.
func parseRational(number string) (*big.Rat, bool) {
	if len(number) > maxNumber {
		return nil, false
	}
	if _, power, ok := strings.Cut(strings.ToLower(number), "e"); ok && len(strings.TrimLeft(power, "+-0")) > 3 {
		return nil, false
	}
	return new(big.Rat).SetString(number)
}

// equalityText is a text that two values share exactly if they are equal: 1 and 1.0 are, and objects in any order.
func (v *value) equalityText() string {
	var b bytes.Buffer
	v.writeTo(&b, true, MaxBytes)
	return b.String()
}

// encodeJSON is the shortest text of a value.
func (v *value) encodeJSON() string {
	var b bytes.Buffer
	v.writeTo(&b, false, MaxBytes)
	return b.String()
}

// sourceText is the beginning of the text of a value, for people.
func sourceText(v *value) string {
	var b bytes.Buffer
	v.writeTo(&b, false, maxWords)
	return shortenText(b.String(), maxWords)
}

// writeTo writes a value, and stops somewhere behind limit.
func (v *value) writeTo(b *bytes.Buffer, alike bool, limit int) {
	if b.Len() > limit {
		return
	}
	switch v.kind {
	case isNull:
		b.WriteString("null")
	case isBool:
		b.WriteString(v.text)
	case isNumber:
		if r, ok := parseRational(v.text); ok && alike {
			b.WriteString(r.RatString())
			return
		}
		b.WriteString(v.text)
	case isString:
		if len(v.text) > limit {
			b.Write(quoteText(v.text[:limit])) // the rest would only be cut
			return
		}
		b.Write(quoteText(v.text))
	case isList:
		b.WriteByte('[')
		for i, sub := range v.list {
			if i > 0 {
				b.WriteByte(',')
			}
			sub.writeTo(b, alike, limit)
		}
		b.WriteByte(']')
	case isObject:
		names := v.names
		if alike {
			names = slices.Sorted(slices.Values(names))
		}
		b.WriteByte('{')
		for i, name := range names {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(quoteText(name))
			b.WriteByte(':')
			v.fields[name].writeTo(b, alike, limit)
		}
		b.WriteByte('}')
	}
}

// quoteText returns a text in JSON, readable for a model: without escapes for HTML.
func quoteText(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // unreachable: a string can always be encoded
		return []byte(`""`)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
