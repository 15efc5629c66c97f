package catalog

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// thinking is the field for thoughts (seed 003).
const thinking = "thinking"

// thinkingSchema is the schema of the field.
const thinkingSchema = `"thinking":{"type":"string","description":"Optional, fill in first: ` +
	`think step by step about which values the other parameters need. The tool does not get it."}`

const defaultThreshold = 0.6

// clampThreshold clamps a threshold to 0..1. NaN becomes the default.
func clampThreshold(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return defaultThreshold
	}
	return min(max(v, 0), 1)
}

// Limits of the part of a schema that is scored. Deeper or larger schemas are scored by the part within.
const (
	maxSchemaDepth = 64
	maxSchemaNodes = 20000
)

// The factors of Complexity. Each of them alone reaches the default threshold at its cap.
const (
	complexWeight = 0.6
	capRequired   = 6
	capNesting    = 4
	capEnum       = 20
)

// Complexity estimates how hard it is to get the arguments of a tool right, 0..1, from the seeds' three factors:
//
//	min(1, 0.6·min(required, 6)/6 + 0.6·min(nesting, 4)/4 + 0.6·min(enum, 20)/20)
//
// required counts the names in every "required", including nested ones. nesting is the longest path from the top
// through properties that are objects, items of arrays and branches of anyOf, oneOf and allOf. enum is the number of
// values of the largest single enum, or of sibling constants in a oneOf or anyOf. Local references are followed. So six
// required parameters, four levels, or twenty values each reach 0.6 alone, and halves of two factors add up:
//
//	{}                                                     0
//	one string                                             0
//	one required string (bash)                             0.1
//	three required strings (edit)                          0.3
//	one enum of 10                                         0.3
//	an array of strings                                    0.15
//	an array of objects                                    0.3
//	an array of objects, three required names              0.6
//	six required strings                                   0.6
//	four required strings, one enum of 10                  0.7
//	an enum of 20                                          0.6
//	objects in objects in objects in objects               0.6
func Complexity(schema json.RawMessage) float64 {
	var doc any
	if json.Unmarshal(schema, &doc) != nil {
		return 0
	}
	m := &measure{root: doc}
	m.walkSchema(doc, 0, nil)
	part := func(n, limit int) float64 { return complexWeight * float64(min(n, limit)) / float64(limit) }
	sum := part(m.required, capRequired) + part(m.nesting, capNesting) + part(m.enum, capEnum)
	return min(1, math.Round(sum*1e9)/1e9) // so that a third and two thirds add up to one
}

// measure holds the counts while a schema is walked.
type measure struct {
	root                    any
	nodes                   int
	required, nesting, enum int
}

// walkSchema visits a schema at the given level. refs are the references being followed.
func (m *measure) walkSchema(v any, level int, refs []string) {
	s, ok := v.(map[string]any)
	if m.nodes++; !ok || m.nodes > maxSchemaNodes || level > maxSchemaDepth {
		return
	}
	m.nesting = max(m.nesting, level)
	if names, ok := s["required"].([]any); ok {
		m.required += len(names)
	}
	if values, ok := s["enum"].([]any); ok {
		m.enum = max(m.enum, len(values))
	}
	if ref, ok := s["$ref"].(string); ok && !slices.Contains(refs, ref) {
		m.walkSchema(m.lookUpRef(ref), level, append(slices.Clone(refs), ref))
	}
	for _, key := range sortedKeys(s) {
		switch sub := s[key].(type) {
		case map[string]any:
			m.measureObject(key, sub, level, refs)
		case []any:
			m.visitBranches(key, sub, level, refs)
		}
	}
}

func (m *measure) measureObject(key string, sub map[string]any, level int, refs []string) {
	switch key {
	case "properties", "patternProperties":
		for _, name := range sortedKeys(sub) {
			if p, ok := sub[name].(map[string]any); ok {
				m.walkSchema(p, level+m.innerLevel(p), refs)
			}
		}
	case "items", "additionalProperties", "contains":
		m.walkSchema(sub, level+m.innerLevel(sub), refs)
	}
}

// visitBranches visits alternatives. Sibling constants count as an enum.
func (m *measure) visitBranches(key string, list []any, level int, refs []string) {
	switch key {
	case "anyOf", "oneOf", "allOf", "prefixItems", "items":
	default:
		return
	}
	constants := 0
	for _, b := range list {
		if s, ok := b.(map[string]any); ok && s["const"] != nil {
			constants++
			continue
		}
		m.walkSchema(b, level+1, refs)
	}
	m.enum = max(m.enum, constants)
}

// innerLevel returns 1 for a value that contains values: an object with properties, or an array.
func (m *measure) innerLevel(s map[string]any) int {
	if ref, ok := s["$ref"].(string); ok && len(s) <= 2 {
		if target, ok := m.lookUpRef(ref).(map[string]any); ok && target["$ref"] == nil {
			s = target
		}
	}
	for _, key := range []string{"properties", "patternProperties", "items", "prefixItems"} {
		if s[key] != nil {
			return 1
		}
	}
	if kind, ok := s["type"].(string); ok && kind == "array" {
		return 1
	}
	return 0
}

// lookUpRef resolves a local reference such as "#/$defs/x".
func (m *measure) lookUpRef(ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	v := m.root
	if path == "" {
		return v
	}
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch at := v.(type) {
		case map[string]any:
			v = at[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

// withThinking inserts the field for thoughts before the other properties. All other bytes are unchanged, because the
// order of keys is part of what a model reads, and a vendor may support keywords that we do not know. It returns false
// if the schema is not an object or has such a field of its own.
func withThinking(schema json.RawMessage) (json.RawMessage, bool) {
	var doc map[string]any
	if json.Unmarshal(schema, &doc) != nil || doc == nil || thinksItself(doc) {
		return nil, false
	}
	if props, ok := doc["properties"]; ok {
		m, ok := props.(map[string]any)
		if !ok {
			return nil, false
		}
		return insertText(schema, propertiesAt(schema), thinkingSchema, len(m) > 0), true
	}
	return insertText(schema, bytes.IndexByte(schema, '{')+1, `"properties":{`+thinkingSchema+`}`, len(doc) > 0), true
}

func insertText(text []byte, at int, what string, more bool) json.RawMessage {
	out := make([]byte, 0, len(text)+len(what)+1)
	out = append(append(out, text[:at]...), what...)
	if more {
		out = append(out, ',')
	}
	return append(out, text[at:]...)
}

// propertiesAt returns the offset after the opening brace of the top-level "properties". If there are several, the last
// counts. schema must be a valid object that has one.
func propertiesAt(schema []byte) int {
	dec := json.NewDecoder(bytes.NewReader(schema))
	at := 0
	if _, err := dec.Token(); err != nil {
		return 0
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return at
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return at
		}
		if key == "properties" {
			at = int(dec.InputOffset()) - len(value) + 1
		}
	}
	return at
}

// thinksItself reports whether a schema has a field of its own for thoughts. If the top level is composed of other
// schemas, the name counts wherever it occurs.
func thinksItself(doc map[string]any) bool {
	if names, ok := doc["required"].([]any); ok {
		for _, n := range names {
			if s, ok := n.(string); ok && strings.EqualFold(s, thinking) {
				return true
			}
		}
	}
	if props, ok := doc["properties"].(map[string]any); ok && hasThinking(props, 1) {
		return true
	}
	for _, key := range []string{
		"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "then", "else",
		"dependentSchemas", "dependentRequired", "dependencies", "patternProperties",
	} {
		if doc[key] != nil {
			return hasThinking(doc, maxSchemaDepth)
		}
	}
	return false
}

// hasThinking looks for the name among the keys of v, to the given depth.
func hasThinking(v any, depth int) bool {
	if depth == 0 {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		for key, sub := range v {
			if strings.EqualFold(key, thinking) || hasThinking(sub, depth-1) {
				return true
			}
		}
	case []any:
		for _, sub := range v {
			if hasThinking(sub, depth-1) {
				return true
			}
		}
	}
	return false
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
