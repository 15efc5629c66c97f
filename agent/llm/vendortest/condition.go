package vendortest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// condition says what a server refuses about a value. All that is set must hold.
type condition struct {
	Kind    []string             `toml:"kind"`    // JSON type: object, array, string, number, boolean, null
	Has     []string             `toml:"has"`     // an object with one of these fields
	Lacks   []string             `toml:"lacks"`   // an object without one of these fields
	Beyond  []string             `toml:"beyond"`  // an object with a field that is not in this list
	Fields  map[string]condition `toml:"fields"`  // each field exists and is so
	Some    *condition           `toml:"some"`    // a list with an element that is so
	In      []any                `toml:"in"`      // one of these values
	NotIn   []any                `toml:"not_in"`  // none of them
	Matches string               `toml:"matches"` // a string that matches
	Unlike  string               `toml:"unlike"`  // a string that does not
	Longer  *int                 `toml:"longer"`  // a string of more characters, or a list of more elements
	Shorter *int                 `toml:"shorter"`
	Over    *float64             `toml:"over"` // a number
	Under   *float64             `toml:"under"`
	Bytes   *int                 `toml:"bytes"` // its JSON has more bytes
	Any     []condition          `toml:"any"`   // one of these holds
	Not     *condition           `toml:"not"`
	Is      string               `toml:"is"` // a relation, see relations
	Roles   string               `toml:"roles"`
	Gave    string               `toml:"gave"`
	Window  bool                 `toml:"window"` // a number that is no less than the server's window

	matches, unlike, roles *regexp.Regexp
}

// relations are what Is names: facts about a value that cannot be said of its parts one by one.
//
//	dangling required    an object whose list "required" names what "properties" lacks
//	not a JSON object    a string that does not decode to a JSON object
//	blank                a string of white space only
//	unanswered calls     a history in which a call has no result before the next message that is none
//	orphaned results     a history in which a result follows no call with its id
//	repeated ids         a history in which an assistant message has two calls with the same id
//	lonely reasoning     a list of items (Responses API) in which reasoning is not followed by what it led to
//	repeated names       a list of tools of which two have one name
//	many cache marks     a request with more than four cache_control
//	late results         a user message (Messages API) whose tool_result blocks do not come first
//
// Roles is a regular expression over the roles of a history, one letter a message: s system, d developer, u user,
// a assistant, c assistant with calls, t tool. Gave names a field that a server hands out with its calls and wants back
// unchanged: the condition holds for an assistant message with calls that this server made
// without it or with another one.
func relations() map[string]func(any) (key string, holds bool) {
	return map[string]func(any) (string, bool){
		"dangling required": danglingRequired,
		"not a JSON object": func(v any) (string, bool) {
			text, ok := v.(string)
			var object map[string]any
			return text, !ok || json.Unmarshal([]byte(text), &object) != nil || object == nil
		},
		"blank": func(v any) (string, bool) {
			text, ok := v.(string)
			return "", ok && strings.TrimSpace(text) == ""
		},
		"unanswered calls": func(v any) (string, bool) { return pairing(v).unanswered() },
		"orphaned results": func(v any) (string, bool) { return pairing(v).orphaned() },
		"repeated ids":     func(v any) (string, bool) { return pairing(v).repeated() },
		"late results":     lateResults,
		"lonely reasoning": lonelyReasoning,
		"repeated names":   repeatedNames,
		"many cache marks": func(v any) (string, bool) {
			n := countFields(v, "cache_control", 0)
			return strconv.Itoa(n), n > 4
		},
	}
}

// prepare compiles what a condition needs and finds mistakes in it.
func (c *condition) prepare() (err error) {
	for _, p := range []struct {
		text string
		into **regexp.Regexp
	}{{c.Matches, &c.matches}, {c.Unlike, &c.unlike}, {c.Roles, &c.roles}} {
		if p.text == "" {
			continue
		}
		if *p.into, err = regexp.Compile(p.text); err != nil {
			return fmt.Errorf("condition: %w", err)
		}
	}
	if _, ok := relations()[c.Is]; c.Is != "" && !ok {
		return fmt.Errorf("condition: nothing is known about %q", c.Is)
	}
	for name, inner := range c.Fields {
		if err := inner.prepare(); err != nil {
			return err
		}
		c.Fields[name] = inner
	}
	for i := range c.Any {
		if err := c.Any[i].prepare(); err != nil {
			return err
		}
	}
	for _, inner := range []*condition{c.Some, c.Not} {
		if inner != nil {
			if err := inner.prepare(); err != nil {
				return err
			}
		}
	}
	return nil
}

// holds reports whether a condition holds at a place, and returns the place with what it found.
func (c *condition) holds(p place, given *given) (place, bool) {
	if !c.ofKind(p.value) || !c.ofValue(p.value) || !c.ofSize(p.value) {
		return p, false
	}
	p, ok := c.ofFields(p, given)
	if !ok {
		return p, false
	}
	if c.Is != "" {
		key, ok := relations()[c.Is](p.value)
		if !ok {
			return p, false
		}
		p.key = key
	}
	if c.roles != nil {
		n, ok := rolesMatch(p.value, c.roles)
		if !ok {
			return p, false
		}
		p.index = n
	}
	if n, isNumber := p.value.(float64); c.Window && (!isNumber || n < float64(given.window)) {
		return p, false
	}
	if c.Gave != "" && !given.lacks(p.value, c.Gave) {
		return p, false
	}
	if c.Some != nil && !c.someHolds(p, given) {
		return p, false
	}
	if c.Not != nil {
		if _, ok := c.Not.holds(p, given); ok {
			return p, false
		}
	}
	if len(c.Any) == 0 {
		return p, true
	}
	for i := range c.Any {
		if found, ok := c.Any[i].holds(p, given); ok {
			return found, true
		}
	}
	return p, false
}

func (c *condition) ofKind(v any) bool { return len(c.Kind) == 0 || slices.Contains(c.Kind, kindOf(v)) }

// kindOf returns the JSON type of a value.
func kindOf(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "boolean"
	default:
		return "null"
	}
}

func (c *condition) ofValue(v any) bool {
	if len(c.In) > 0 && !contains(c.In, v) || len(c.NotIn) > 0 && contains(c.NotIn, v) {
		return false
	}
	text, isText := v.(string)
	if c.matches != nil && (!isText || !c.matches.MatchString(text)) {
		return false
	}
	return c.unlike == nil || isText && !c.unlike.MatchString(text)
}

// contains compares values of TOML and JSON, whose numbers have different types.
func contains(list []any, v any) bool {
	return slices.ContainsFunc(list, func(one any) bool {
		if n, ok := one.(int64); ok {
			one = float64(n)
		}
		return reflect.DeepEqual(one, v)
	})
}

func (c *condition) ofSize(v any) bool {
	if c.Longer != nil || c.Shorter != nil {
		size := 0
		switch v := v.(type) {
		case string:
			size = utf8.RuneCountInString(v)
		case []any:
			size = len(v)
		case map[string]any:
			size = len(v)
		default:
			return false
		}
		if c.Longer != nil && size <= *c.Longer || c.Shorter != nil && size >= *c.Shorter {
			return false
		}
	}
	if c.Bytes != nil {
		if data, err := json.Marshal(v); err != nil || len(data) <= *c.Bytes {
			return false
		}
	}
	if c.Over == nil && c.Under == nil {
		return true
	}
	n, ok := v.(float64)
	return ok && (c.Over == nil || n > *c.Over) && (c.Under == nil || n < *c.Under)
}

func (c *condition) ofFields(p place, given *given) (place, bool) {
	if len(c.Has) == 0 && len(c.Lacks) == 0 && len(c.Beyond) == 0 && len(c.Fields) == 0 {
		return p, true
	}
	object, ok := p.value.(map[string]any)
	if !ok {
		return p, false
	}
	has := func(name string) bool { _, ok := object[name]; return ok }
	if len(c.Has) > 0 {
		i := slices.IndexFunc(c.Has, has)
		if i < 0 {
			return p, false
		}
		p.key = c.Has[i]
	}
	if len(c.Lacks) > 0 {
		i := slices.IndexFunc(c.Lacks, func(name string) bool { return !has(name) })
		if i < 0 {
			return p, false
		}
		p.key = c.Lacks[i]
	}
	if len(c.Beyond) > 0 {
		names := slices.Sorted(maps.Keys(object))
		i := slices.IndexFunc(names, func(name string) bool { return !slices.Contains(c.Beyond, name) })
		if i < 0 {
			return p, false
		}
		p.key = names[i]
	}
	for name, inner := range c.Fields {
		if !has(name) {
			return p, false
		}
		if _, ok := inner.holds(p.field(name), given); !ok {
			return p, false
		}
	}
	return p, true
}

func (c *condition) someHolds(p place, given *given) bool {
	return slices.ContainsFunc(p.elements("*"), func(element place) bool {
		_, ok := c.Some.holds(element, given)
		return ok
	})
}

func danglingRequired(v any) (string, bool) {
	object, _ := v.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	required, _ := object["required"].([]any)
	for _, name := range required {
		text, _ := name.(string)
		if _, ok := properties[text]; !ok {
			return text, true
		}
	}
	return "", false
}

// roleLetters are the letters of the roles in a condition.
var roleLetters = map[string]string{"system": "s", "developer": "d", "user": "u", "assistant": "a", "tool": "t"}

// rolesMatch returns the index of the message at which a regular expression over the roles matches: where its first
// group begins, or else the whole.
func rolesMatch(v any, pattern *regexp.Regexp) (int, bool) {
	list, _ := v.([]any)
	var b strings.Builder
	for _, one := range list {
		message, _ := one.(map[string]any)
		role, _ := message["role"].(string)
		letter, known := roleLetters[role]
		if !known {
			letter = "?"
		}
		if calls, _ := message["tool_calls"].([]any); len(calls) > 0 && letter == "a" {
			letter = "c"
		}
		b.WriteString(letter)
	}
	m := pattern.FindStringSubmatchIndex(b.String())
	switch {
	case m == nil:
		return 0, false
	case len(m) > 2 && m[2] >= 0:
		return m[2], true
	default:
		return m[0], true
	}
}

// pairs are the calls and results of a history in its order.
type pairs []pair

type pair struct {
	id     string
	result bool
	first  bool // of its message
}

// pairing reads the calls and results of a history in the form of any of the three APIs. A message between them that is
// neither appears as a pair without an id.
func pairing(v any) pairs {
	list, _ := v.([]any)
	var out pairs
	for _, one := range list {
		message, _ := one.(map[string]any)
		text := func(name string) string { s, _ := message[name].(string); return s }
		switch {
		case text("type") == "function_call":
			out = append(out, pair{id: text("call_id")})
			continue
		case text("type") == "function_call_output":
			out = append(out, pair{id: text("call_id"), result: true})
			continue
		case text("type") == "reasoning":
			continue
		case text("role") == "tool":
			out = append(out, pair{id: text("tool_call_id"), result: true})
			continue
		}
		calls, _ := message["tool_calls"].([]any)
		found := false
		for i, call := range calls {
			object, _ := call.(map[string]any)
			id, _ := object["id"].(string)
			out, found = append(out, pair{id: id, first: i == 0}), true
		}
		blocks, _ := message["content"].([]any)
		for _, block := range blocks {
			object, _ := block.(map[string]any)
			switch kind, _ := object["type"].(string); kind {
			case "tool_use":
				id, _ := object["id"].(string)
				out, found = append(out, pair{id: id, first: !found}), true
			case "tool_result":
				id, _ := object["tool_use_id"].(string)
				out, found = append(out, pair{id: id, result: true}), true
			}
		}
		if !found {
			out = append(out, pair{})
		}
	}
	return out
}

// unanswered returns the id of a call that has no result before the next message that is neither.
func (list pairs) unanswered() (string, bool) {
	open := []string{}
	results := false
	for _, p := range list {
		switch {
		case p.id == "" || !p.result && results && len(open) > 0:
			if len(open) > 0 {
				return open[0], true
			}
			results = false
		case p.result:
			results = true
			open = slices.DeleteFunc(open, func(id string) bool { return id == p.id })
		}
		if p.id != "" && !p.result {
			open, results = append(open, p.id), false
		}
	}
	if len(open) > 0 {
		return open[0], true
	}
	return "", false
}

// orphaned returns the id of a result whose call is not right before it, or that answers it a second time.
func (list pairs) orphaned() (string, bool) {
	open := map[string]bool{}
	for _, p := range list {
		switch {
		case p.id == "" && !p.result:
			clear(open)
		case !p.result:
			open[p.id] = true
		case !open[p.id]:
			return p.id, true
		default:
			delete(open, p.id)
		}
	}
	return "", false
}

// repeated returns an id that two calls of one message have.
func (list pairs) repeated() (string, bool) {
	seen := map[string]bool{}
	for _, p := range list {
		if p.result || p.id == "" || p.first {
			clear(seen)
		}
		if p.result || p.id == "" {
			continue
		}
		if seen[p.id] {
			return p.id, true
		}
		seen[p.id] = true
	}
	return "", false
}

// lateResults finds a tool_result block after a block of another kind.
func lateResults(v any) (string, bool) {
	blocks, _ := v.([]any)
	other := false
	for _, block := range blocks {
		object, _ := block.(map[string]any)
		if object["type"] != "tool_result" {
			other = true
			continue
		}
		if other {
			id, _ := object["tool_use_id"].(string)
			return id, true
		}
	}
	return "", false
}

// lonelyReasoning finds a reasoning item that neither a call nor an assistant's message follows.
func lonelyReasoning(v any) (string, bool) {
	items := listOf(v)
	for i, one := range items {
		item := objectOf(one)
		if item["type"] != "reasoning" {
			continue
		}
		led := i+1 < len(items)
		if led {
			next := objectOf(items[i+1])
			led = next["type"] == "function_call" || next["type"] == "reasoning" || next["role"] == "assistant"
		}
		if !led {
			return textOf(item["id"]), true
		}
	}
	return "", false
}

// repeatedNames finds a name that two tools have.
func repeatedNames(v any) (string, bool) {
	seen := map[string]bool{}
	for _, one := range listOf(v) {
		tool := objectOf(one)
		if function, ok := tool["function"].(map[string]any); ok {
			tool = function
		}
		name := textOf(tool["name"])
		if seen[name] {
			return name, true
		}
		seen[name] = true
	}
	return "", false
}

// countFields counts the fields of a name anywhere in a value.
func countFields(v any, name string, depth int) int {
	if depth > maxSchemaDepth {
		return 0
	}
	n := 0
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if key == name {
				n++
			}
			n += countFields(inner, name, depth+1)
		}
	case []any:
		for _, inner := range v {
			n += countFields(inner, name, depth+1)
		}
	}
	return n
}
