package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zephbot/zephbot/tools"
)

// Limits of what a model may send.
const (
	maxBytes  = 1 << 20 // of the arguments as written
	maxDepth  = 64      // nesting of objects and lists
	maxDigits = 400     // characters of one number
	maxPower  = 400     // exponent of one number: "1e999999" would cost a validator megabytes
)

// parse parses the arguments into a tree of map[string]any, []any, string, json.Number, bool and nil. Unlike
// encoding/json, it refuses duplicate keys and invalid UTF-8, which different parsers could read as different calls.
func parse(raw []byte) (map[string]any, *tools.Error) {
	if len(raw) > maxBytes {
		return nil, invalid("the arguments have %d bytes; at most %d are allowed", len(raw), maxBytes)
	}
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return map[string]any{}, nil
	}
	if at := badUTF8(raw); at >= 0 {
		return nil, invalid("the arguments are not valid UTF-8 at byte %d", at)
	}
	var whole json.RawMessage
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil, malformed(err, raw, len(raw))
	}
	p := &parser{raw: raw, dec: json.NewDecoder(bytes.NewReader(raw))}
	p.dec.UseNumber()
	v, failed := p.value("", 0)
	if failed != nil {
		return nil, failed
	}
	args, ok := v.(map[string]any)
	// the form in which a journal stores arguments that are not JSON
	if text, isText := v.(string); isText && strings.TrimSpace(text) != "" {
		if err := json.Unmarshal([]byte(text), &whole); err != nil {
			return nil, malformed(err, []byte(text), len(text))
		}
	}
	if !ok {
		return nil, tools.Errorf(tools.TypeMismatch, "the arguments must be a JSON object, got %s", typeOf(v))
	}
	return args, nil
}

type parser struct {
	raw []byte
	dec *json.Decoder
}

// value reads the next value. path is its name in messages, depth its nesting.
func (p *parser) value(path string, depth int) (any, *tools.Error) {
	token, err := p.dec.Token()
	if err != nil {
		return nil, malformed(err, p.raw, int(p.dec.InputOffset()))
	}
	switch t := token.(type) {
	case json.Delim:
		if depth >= maxDepth {
			return nil, invalid("the arguments are nested deeper than %d levels", maxDepth)
		}
		if t == '{' {
			return p.object(path, depth)
		}
		return p.list(path, depth)
	case json.Number:
		if failed := checkNumber(path, string(t)); failed != nil {
			return nil, failed
		}
		return t, nil
	default: // string, bool, nil
		return t, nil
	}
}

func (p *parser) object(path string, depth int) (any, *tools.Error) {
	m := map[string]any{}
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return nil, malformed(err, p.raw, int(p.dec.InputOffset()))
		}
		key, _ := token.(string) // the decoder accepts nothing else here
		if _, ok := m[key]; ok {
			return nil, invalid("field %s is given twice", join(path, key))
		}
		v, failed := p.value(join(path, key), depth+1)
		if failed != nil {
			return nil, failed
		}
		m[key] = v
	}
	return m, p.closing()
}

func (p *parser) list(path string, depth int) (any, *tools.Error) {
	list := []any{}
	for p.dec.More() {
		v, failed := p.value(path+"["+strconv.Itoa(len(list))+"]", depth+1)
		if failed != nil {
			return nil, failed
		}
		list = append(list, v)
	}
	return list, p.closing()
}

func (p *parser) closing() *tools.Error {
	if _, err := p.dec.Token(); err != nil {
		return malformed(err, p.raw, int(p.dec.InputOffset()))
	}
	return nil
}

func checkNumber(path, n string) *tools.Error {
	if len(n) > maxDigits {
		return invalid("field %s: a number of %d characters is too long", orArgs(path), len(n))
	}
	if i := strings.IndexAny(n, "eE"); i >= 0 {
		if power, err := strconv.Atoi(n[i+1:]); err != nil || power > maxPower || power < -maxPower {
			return invalid("field %s: the number %s is out of range", orArgs(path), shorten(n))
		}
	}
	return nil
}

// spelled returns the text of arguments that were not a JSON object: raw itself, or the string in which a journal
// stores them.
func spelled(raw json.RawMessage) (string, bool) {
	if len(raw) > 6*maxBytes { // a string of maxBytes can be this long
		return "", false
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return string(raw), true
	}
	text, ok := v.(string)
	return text, ok
}

// malformed returns an error about where the text stops being JSON, with an excerpt.
func malformed(err error, text []byte, at int) *tools.Error {
	what := "unexpected end"
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		what, at = syntax.Error(), int(syntax.Offset)
	}
	e := invalid("the arguments are not JSON: %s at byte %d%s", what, at, near(text, at))
	e.Err = err
	return e
}

// near quotes the text around a place: at most 20 characters before it and 10 after it.
func near(text []byte, at int) string {
	at = min(max(at, 0), len(text))
	from, to := at, at
	for n := 0; n < 20 && from > 0; n++ {
		_, size := utf8.DecodeLastRune(text[:from])
		from -= size
	}
	for n := 0; n < 10 && to < len(text); n++ {
		_, size := utf8.DecodeRune(text[to:])
		to += size
	}
	if from == to {
		return ""
	}
	return ", near " + strconv.Quote(string(text[from:to]))
}

func invalid(format string, args ...any) *tools.Error {
	return tools.Errorf(tools.InvalidParameters, format, args...)
}

// badUTF8 returns the offset of the first byte that is not valid UTF-8, or -1.
func badUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// join returns the name of a field within an object: options.depth.
func join(path, key string) string {
	key = shorten(key)
	if path == "" {
		return key
	}
	return path + "." + key
}

func orArgs(path string) string {
	if path == "" {
		return "(arguments)"
	}
	return path
}

// typeOf returns the JSON type of a parsed value.
func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}
