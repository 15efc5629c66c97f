package policy

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/zephbot/zephbot/policy/act"
)

// ParseRules parses a policy file: TOML with [[rules]], at most 256 KiB and 256 rules, in either spelling of [RawRule].
// Unknown keys are errors. The error joins all problems, each with the name of the file and the line.
func ParseRules(name string, data []byte) ([]Rule, error) {
	if len(data) > MaxPolicyFile {
		return nil, fmt.Errorf("%s: the file has %d bytes; at most %d are allowed", name, len(data), MaxPolicyFile)
	}
	var file struct {
		Rules []RawRule `toml:"rules"`
	}
	dec := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := dec.Decode(&file); err != nil {
		return nil, decodeProblem(name, err)
	}
	if len(file.Rules) > MaxRules {
		return nil, fmt.Errorf("%s: the file has %d rules; at most %d are allowed", name, len(file.Rules), MaxRules)
	}
	lines := ruleLines(data)
	src := ruleSource{file: name}
	rules := make([]Rule, 0, len(file.Rules))
	var errs []error
	for i, raw := range file.Rules {
		var line int
		if i < len(lines) {
			line = lines[i]
		}
		where := src.at(i, Rule{Line: line})
		r, err := raw.Rule()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s.%w", where, err))
			continue
		}
		r.Line = line
		if _, err := compileRule(act.Names{}, r, where); err != nil {
			errs = append(errs, err)
			continue
		}
		rules = append(rules, r)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return rules, nil
}

// decodeProblem adds file and line to an error of the TOML parser.
func decodeProblem(name string, err error) error {
	if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		var errs []error
		for i := range strict.Errors {
			line, _ := strict.Errors[i].Position()
			errs = append(errs, fmt.Errorf("%s:%d: unknown key %q", name, line, joinKey(strict.Errors[i].Key())))
		}
		return errors.Join(errs...)
	}
	if decode, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := decode.Position()
		name = fmt.Sprintf("%s:%d:%d", name, line, column)
	}
	return fmt.Errorf("%s: %w", name, err)
}

func joinKey(key toml.Key) string {
	var b bytes.Buffer
	for i, k := range key {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(k)
	}
	return b.String()
}

// ruleLines returns the line of each [[rules]] header. It finds none in a file that writes the rules as an inline
// array.
func ruleLines(data []byte) []int {
	var p unstable.Parser
	p.Reset(data)
	var lines []int
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.ArrayTable {
			continue
		}
		key := e.Key()
		if key.Next() && string(key.Node().Data) == "rules" {
			lines = append(lines, p.Shape(key.Node().Raw).Start.Line)
		}
	}
	return lines
}
