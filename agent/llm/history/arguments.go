package history

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/zephbot/zephbot/agent/llm"
)

// notAnObject is the name under which arguments that are no JSON object are put in a history. The model has been told
// of its mistake by the result of the call.
const notAnObject = "not_an_object"

// maxDepth bounds how deeply arguments that are sent are nested. Some servers read JSON recursively.
const maxDepth = 64

// Arguments returns arguments as a JSON object, which every server requires: arguments that are one are returned
// unchanged. Nothing, blanks, null and the empty string become an empty object, anything else, such as JSON that was
// cut off, a list, or an object that was encoded twice, the text under notAnObject. Of an object that no strict reader
// takes (invalid UTF-8, half a surrogate pair, a key twice), the reading is sent that our own tools have of it.
func Arguments(args json.RawMessage) json.RawMessage {
	trimmed := bytes.TrimSpace(args)
	if isObject(trimmed) {
		return trimmed
	}
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return json.RawMessage("{}")
	}
	if trimmed[0] == '{' && nestingDepth(trimmed) <= maxDepth {
		if read := rereadObject(trimmed); read != nil {
			return read
		}
	}
	var text string
	if trimmed[0] != '"' || json.Unmarshal(trimmed, &text) != nil {
		text = string(args)
	}
	if len(bytes.TrimSpace([]byte(text))) == 0 {
		return json.RawMessage("{}")
	}
	wrapped, err := llm.PlainJSON(map[string]string{notAnObject: text})
	if err != nil { // a string can always be encoded
		return json.RawMessage("{}")
	}
	return wrapped
}

// rereadObject reads an object as encoding/json does, the last one of equal keys, and
// writes it again; nil = it is none.
func rereadObject(text []byte) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // large numbers are not rounded
	var object map[string]any
	if dec.Decode(&object) != nil || object == nil || dec.InputOffset() != int64(len(text)) {
		return nil
	}
	written, err := llm.PlainJSON(object)
	if err != nil {
		return nil
	}
	return written
}

// isObject reports whether arguments are a JSON object that every server reads in the same way. It allocates nothing
// unless an object has many keys.
func isObject(text []byte) bool {
	if len(text) < 2 || text[0] != '{' || !utf8.Valid(text) || !json.Valid(text) {
		return false
	}
	if text[len(text)-1] != '}' { // blanks at the end
		return false
	}
	if bytes.Contains(text, []byte(`\u`)) && halfPairs(text) {
		return false
	}
	end, ok := distinctKeys(text, 0, 0)
	return ok && end == len(text)
}

// nestingDepth returns how deeply JSON is nested, also if it is broken.
func nestingDepth(text []byte) int {
	deepest, now := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i) - 1
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	}
	return deepest
}

// stringEnd returns the position after the string that begins at a position.
func stringEnd(text []byte, at int) int {
	for i := at + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// distinctKeys walks over the object or list at a position of valid JSON and returns the position after it. It fails if
// an object has a key twice, or may have because one is spelled with escapes, or if the nesting is too deep.
func distinctKeys(text []byte, at, level int) (end int, ok bool) {
	if level >= maxDepth {
		return 0, false
	}
	type span struct{ from, to int }
	var few [16]span
	keys := few[:0]
	escaped := 0
	object, key := text[at] == '{', text[at] == '{'
	for i := at + 1; i < len(text); {
		switch text[i] {
		case '}', ']':
			return i + 1, true
		case ',':
			key = object
			i++
		case '{', '[':
			if i, ok = distinctKeys(text, i, level+1); !ok {
				return 0, false
			}
		case '"':
			to := stringEnd(text, i)
			if key {
				key = false
				name := text[i:to]
				if bytes.Contains(name, []byte(`\u`)) || bytes.Contains(name, []byte(`\/`)) {
					escaped++
				}
				if escaped > 0 && len(keys) > 0 {
					return 0, false
				}
				for _, k := range keys {
					if bytes.Equal(text[k.from:k.to], name) {
						return 0, false
					}
				}
				if len(keys) >= maxKeys {
					return 0, false
				}
				keys = append(keys, span{i, to})
			}
			i = to
		default:
			i++
		}
	}
	return 0, false
}

// maxKeys bounds the keys of an object that are compared with each other; an object with more is written again.
const maxKeys = 256

// halfPairs reports whether an escaped surrogate has no other half.
func halfPairs(text []byte) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if i >= len(text) || text[i] != 'u' {
			continue
		}
		switch half := surrogateHalf(text, i-1); half {
		case 0:
		case 'h':
			if surrogateHalf(text, i+5) != 'l' {
				return true
			}
			i += 10
		default:
			return true
		}
	}
	return false
}

// surrogateHalf says what an escape at a position is: 'h' or 'l' = the high or low half of a pair, 0 = neither.
func surrogateHalf(text []byte, at int) byte {
	if at+6 > len(text) || text[at] != '\\' || text[at+1] != 'u' || text[at+2]|0x20 != 'd' {
		return 0
	}
	switch c := text[at+3] | 0x20; {
	case c == '8' || c == '9' || c == 'a' || c == 'b':
		return 'h'
	case c >= 'c' && c <= 'f':
		return 'l'
	}
	return 0
}
