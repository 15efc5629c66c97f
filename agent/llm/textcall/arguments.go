package textcall

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
)

// argumentsFor returns the arguments of a call as JSON; as they were written if they cannot be read.
func (c *writtenCall) argumentsFor(tool *llm.Tool) json.RawMessage {
	switch {
	case c.broken != "":
		return json.RawMessage(c.broken)
	case c.values == nil && c.args == nil:
		return json.RawMessage("{}")
	case c.values == nil:
		return c.args
	}
	types := propertyTypes(tool.Schema)
	fields := make(map[string]json.RawMessage, len(c.values))
	for _, v := range c.values {
		fields[v.key] = v.encodeFor(types[v.key])
	}
	encoded, err := json.Marshal(fields)
	if err != nil { // unreachable: strings and valid JSON
		return json.RawMessage(`{}`)
	}
	return encoded
}

// propertyTypes returns the types that a schema allows for each property at its top.
func propertyTypes(schema json.RawMessage) map[string][]string {
	type property struct {
		Type  json.RawMessage `json:"type"`
		AnyOf []struct {
			Type string `json:"type"`
		} `json:"anyOf"`
	}
	var object struct {
		Properties map[string]property `json:"properties"`
	}
	if json.Unmarshal(schema, &object) != nil {
		return nil
	}
	types := make(map[string][]string, len(object.Properties))
	for name, p := range object.Properties {
		var one string
		var list []string
		if json.Unmarshal(p.Type, &one) == nil && one != "" {
			list = []string{one}
		} else if json.Unmarshal(p.Type, &list) != nil {
			list = nil
		}
		for _, alternative := range p.AnyOf {
			list = append(list, alternative.Type)
		}
		types[name] = list
	}
	return types
}

// encodeFor returns a value as JSON. It is a string unless the schema wants something else that the text is.
func (v *value) encodeFor(types []string) json.RawMessage {
	trimmed := strings.TrimSpace(v.text)
	asText := v.plain || len(types) == 0 && !v.typed || slices.Equal(types, []string{"string"})
	if !asText {
		raw, n, err := readValue(trimmed, false)
		if err == nil && n == len(trimmed) && (len(types) == 0 || slices.Contains(types, typeOf(raw)) ||
			typeOf(raw) == "integer" && slices.Contains(types, "number")) {
			return raw
		}
	}
	encoded, err := json.Marshal(v.text)
	if err != nil { // unreachable: every string can be encoded
		return json.RawMessage(`""`)
	}
	return encoded
}

// typeOf returns the name that JSON Schema has for the type of a value.
func typeOf(raw json.RawMessage) string {
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		if strings.ContainsAny(string(raw), ".eE") {
			return "number"
		}
		return "integer"
	}
}
