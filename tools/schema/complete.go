package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// Complete returns a schema that says the same, in which every object names its properties and every array its items,
// if only as {}. OpenAI, for one, refuses a whole request in which one tool's schema has an object without properties
// or an array without items. Everything else stays as it is, byte by byte, the order of properties too; so does what is
// no JSON object, or nested deeper than MaxDepth.
func Complete(raw json.RawMessage) json.RawMessage {
	c := completer{dec: json.NewDecoder(bytes.NewReader(raw))}
	c.dec.UseNumber()
	if c.schema(0) != nil || len(c.added) == 0 {
		return raw
	}
	out := make([]byte, 0, len(raw)+len(c.added)*len(`,"properties":{}`))
	from := 0
	for _, a := range c.added {
		out = append(append(out, raw[from:a.at]...), a.text...)
		from = a.at
	}
	return append(out, raw[from:]...)
}

// Keywords that contain schemas: as their value or in a list, or by name.
var (
	nestedSchemas = []string{
		"items", "prefixItems", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties",
		"contains", "propertyNames", "not", "if", "then", "else", "allOf", "anyOf", "oneOf",
	}
	namedSchemas = []string{"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"}
)

// completer reads a schema once, from the beginning to the end.
type completer struct {
	dec   *json.Decoder
	added []addition // in the order of their places
}

// addition is a text that is missing before the closing brace of an object.
type addition struct {
	at   int // offset of the brace
	text string
}

var errTooDeep = errors.New("the schema is nested too deep")

// schema reads a value that is a schema, or a list of them.
func (c *completer) schema(level int) error {
	t, err := c.dec.Token()
	if err != nil {
		return err
	}
	if level > MaxDepth {
		return errTooDeep
	}
	switch t {
	case json.Delim('['):
		for c.dec.More() {
			if err := c.schema(level + 1); err != nil {
				return err
			}
		}
		_, err = c.dec.Token()
		return err
	case json.Delim('{'):
		return c.keywords(level)
	}
	return nil
}

// keywords reads the rest of an object that is a schema.
func (c *completer) keywords(level int) error {
	var kinds, has []string
	for c.dec.More() {
		key, err := c.dec.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		has = append(has, name)
		switch {
		case name == "type":
			kinds, err = c.kinds()
		case slices.Contains(nestedSchemas, name):
			err = c.schema(level + 1)
		case slices.Contains(namedSchemas, name):
			err = c.named(level + 1)
		default:
			err = c.dec.Decode(new(json.RawMessage))
		}
		if err != nil {
			return err
		}
	}
	if _, err := c.dec.Token(); err != nil {
		return err
	}
	text := ""
	if slices.Contains(kinds, "object") && !slices.Contains(has, "properties") {
		text += `,"properties":{}`
	}
	if slices.Contains(kinds, "array") && !slices.Contains(has, "items") {
		text += `,"items":{}`
	}
	if text != "" {
		c.added = append(c.added, addition{int(c.dec.InputOffset()) - 1, text})
	}
	return nil
}

// kinds reads the value of type: a name, or a list of names.
func (c *completer) kinds() ([]string, error) {
	var value any
	if err := c.dec.Decode(&value); err != nil {
		return nil, err
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	var names []string
	for _, v := range list {
		if name, ok := v.(string); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// named reads an object whose values are schemas.
func (c *completer) named(level int) error {
	if t, err := c.dec.Token(); err != nil || t != json.Delim('{') {
		if t == json.Delim('[') {
			return errors.New("a list where names are expected")
		}
		return err
	}
	for c.dec.More() {
		if _, err := c.dec.Token(); err != nil {
			return err
		}
		if err := c.schema(level); err != nil {
			return err
		}
	}
	_, err := c.dec.Token()
	return err
}
