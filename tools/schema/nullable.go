package schema

import (
	"reflect"
	"slices"
)

// allowNull adds null to what a schema says to be nullable. The keyword is OpenAPI's, not JSON Schema's, but many
// servers write it, and a model that is shown such a schema sends null. It applies to a type and to a list of values,
// as OpenAPI defines it. doc is changed.
func allowNull(doc any, keys bool) {
	switch v := doc.(type) {
	case []any:
		for _, sub := range v {
			allowNull(sub, false)
		}
	case map[string]any:
		if !keys && v["nullable"] == true {
			nullable(v)
		}
		for key, sub := range v {
			switch {
			case keys:
				allowNull(sub, false)
			case slices.Contains(valueKeywords, key):
			default:
				allowNull(sub, slices.Contains(keyedKeywords, key))
			}
		}
	}
}

// The keywords whose value is no schema, and those whose value has schemas by names that somebody chose.
var (
	valueKeywords = []string{"default", "const", "enum", "example", "examples", "required"}
	keyedKeywords = []string{
		"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies",
	}
)

// nullable adds null to the types and the values of one schema.
func nullable(s map[string]any) {
	switch t := s["type"].(type) {
	case string:
		if t != "null" {
			s["type"] = []any{t, "null"}
		}
	case []any:
		if !slices.Contains(t, any("null")) {
			s["type"] = append(slices.Clip(t), "null")
		}
	}
	list, listed := s["enum"].([]any)
	if value, fixed := s["const"]; fixed {
		if listed && !slices.ContainsFunc(list, func(e any) bool { return reflect.DeepEqual(e, value) }) {
			list = nil
		} else {
			list = []any{value}
		}
		listed = true
		delete(s, "const")
	}
	if listed && !slices.Contains(list, nil) {
		s["enum"] = append(slices.Clip(list), nil)
	}
}
