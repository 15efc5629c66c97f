// Package schematest looks at schemas of tools as model servers do: written apart from what writes schemas, and as
// strict as anything that is known of the servers.
package schematest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/zephbot/zephbot/agent/llm/dialect"
)

// Faults returns what a server with a dialect would refuse in the schema of a tool, at most ten things; none = it takes
// the schema.
func Faults(raw json.RawMessage, d *dialect.Schema) []string {
	var doc any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		return []string{err.Error()}
	}
	c := &checker{d: d}
	root, _ := doc.(map[string]any)
	if root["type"] != "object" {
		c.say("", "the root is no object")
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf", "enum", "not"} {
		if root[keyword] != nil {
			c.say("", keyword+" at the root")
		}
	}
	c.schema("", doc, 0)
	return c.problems
}

type checker struct {
	d        *dialect.Schema
	problems []string
}

func (c *checker) say(at, problem string) {
	if len(c.problems) < 10 {
		c.problems = append(c.problems, at+": "+problem)
	}
}

// safe are the keywords that every server takes.
var safe = []string{"type", "description", "properties", "required", "items", "enum"}

func (c *checker) may(keyword string) bool { return slices.Contains(c.d.Keywords, keyword) }

func (c *checker) schema(at string, doc any, level int) {
	s, ok := doc.(map[string]any)
	if !ok {
		c.say(at, "no object")
		return
	}
	for keyword, v := range s {
		closed := keyword == "additionalProperties" && v == false && c.d.Closed
		date := keyword == "format" && c.may("format:"+fmt.Sprint(v))
		if !slices.Contains(safe, keyword) && !c.may(keyword) && !closed && !date {
			c.say(at, "keyword "+keyword)
		}
	}
	types := c.types(at, s)
	for _, t := range types {
		switch t {
		case "object":
			c.object(at, s)
		case "array":
			if _, ok := s["items"].(map[string]any); !ok {
				c.say(at, "list without items")
			}
		case "string", "number", "integer", "boolean":
		case "null":
			if len(types) == 1 && !c.may("type[]") {
				c.say(at, "null")
			}
		default:
			c.say(at, "type "+t)
		}
	}
	c.enum(at, s, types)
	if p, ok := s["pattern"].(string); ok {
		if _, err := regexp.Compile(p); err != nil {
			c.say(at, "pattern "+p)
		}
	}
	if items, ok := s["items"]; ok {
		c.schema(at+"/items", items, level+1)
	}
	if more, ok := s["additionalProperties"]; ok {
		if _, closed := more.(bool); !closed {
			c.schema(at+"/*", more, level+1)
		} else if more != false {
			c.say(at, "additionalProperties true")
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for name, sub := range properties {
		c.schema(at+"/"+name, sub, level+1)
	}
	if list, ok := s["anyOf"].([]any); ok {
		if len(list) < 2 || len(types) > 0 {
			c.say(at, "anyOf of less than two, or with a type beside it")
		}
		for i, sub := range list {
			if branch, _ := sub.(map[string]any); branch["type"] == nil && branch["anyOf"] == nil && !c.may("untyped") {
				c.say(at, "anyOf of something without a type")
			}
			c.schema(fmt.Sprintf("%s/anyOf/%d", at, i), sub, level+1)
		}
	}
}

func (c *checker) types(at string, s map[string]any) []string {
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		if !c.may("type[]") {
			c.say(at, "list of types")
		}
		var out []string
		for _, e := range t {
			out = append(out, fmt.Sprint(e))
		}
		return out
	case nil:
		if s["anyOf"] == nil && !c.may("untyped") {
			c.say(at, "no type")
		}
	default:
		c.say(at, "type is no text")
	}
	return nil
}

var keys = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

func (c *checker) object(at string, s map[string]any) {
	properties, ok := s["properties"].(map[string]any)
	if !ok {
		c.say(at, "object without properties")
	}
	for name := range properties {
		if !c.may("keys*") && !keys.MatchString(name) {
			c.say(at, "property named "+name)
		}
	}
	if r, ok := s["required"]; ok {
		list, _ := r.([]any)
		if len(list) == 0 {
			c.say(at, "required is empty or no list")
		}
		for _, name := range list {
			if _, ok := properties[fmt.Sprint(name)]; !ok {
				c.say(at, fmt.Sprintf("required %v is no property", name))
			}
		}
	}
	// An object for names that nobody knows yet would take nothing if it were closed.
	if c.d.Closed && len(properties) > 0 && s["additionalProperties"] != false {
		c.say(at, "object that is not closed")
	}
}

func (c *checker) enum(at string, s map[string]any, types []string) {
	e, ok := s["enum"]
	if !ok {
		return
	}
	list, _ := e.([]any)
	if len(list) == 0 || len(list) > 1000 {
		c.say(at, "enum is empty, too long or no list")
	}
	if c.may("enum*") {
		return
	}
	for _, v := range list {
		if text, ok := v.(string); !ok || text == "" {
			c.say(at, fmt.Sprintf("enum has %v", v))
		}
	}
	if len(types) != 1 || types[0] != "string" {
		c.say(at, "enum of something else than strings")
	}
}
