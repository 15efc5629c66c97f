package negotiate

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Bounds of what is read of a request that was refused.
const (
	maxPaths = 512
	maxDepth = 32
)

// Sent describes a request by what a refusal of it can name.
type Sent struct {
	// Fields are the paths of its fields, sorted, with [] for the elements of a list: "user", "messages[].name",
	// "stream_options.include_usage". What is within schemas and arguments is not among them.
	Fields   []string
	Tools    []string // names as they were sent, in the order of the request
	Keywords []string // of JSON Schema that the schemas of tools contain, sorted
	Roles    []string // of messages, sorted, each once
	Pictures bool     // pictures, sounds or files
	Calls    bool     // the history has calls of tools, or their results
	Single   bool     // there is one message of a person, and nothing of the model
}

// Describe reads the body of a request. A body that is not a JSON object is described as empty.
func Describe(body []byte) *Sent {
	var fields map[string]any
	if json.Unmarshal(body, &fields) != nil {
		return &Sent{}
	}
	d := describer{fields: map[string]bool{}, keywords: map[string]bool{}, roles: map[string]bool{}}
	d.walkValue(fields, "", 0)
	s := &Sent{Pictures: d.pictures, Calls: d.calls}
	s.Fields = slices.Sorted(maps.Keys(d.fields))
	s.Keywords = slices.Sorted(maps.Keys(d.keywords))
	s.Roles = slices.Sorted(maps.Keys(d.roles))
	list, _ := fields["tools"].([]any)
	for _, t := range list {
		s.Tools = append(s.Tools, toolName(t))
	}
	s.Single = !d.roles["assistant"] && !d.calls
	return s
}

// Has reports whether a field was sent at the top level.
func (s *Sent) Has(field string) bool {
	_, ok := slices.BinarySearch(s.Fields, field)
	return ok
}

// toolName returns the name of a tool on any wire; "" if it has none.
func toolName(t any) string {
	tool, _ := t.(map[string]any)
	if inner, ok := tool["function"].(map[string]any); ok {
		tool = inner
	}
	name, _ := tool["name"].(string)
	return name
}

// describer collects what is in a request.
type describer struct {
	fields, keywords, roles map[string]bool
	pictures, calls         bool
}

// schemaFields are the fields of a tool that contain its schema.
var schemaFields = []string{"parameters", "input_schema"}

// pictureTypes are the types of parts that are not text, on all wires.
var pictureTypes = []string{"image_url", "input_image", "image", "input_file", "file", "document", "input_audio"}

func (d *describer) walkValue(value any, path string, depth int) {
	if depth > maxDepth || len(d.fields) >= maxPaths {
		return
	}
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			d.walkValue(element, path+"[]", depth+1)
		}
	case map[string]any:
		d.noteObject(v, path)
		for name, inner := range v {
			full := joinPath(path, name)
			d.fields[full] = true
			switch {
			case strings.HasPrefix(path, "tools[]") && slices.Contains(schemaFields, name):
				d.noteSchema(inner, 0)
			case name == "arguments" || name == "input" && path != "":
				// What the model wrote.
			default:
				d.walkValue(inner, full, depth+1)
			}
		}
	}
}

// noteObject notes what kind of part or message an object is.
func (d *describer) noteObject(v map[string]any, path string) {
	kind, _ := v["type"].(string)
	if path != "" && slices.Contains(pictureTypes, kind) && !strings.HasPrefix(path, "tools") {
		d.pictures = true
	}
	switch kind {
	case "function_call", "function_call_output", "tool_use", "tool_result":
		d.calls = true
	}
	if role, _ := v["role"].(string); role != "" {
		d.roles[role] = true
		d.calls = d.calls || role == "tool"
	}
}

// noteSchema notes the keywords of a schema. Names of properties are none.
func (d *describer) noteSchema(value any, depth int) {
	if depth > maxDepth {
		return
	}
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			d.noteSchema(element, depth+1)
		}
	case map[string]any:
		for name, inner := range v {
			d.keywords[name] = true
			switch name {
			case "properties", "$defs", "definitions", "patternProperties", "dependentSchemas":
				named, _ := inner.(map[string]any)
				for _, one := range named {
					d.noteSchema(one, depth+1)
				}
			case "enum", "const", "default", "examples", "required":
			default:
				d.noteSchema(inner, depth+1)
			}
		}
	}
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
