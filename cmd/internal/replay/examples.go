package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/zephbot/zephbot/policy/nearest"
)

// Example is one entry of a file of examples: a call, and what the rules have to say about it.
type Example struct {
	Name    string         `toml:"name"`
	Tool    string         `toml:"tool"`
	Args    map[string]any `toml:"args"`
	Caller  string         `toml:"caller"`
	Chat    string         `toml:"chat"` // id of a group; "" = the private chat of the caller
	Mode    string         `toml:"mode"` // serve (default) or chat
	Flagged bool           `toml:"flagged"`
	Expect  string         `toml:"expect"`
	Rule    string         `toml:"rule"` // a part of the trace; "" = any
	Line    int            `toml:"-"`    // of its header in the file
}

// MaxExamples limits the size of a file of examples, in bytes.
const MaxExamples = 4 << 20

// Modes of an example.
const (
	Serve = "serve"
	Chat  = "chat"
)

func effects() []string { return []string{"allow", "ask", "deny"} }

func modes() []string { return []string{Serve, Chat} }

func keys() []string {
	return []string{"name", "tool", "args", "caller", "chat", "mode", "flagged", "expect", "rule"}
}

// ParseExamples reads a file of examples ([[example]] tables in TOML). name is used in errors. The error joins all
// problems, each with its line.
func ParseExamples(name string, data []byte) ([]Example, error) {
	if len(data) > MaxExamples {
		return nil, fmt.Errorf("%s has %d bytes; at most %d are read", name, len(data), MaxExamples)
	}
	var file struct {
		Example []Example `toml:"example"`
	}
	d := toml.NewDecoder(strings.NewReader(string(data))).DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, decodeProblems(name, err)
	}
	if len(file.Example) == 0 {
		return nil, fmt.Errorf("%s has no [[example]]", name)
	}
	lines := exampleLines(data)
	var errs []error
	for i := range file.Example {
		e := &file.Example[i]
		where := fmt.Sprintf("%s: example[%d]", name, i)
		if i < len(lines) {
			e.Line = lines[i]
			where = fmt.Sprintf("%s:%d", name, e.Line)
		}
		for _, problem := range e.problems() {
			errs = append(errs, fmt.Errorf("%s: %s", where, problem))
		}
	}
	return file.Example, errors.Join(errs...)
}

func (e *Example) problems() (list []string) {
	if e.Tool == "" {
		list = append(list, `tool is missing, such as tool = "bash"`)
	}
	if !slices.Contains(effects(), e.Expect) {
		list = append(list, oneOf("expect", e.Expect, effects()))
	}
	if e.Mode != "" && !slices.Contains(modes(), e.Mode) {
		list = append(list, oneOf("mode", e.Mode, modes()))
	}
	if e.Chat != "" && e.Mode == Chat {
		list = append(list, `chat is the id of a group: it needs mode = "serve"`)
	}
	return list
}

func oneOf(key, value string, known []string) string {
	if near, ok := nearest.Nearest(value, known); ok {
		return fmt.Sprintf("%s = %q: did you mean %q?", key, value, near)
	}
	return fmt.Sprintf("%s = %q: want one of %s", key, value, strings.Join(known, ", "))
}

// decodeProblems adds file and line to an error of the TOML parser, and the nearest key to an unknown one.
func decodeProblems(name string, err error) error {
	if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		var errs []error
		for i := range strict.Errors {
			line, _ := strict.Errors[i].Position()
			key := strict.Errors[i].Key()
			text := fmt.Sprintf("%s:%d: unknown key %q", name, line, strings.Join(key, "."))
			known := keys()
			if len(key) == 1 {
				known = []string{"example"}
			}
			if near, ok := nearest.Nearest(key[len(key)-1], known); ok {
				text += fmt.Sprintf("; did you mean %s?", near)
			} else {
				text += "; there are " + strings.Join(known, ", ")
			}
			errs = append(errs, errors.New(text))
		}
		return errors.Join(errs...)
	}
	if decode, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := decode.Position()
		name = fmt.Sprintf("%s:%d:%d", name, line, column)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// exampleLines returns the line of each [[example]] header.
func exampleLines(data []byte) []int {
	var p unstable.Parser
	p.Reset(data)
	var lines []int
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.ArrayTable {
			continue
		}
		key := e.Key()
		if key.Next() && string(key.Node().Data) == "example" && !key.Next() {
			lines = append(lines, p.Shape(e.Child().Raw).Start.Line)
		}
	}
	return lines
}

// Result is the outcome of an example.
type Result struct {
	Name   string   `json:"name,omitempty"`
	Line   int      `json:"line"`
	Tool   string   `json:"tool"`
	What   string   `json:"what"`
	OK     bool     `json:"ok"`
	Expect string   `json:"expect"`
	Rule   string   `json:"rule,omitempty"` // that was expected
	Got    Decision `json:"got"`
	Error  string   `json:"error,omitempty"`
}

// Test decides an example and compares. call makes the call of it.
func Test(e *Example, by Decider, call func(e *Example, args json.RawMessage) Call) Result {
	r := Result{Name: e.Name, Line: e.Line, Tool: e.Tool, Expect: e.Expect, Rule: e.Rule}
	args, err := json.Marshal(e.Args)
	if err == nil && e.Args == nil {
		args = json.RawMessage("{}")
	}
	if err != nil {
		r.Error = err.Error()
		return r
	}
	r.What = callSubject(args)
	if r.Got, err = by.Decide(call(e, args)); err != nil {
		r.Error = err.Error()
		return r
	}
	r.OK = r.Got.Effect == e.Expect && strings.Contains(r.Got.Rule, e.Rule)
	return r
}
