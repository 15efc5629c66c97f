package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of an admitted schema.
const (
	MaxBytes   = 256 << 10
	maxNodes   = 50_000 // objects and lists after following references, a recursive one up to its first repetition
	maxDepth   = 200    // nesting of objects and lists, following references
	maxPattern = 1000   // bytes of one regular expression
	maxProgram = 10_000 // instructions of one expression, with repetitions expanded
	maxRegexps = 50_000 // instructions of all expressions of a schema
	maxNumber  = 400    // digits, and power of ten, of a number
)

// Size is the size of a schema.
type Size struct {
	Nodes, Depth int // including references
	Refs         int // references
	// regular expressions that cannot be checked here: RE2 does not know them, or they are too large
	Patterns []string
}

// Measure returns the size of a schema after following its references, and the reason why it is not admitted; "" = it
// is. Its own cost is linear in the length of the schema.
func Measure(raw json.RawMessage) (Size, string) {
	if len(raw) > MaxBytes {
		return Size{}, fmt.Sprintf("it has %d bytes; the limit is %d", len(raw), MaxBytes)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return Size{}, "it is no JSON"
	}
	return measure(doc, len(raw))
}

func measure(doc any, size int) (Size, string) {
	if size > MaxBytes {
		return Size{}, fmt.Sprintf("it has %d bytes; the limit is %d", size, MaxBytes)
	}
	r := newRuler(doc)
	e := r.of(doc, 0)
	out := Size{Nodes: e.nodes, Depth: e.depth, Refs: r.refs, Patterns: r.bad}
	switch {
	case e.nodes > maxNodes:
		return out, fmt.Sprintf("with its references followed it has more than %d parts", maxNodes)
	case e.depth > maxDepth:
		return out, fmt.Sprintf("with its references followed it is nested deeper than %d levels", maxDepth)
	case r.programs > maxRegexps:
		return out, "its regular expressions are too large"
	}
	return out, ""
}

// extent is the size of a part. Both values saturate above the limits.
type extent struct{ nodes, depth int }

// ruler measures a document. Every part is measured once, regardless of the number of references to it. Within itself
// it counts as one.
type ruler struct {
	root     any
	anchors  map[string]any
	known    map[uintptr]extent // by address of the object or list
	open     map[uintptr]bool
	programs int
	refs     int
	bad      []string
}

func newRuler(doc any) *ruler {
	r := &ruler{root: doc, anchors: map[string]any{}, known: map[uintptr]extent{}, open: map[uintptr]bool{}}
	r.name(doc)
	return r
}

// name records the objects with a name of their own.
func (r *ruler) name(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{"$anchor", "$dynamicAnchor", "$id", "id"} {
			if text, ok := v[key].(string); ok {
				r.anchors[strings.TrimPrefix(text, "#")] = v
			}
		}
		for _, sub := range v {
			r.name(sub)
		}
	case []any:
		for _, sub := range v {
			r.name(sub)
		}
	}
}

// of measures an object or a list; any other value has no size.
func (r *ruler) of(v any, level int) extent {
	at := address(v)
	if at == 0 {
		return extent{}
	}
	if e, ok := r.known[at]; ok {
		return e
	}
	if r.open[at] {
		return extent{nodes: 1}
	}
	if level > 4*maxDepth { // each level of the document may be a reference as well
		return extent{1, maxDepth + 1}
	}
	r.open[at] = true
	e := r.inside(v, level)
	delete(r.open, at)
	r.known[at] = e
	return e
}

func (r *ruler) inside(v any, level int) extent {
	e := extent{nodes: 1}
	add := func(sub any) {
		inner := r.of(sub, level+1)
		if inner.nodes == 0 {
			return
		}
		e.nodes = min(e.nodes+inner.nodes, maxNodes+1)
		e.depth = min(max(e.depth, inner.depth+1), maxDepth+1)
	}
	switch v := v.(type) {
	case map[string]any:
		for key, sub := range v {
			r.expression(key, sub)
			if name, ok := sub.(string); ok && isRef(key) {
				sub = r.lookup(name)
				r.refs++
			}
			add(sub)
		}
	case []any:
		for _, sub := range v {
			add(sub)
		}
	}
	return e
}

// address identifies an object or list; 0 for any other value, and for an empty one, whose size need not be stored.
func address(v any) uintptr {
	switch v := v.(type) {
	case map[string]any:
		return reflect.ValueOf(v).Pointer()
	case []any:
		if len(v) > 0 {
			return reflect.ValueOf(v).Pointer()
		}
	}
	return 0
}

func isRef(key string) bool { return key == "$ref" || key == "$dynamicRef" || key == "$recursiveRef" }

// lookup follows a local reference: "#", "#/$defs/x", "#name"; nil if it leads nowhere.
func (r *ruler) lookup(ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	switch {
	case !ok:
		return r.anchors[ref]
	case path == "":
		return r.root
	case path[0] != '/':
		return r.anchors[path]
	}
	v := r.root
	for step := range strings.SplitSeq(path[1:], "/") {
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

// expression checks the regular expressions at a key.
func (r *ruler) expression(key string, v any) {
	switch key {
	case "pattern":
		if text, ok := v.(string); ok {
			r.pattern(text)
		}
	case "patternProperties":
		list, _ := v.(map[string]any)
		for text := range list {
			r.pattern(text)
		}
	}
}

func (r *ruler) pattern(text string) {
	n, err := program(text)
	if err != nil {
		r.bad = append(r.bad, text)
	}
	r.programs = min(r.programs+n, maxRegexps+1)
}

// program returns the number of instructions of a regular expression with its repetitions expanded, which is the cost
// of compiling it.
func program(text string) (int, error) {
	if len(text) > maxPattern {
		return 0, fmt.Errorf("the pattern has %d bytes; the limit is %d", len(text), maxPattern)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, err
	}
	n := parts(tree)
	if n > maxProgram {
		return 0, errors.New("the pattern is too large")
	}
	return n, nil
}

func parts(t *syntax.Regexp) int {
	n := 1 + len(t.Rune)/2
	for _, sub := range t.Sub {
		n = min(n+parts(sub), maxProgram+1)
	}
	if t.Op == syntax.OpRepeat {
		n = min(n*max(t.Max, t.Min, 1), maxProgram+1)
	}
	return n
}

// plain reports whether the cost of checks against a schema is known. It is not for dialects of its own, references
// that are resolved during validation or lead to other documents, and numbers of a million digits.
func plain(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, sub := range v {
			if !plainKeyword(key, sub) || !plain(sub) {
				return false
			}
		}
	case []any:
		for _, sub := range v {
			if !plain(sub) {
				return false
			}
		}
	case json.Number:
		return modest(string(v))
	}
	return true
}

func plainKeyword(key string, v any) bool {
	text, isText := v.(string)
	switch key {
	case "$dynamicRef", "$recursiveRef", "$vocabulary":
		return false
	case "$schema":
		return !isText || strings.Contains(text, "://json-schema.org/")
	case "$ref":
		return !isText || strings.HasPrefix(text, "#")
	case "patternProperties": // a pattern that accepts everything would apply the wrong schema
		list, _ := v.(map[string]any)
		for text := range list {
			if _, err := program(text); err != nil {
				return false
			}
		}
	}
	return true
}

// modest reports whether a number costs no more than its text.
func modest(number string) bool {
	if len(number) > maxNumber {
		return false
	}
	_, power, ok := strings.Cut(strings.ToLower(number), "e")
	if !ok {
		return true
	}
	n, err := strconv.Atoi(strings.TrimPrefix(power, "+"))
	return err == nil && n >= -maxNumber && n <= maxNumber
}
