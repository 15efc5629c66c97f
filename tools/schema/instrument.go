package schema

import (
	"encoding/json"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// instrument adds the meter to every part of a compiled schema. The library checks the format of a value before it
// looks into the value or follows a reference, and a format can be any function. That is where every visit is charged,
// together with its own cost.
func instrument(root *jsonschema.Schema, owner *Schema) {
	seen := map[*jsonschema.Schema]bool{}
	queue := []*jsonschema.Schema{root}
	for len(queue) > 0 {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if s == nil || seen[s] {
			continue
		}
		seen[s] = true
		inner := subschemas(s)
		prepare(s, owner, len(inner))
		queue = append(queue, inner...)
	}
}

// prepare makes one part charge the meter. It removes the keywords that decode the content of strings: they are not
// checked by default, and we could not limit their cost.
func prepare(s *jsonschema.Schema, owner *Schema, breadth int) {
	s.ContentEncoding, s.ContentMediaType, s.ContentSchema = nil, nil, nil
	fixed := 1 + breadth + len(s.Required) + len(s.DependentRequired)
	if s.Enum != nil {
		fixed += len(s.Enum.Values)
		for _, v := range s.Enum.Values {
			fixed += weight(v) / 16
		}
	}
	if s.Const != nil {
		fixed += weight(*s.Const) / 16
	}
	expressions, unique := len(s.PatternProperties), s.UniqueItems
	var check func(v any) error
	if f := s.Format; f != nil && f.Name != "regex" { // compiling a value as an expression has no cost limit
		check = f.Validate
	}
	s.Format = &jsonschema.Format{Name: name(s.Format), Validate: func(v any) error {
		owner.meter.charge(fixed)
		switch v := v.(type) {
		case map[string]any:
			owner.meter.charge(len(v) * (1 + expressions))
		case []any:
			owner.meter.charge(len(v))
			if unique {
				owner.meter.charge(20 * weight(v))
			}
		case string:
			owner.meter.charge(len(v) / 256)
		case json.Number:
			if !modest(string(v)) {
				stop(ErrTooCostly)
			}
		}
		if check != nil {
			return check(v)
		}
		return nil
	}}
}

// name returns the name of a format in errors. It is never "regex", for which the library does not call the format.
func name(f *jsonschema.Format) string {
	if f == nil || f.Name == "regex" {
		return "any"
	}
	return f.Name
}

// weight estimates how many bytes of a value a comparison reads.
func weight(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for key, sub := range v {
			n += len(key)/16 + weight(sub)
		}
	case []any:
		for _, sub := range v {
			n += weight(sub)
		}
	case string:
		n += len(v) / 16
	case json.Number:
		n += len(v)
	}
	return n
}

// subschemas returns the schemas that a schema may apply.
func subschemas(s *jsonschema.Schema) []*jsonschema.Schema {
	list := []*jsonschema.Schema{
		s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties, s.Contains,
		s.Items2020, s.UnevaluatedItems,
	}
	list = append(append(append(append(list, s.AllOf...), s.AnyOf...), s.OneOf...), s.PrefixItems...)
	if s.DynamicRef != nil {
		list = append(list, s.DynamicRef.Ref)
	}
	for _, group := range []map[string]*jsonschema.Schema{s.Properties, s.DependentSchemas} {
		for _, sub := range group {
			list = append(list, sub)
		}
	}
	for _, sub := range s.PatternProperties {
		list = append(list, sub)
	}
	for _, sub := range s.Dependencies {
		list = append(list, one(sub)...)
	}
	for _, v := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		list = append(list, one(v)...)
	}
	out := list[:0]
	for _, sub := range list {
		if sub != nil {
			out = append(out, sub)
		}
	}
	return out
}

func one(v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return []*jsonschema.Schema{v}
	case []*jsonschema.Schema:
		return v
	}
	return nil
}

// expression is a regular expression that charges for what it reads.
type expression struct {
	owner *Schema
	text  string
	parts int
	re    *regexp.Regexp // nil = it accepts everything
}

// regexp compiles a pattern of the schema. One that RE2 does not know is not an error.
func (s *Schema) regexp(text string) (jsonschema.Regexp, error) {
	e := &expression{owner: s, text: text}
	n, err := program(text)
	if err != nil {
		return e, nil //nolint:nilerr // the server checks such a pattern itself
	}
	e.parts = n
	if e.re, err = regexp.Compile(text); err != nil {
		e.re = nil
	}
	return e, nil
}

// String implements jsonschema.Regexp.
func (e *expression) String() string { return e.text }

// MatchString implements jsonschema.Regexp.
func (e *expression) MatchString(text string) bool {
	if e.re == nil {
		return true
	}
	e.owner.meter.charge(1 + e.parts*len(text)/64)
	return e.re.MatchString(text)
}
