package guard

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// hintDepth is the number of schema levels that Hint describes.
const hintDepth = 6

// Hint describes a structured result in at most limit bytes, for models whose API has no field for an output schema. It
// returns the schema itself if it fits without white space, or else a short notation of its types ({"rows": [{"id":
// integer}], "count"?: integer}), cut if necessary. It returns "" when there is nothing to say. The schema must come
// from Sanitise.
func Hint(schema json.RawMessage, limit int) string {
	const lead = "Structured result: "
	room := limit - len(lead)
	if len(schema) == 0 || room < 16 {
		return ""
	}
	var compact bytes.Buffer
	if json.Compact(&compact, schema) != nil {
		return ""
	}
	if compact.Len() <= 2 {
		return "" // {} says nothing
	}
	text := strings.ToValidUTF8(compact.String(), "\uFFFD")
	if len(text) <= room {
		return lead + text
	}
	var doc any
	if json.Unmarshal(schema, &doc) != nil {
		return ""
	}
	text, _ = Text(shape(doc, hintDepth), scanHint)
	if len(text) > room {
		text = cut(text, room-len("…")) + "…"
	}
	return lead + text
}

// scanHint is the maximum length of the notation before it is cut.
const scanHint = maxSchema

// shape returns the notation of a schema.
func shape(v any, depth int) string {
	s, ok := v.(map[string]any)
	if !ok || depth == 0 {
		return "any"
	}
	if list, ok := s["enum"].([]any); ok {
		return values(list)
	}
	if c, ok := s["const"]; ok {
		return string(compactValue(c))
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if list, ok := s[word].([]any); ok && len(list) > 0 {
			return alternatives(list, depth)
		}
	}
	kind := typeOf(s)
	switch kind {
	case "object":
		return object(s, depth)
	case "array":
		return "[" + shape(s["items"], depth-1) + "]"
	case "":
		if _, ok := s["properties"]; ok {
			return object(s, depth)
		}
		return "any"
	}
	return kind
}

func typeOf(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		var names []string
		for _, each := range t {
			if name, ok := each.(string); ok {
				names = append(names, name)
			}
		}
		return strings.Join(names, "|")
	}
	return ""
}

func alternatives(list []any, depth int) string {
	var forms []string
	for _, each := range list {
		if form := shape(each, depth-1); !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	return strings.Join(forms, "|")
}

func values(list []any) string {
	const most = 12
	var out []string
	for _, v := range list[:min(len(list), most)] {
		out = append(out, string(compactValue(v)))
	}
	if len(list) > most {
		out = append(out, "…")
	}
	return strings.Join(out, "|")
}

func compactValue(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return []byte("any")
	}
	return bytes.TrimSpace(b.Bytes())
}

// object returns the notation of properties: required ones first, each group by name.
func object(s map[string]any, depth int) string {
	props, _ := s["properties"].(map[string]any)
	if len(props) == 0 {
		return "object"
	}
	required, _ := s["required"].([]any)
	names := make([]string, 0, len(props))
	for name := range props {
		names = append(names, name)
	}
	optional := func(name string) bool { return !slices.Contains(required, any(name)) }
	slices.SortFunc(names, func(a, b string) int {
		if x, y := optional(a), optional(b); x != y {
			if x {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
	parts := make([]string, len(names))
	for i, name := range names {
		mark := ""
		if optional(name) {
			mark = "?"
		}
		parts[i] = string(compactValue(name)) + mark + ": " + shape(props[name], depth-1)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
