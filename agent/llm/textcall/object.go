package textcall

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/lazyregexp"
)

// maxCalls bounds the calls of one answer.
const maxCalls = 128

// The names that models give to the fields of a call.
var (
	nameKeys = []string{
		"name", "tool_name", "tool", "function", "recipient_name", "tool_id", "function_name", "action",
	}
	argsKeys  = []string{"arguments", "parameters", "args", "input", "params", "tool_input", "action_input", "kwargs"}
	groupKeys = []string{"tool_calls", "tool_uses", "function_call", "tool_call", "function_calls"}
)

// nameField finds the name in an object that cannot be read.
var nameField = lazyregexp.New(`["'](?:name|tool_name|recipient_name|tool)["']\s*:\s*["']([^"']+)["']`)

func namedIn(text string) string {
	if found := nameField().FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// readObjects reads a call, or a list of calls, as JSON or in a notation close to it. ok is false unless all are calls.
func readObjects(text string) (calls []writtenCall, ok bool) {
	raw := json.RawMessage(strings.TrimSpace(text))
	if !json.Valid(raw) {
		read, n, err := readValue(string(raw), false)
		if err != nil || strings.TrimSpace(string(raw)[n:]) != "" {
			return nil, false
		}
		raw = read
	}
	return callsIn(raw, 0)
}

func callsIn(raw json.RawMessage, depth int) ([]writtenCall, bool) {
	if depth > 3 {
		return nil, false
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		var calls []writtenCall
		for _, item := range list {
			more, ok := callsIn(item, depth+1)
			if !ok || len(calls)+len(more) > maxCalls {
				return nil, false
			}
			calls = append(calls, more...)
		}
		return calls, len(calls) > 0
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil, false
	}
	for _, key := range groupKeys {
		if group, ok := fields[key]; ok && len(group) > 0 && (group[0] == '[' || group[0] == '{') {
			return callsIn(group, depth+1)
		}
	}
	if inner, ok := fields["function"]; ok && inner[0] == '{' {
		return callsIn(inner, depth+1)
	}
	c, ok := callOf(fields)
	return []writtenCall{c}, ok
}

// callOf reads the fields of one call. Arguments may be JSON in a string, as on the wire.
func callOf(fields map[string]json.RawMessage) (writtenCall, bool) {
	var c writtenCall
	for _, key := range nameKeys {
		if raw, ok := fields[key]; ok && json.Unmarshal(raw, &c.name) == nil && c.name != "" {
			break
		}
	}
	if c.name == "" {
		return c, false
	}
	c.args = json.RawMessage("{}")
	for _, key := range argsKeys {
		raw, ok := fields[key]
		if !ok || string(raw) == "null" {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) == nil {
			whole := withArguments(c.name, text)
			return whole, true
		}
		c.args = raw
		break
	}
	return c, true
}

// bareCalls reads calls without any mark, and is strict: every object is a name with an object of arguments and nothing
// else that would be unusual for a call, and every name was offered.
func bareCalls(text string, offered func(name string) bool) ([]writtenCall, bool) {
	text = strings.TrimSpace(text)
	text = strings.TrimPrefix(text, "functools")
	var calls []writtenCall
	for text != "" {
		n := valueEnd(text)
		if n < 0 {
			return nil, false
		}
		more, ok := strictObjects(text[:n])
		if !ok {
			more, ok = readPythonList(text[:n])
		}
		if !ok || len(calls)+len(more) > maxCalls {
			return nil, false
		}
		calls = append(calls, more...)
		text = strings.TrimLeft(text[n:], " \t\r\n,;")
	}
	for _, c := range calls {
		if !offered(c.name) || c.broken != "" {
			return nil, false
		}
	}
	return calls, len(calls) > 0
}

// strictObjects reads calls whose arguments are written out.
func strictObjects(text string) ([]writtenCall, bool) {
	calls, ok := readObjects(text)
	if !ok {
		return nil, false
	}
	for _, key := range argsKeys {
		if strings.Contains(text, key) {
			return calls, true
		}
	}
	return nil, false
}

// mayBeBare reports whether a text at the beginning of a line can be bare calls: an object whose first key is one of a
// call, or a list of such objects or of calls in Python's notation.
func mayBeBare(text string, offered func(name string) bool) verdict {
	if text = strings.TrimPrefix(text, "functools"); text == "" || strings.HasPrefix("functools", text) {
		return needsMore
	}
	list := text[0] == '['
	if list {
		text = text[afterBlanks(text, 1):]
	}
	if text == "" {
		return needsMore
	}
	if text[0] != '{' {
		if !list {
			return isText
		}
		n := nameLength(text)
		switch {
		case n == len(text) && n < maxHeader:
			return needsMore
		case n > 0 && n < len(text) && text[n] == '(' && offered(text[:n]):
			return isCalls
		default:
			return isText
		}
	}
	at := afterBlanks(text, 1)
	if at == len(text) {
		return needsMore
	}
	if text[at] != '"' && text[at] != '\'' {
		return isText
	}
	end := strings.IndexByte(text[at+1:], text[at])
	if end < 0 {
		if len(text)-at > maxToken {
			return isText
		}
		return needsMore
	}
	key := text[at+1 : at+1+end]
	for _, known := range [][]string{nameKeys, argsKeys, groupKeys, {"type", "id"}} {
		if slices.Contains(known, key) {
			return isCalls
		}
	}
	return isText
}
