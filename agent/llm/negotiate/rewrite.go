package negotiate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/agent/llm/dialect"
)

// Edits are changes of the fields of a request, made of dialect.Params. The zero value changes nothing. Safe for
// concurrent use.
type Edits struct {
	omit   map[string]bool
	rename map[string]string
	set    map[string]json.RawMessage
	caps   map[string]bool // of set: the value is a limit, and a smaller one is left alone
}

// NewEdits returns the changes that params say, without the fields that are no fields of a request's JSON (Tools
// and Pictures say what happens instead).
func NewEdits(params dialect.Params) Edits {
	e := Edits{rename: params.Rename, set: params.Set}
	for _, name := range params.Omit {
		if name == Tools || name == Pictures {
			continue
		}
		if e.omit == nil {
			e.omit = map[string]bool{}
		}
		e.omit[name] = true
		if name == Stream {
			e.omit["stream_options"] = true // makes no sense alone, and is refused
		}
	}
	for name := range params.Set {
		if strings.HasPrefix(name, "max_") {
			if e.caps == nil {
				e.caps = map[string]bool{}
			}
			e.caps[name] = true
		}
	}
	return e
}

// isEmpty reports whether nothing is changed.
func (e *Edits) isEmpty() bool { return len(e.omit) == 0 && len(e.rename) == 0 && len(e.set) == 0 }

// changesWithin reports whether something is changed within the field at the top level, such as messages.
func (e *Edits) changesWithin(field string) bool {
	within := func(name string) bool {
		if strings.HasPrefix(name, rolePrefix) {
			return strings.HasPrefix("messages[]", field) || strings.HasPrefix("input[]", field)
		}
		if blocks, ok := strings.CutPrefix(name, blocksPrefix); ok && blocks == field {
			return true
		} else if ok {
			name = blocks
		}
		rest, ok := strings.CutPrefix(name, field)
		return ok && rest != "" && (rest[0] == '[' || rest[0] == '.')
	}
	for name := range e.omit {
		if within(name) {
			return true
		}
	}
	for name := range e.rename {
		if within(name) {
			return true
		}
	}
	return false
}

var errNoObject = errors.New("the request is not a JSON object")

// Object returns the fields of a request's JSON as they are sent. Whatever is not changed stays the same byte for byte,
// and in its order.
func (e *Edits) Object(body []byte) ([]byte, error) {
	if e.isEmpty() {
		return body, nil
	}
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '{' {
		return nil, errNoObject
	}
	return e.editObject(body, "", 0)
}

// Value returns the value of a field at the top level, changed within.
func (e *Edits) Value(field string, value []byte) ([]byte, error) {
	if !e.changesWithin(field) {
		return value, nil
	}
	return e.editValue(value, field, 0)
}

func (e *Edits) editValue(raw []byte, path string, depth int) ([]byte, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || depth > maxDepth || !e.changesWithin(path) {
		return raw, nil
	}
	switch raw[0] {
	case '{':
		return e.editObject(raw, path, depth)
	case '[':
		return e.editList(raw, path+"[]", depth)
	default:
		return raw, nil
	}
}

func (e *Edits) editList(raw []byte, path string, depth int) ([]byte, error) {
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil {
		return nil, fmt.Errorf("read own request: %w", err)
	}
	out := []byte{'['}
	for i, element := range elements {
		if i > 0 {
			out = append(out, ',')
		}
		changed, err := e.editValue(element, path, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, changed...)
	}
	return append(out, ']'), nil
}

func (e *Edits) editObject(raw []byte, path string, depth int) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("read own request: %w", err)
	}
	out := []byte{'{'}
	done := map[string]bool{}
	add := func(name string, value []byte) {
		if done[name] {
			return
		}
		done[name] = true
		if len(out) > 1 {
			out = append(out, ',')
		}
		key, _ := json.Marshal(name) // a string can always be encoded
		out = append(append(append(out, key...), ':'), value...)
	}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("read own request: %w", err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, fmt.Errorf("read own request: %w", err)
		}
		name, _ := token.(string)
		full := joinPath(path, name)
		if e.omit[full] {
			continue
		}
		if to := e.rename[full]; to != "" {
			name = to
			if e.omit[joinPath(path, name)] {
				continue
			}
		}
		if name == "role" && (path == "messages[]" || path == "input[]") {
			value = e.editRole(value)
		}
		if path == "" {
			if set, ok := e.set[name]; ok {
				value = e.setValue(name, value, set)
			}
		}
		if e.rename[blocksPrefix+full] != "" {
			value = oneText(value)
		}
		changed, err := e.editValue(value, full, depth+1)
		if err != nil {
			return nil, err
		}
		add(name, changed)
	}
	if path == "" {
		for _, name := range slices.Sorted(maps.Keys(e.set)) {
			if !done[name] && !e.caps[name] && !e.omit[name] { // what was refused is not set either
				add(name, e.set[name])
			}
		}
	}
	return append(out, '}'), nil
}

// blocksPrefix begins the names of lists of blocks in Params.Rename that are sent as one
// text: "blocks:system" to "string".
const blocksPrefix = "blocks:"

// oneText returns a list of blocks of text as one string, with an empty line between two. Anything else stays as it is:
// a call, a result or a picture has no place in a text.
func oneText(value json.RawMessage) json.RawMessage {
	var blocks []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if json.Unmarshal(value, &blocks) != nil || len(blocks) == 0 {
		return value
	}
	texts := make([]string, 0, len(blocks))
	for _, b := range blocks {
		if b.Text == nil || b.Type != "text" && b.Type != "input_text" && b.Type != "output_text" {
			return value
		}
		texts = append(texts, *b.Text)
	}
	text, err := json.Marshal(strings.Join(texts, "\n\n"))
	if err != nil { // unreachable: a string can always be encoded
		return value
	}
	return text
}

// rolePrefix begins the names of roles in Params.Rename: "role:developer" to "system".
const rolePrefix = "role:"

// editRole returns the role of a message under the name that the server knows.
func (e *Edits) editRole(sent json.RawMessage) json.RawMessage {
	var name string
	if json.Unmarshal(sent, &name) != nil {
		return sent
	}
	to := e.rename[rolePrefix+name]
	if to == "" {
		return sent
	}
	renamed, err := json.Marshal(to)
	if err != nil { // unreachable: a string can always be encoded
		return sent
	}
	return renamed
}

// setValue returns the value of a field that is set. A limit is lowered and never raised.
func (e *Edits) setValue(name string, sent, set json.RawMessage) json.RawMessage {
	if !e.caps[name] {
		return set
	}
	var have, most float64
	if json.Unmarshal(sent, &have) != nil || json.Unmarshal(set, &most) != nil || have > most {
		return set
	}
	return sent
}
