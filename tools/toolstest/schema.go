package toolstest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// SchemaFault returns what the strictest vendor would refuse in the schema of a tool; "" = nothing. It wants an object at
// the top, `properties` in each schema of objects and `items` in each schema of arrays.
func SchemaFault(raw json.RawMessage) string {
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return fmt.Sprintf("no JSON object: %v", err)
	}
	if doc["type"] != "object" {
		return fmt.Sprintf("the top is of type %v", doc["type"])
	}
	return schemaFault(doc, "")
}

// schemaFault looks for the fault in one part. What is data and no schema (default, enum, const, examples) is passed over.
func schemaFault(v any, path string) string {
	switch v := v.(type) {
	case []any:
		for i, sub := range v {
			if fault := schemaFault(sub, fmt.Sprintf("%s/%d", path, i)); fault != "" {
				return fault
			}
		}
	case map[string]any:
		for _, want := range [][2]string{{"object", "properties"}, {"array", "items"}} {
			kinds, _ := v["type"].([]any)
			if _, ok := v[want[1]]; !ok && (v["type"] == want[0] || slices.Contains(kinds, any(want[0]))) {
				return fmt.Sprintf("%s is of type %s and has no %s", path, want[0], want[1])
			}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if slices.Contains([]string{"default", "enum", "const", "examples", "required"}, key) {
				continue
			}
			if fault := schemaFault(v[key], path+"/"+key); fault != "" {
				return fault
			}
		}
	}
	return ""
}
