package filter

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

const (
	// FileName is the name of a file of rules next to a configuration.
	FileName = "filters.toml"
	// MaxFile is the size in bytes from which a file of rules is not read (seed 003).
	MaxFile = 1 << 20
	// maxRules limits the rules of a file.
	maxRules = 1000
)

//go:embed rules.toml
var embedded string

// Rules are rules in the order of their file.
type Rules struct{ list []rule }

// Names returns the names of the rules in order.
func (r *Rules) Names() []string {
	names := make([]string, len(r.list))
	for i := range r.list {
		names[i] = r.list[i].name
	}
	return names
}

// rule is one entry of [[rules]].
type rule struct {
	name     string
	exact    string
	prefix   string
	regex    *pattern
	strategy strategy
}

func (r *rule) matchesCommand(command string) bool {
	switch {
	case r.exact != "":
		return command == r.exact
	case r.prefix != "":
		return strings.HasPrefix(command, r.prefix)
	default:
		return r.regex.re.MatchString(command)
	}
}

// Problem describes an error in a file of rules.
type Problem struct {
	File string
	Rule string // name of the rule, or "rule 3" without one; "" = the whole file
	What string
	Do   string // how to solve it
}

// String returns the problem as one line.
func (p Problem) String() string {
	where := p.File
	if p.Rule != "" {
		where += ": " + p.Rule
	}
	return where + ": " + p.What + "; " + p.Do
}

// Find returns the file of rules to load. configured is a file or a directory with filters.toml; without it, the result
// is the file next to the configuration, if it exists, or "" for the built-in rules.
func Find(configured, besideConfigDir string) string {
	if configured != "" {
		if info, err := os.Stat(configured); err == nil && info.IsDir() {
			return filepath.Join(configured, FileName)
		}
		return configured
	}
	if besideConfigDir == "" {
		return ""
	}
	path := filepath.Join(besideConfigDir, FileName)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// Load reads a file of rules, which replaces the built-in ones; path "" is the built-in set. A rule with an error is
// left out and reported. If the whole file is unusable, Load returns the built-in rules and one problem.
func Load(path string) (*Rules, []Problem) {
	if path == "" {
		return builtIn()
	}
	text, err := readFile(path)
	var rules *Rules
	var problems []Problem
	if err == nil {
		rules, problems, err = parseRules(text, path)
	}
	if err != nil {
		rules, problems = builtIn()
		return rules, append(problems, Problem{
			File: path, What: err.Error(),
			Do: "the built-in filter rules are used until it is mended",
		})
	}
	return rules, problems
}

func builtIn() (*Rules, []Problem) {
	rules, problems, err := parseRules(embedded, "built-in rules.toml")
	if err != nil {
		return &Rules{}, append(problems, Problem{File: "built-in rules.toml", What: err.Error(), Do: "report this"})
	}
	return rules, problems
}

func readFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", plainError(err)
	}
	defer func() { _ = f.Close() }() // read only
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.New("it is not a file")
	}
	raw, err := io.ReadAll(io.LimitReader(f, MaxFile))
	if err != nil {
		return "", plainError(err)
	}
	if len(raw) == MaxFile {
		return "", fmt.Errorf("it has %d bytes or more", MaxFile)
	}
	return string(raw), nil
}

// plainError removes the path from an error, because the path is already in the message.
func plainError(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// parseRules parses a file of rules. The error says why the whole file is unusable.
func parseRules(text, file string) (*Rules, []Problem, error) {
	var top map[string]any
	if err := toml.Unmarshal([]byte(text), &top); err != nil {
		if e, ok := errors.AsType[*toml.DecodeError](err); ok {
			row, column := e.Position()
			return nil, nil, fmt.Errorf("line %d, column %d: %s", row, column, strings.TrimPrefix(e.Error(), "toml: "))
		}
		return nil, nil, fmt.Errorf("it is not TOML: %w", err)
	}
	var problems []Problem
	for _, key := range sortedKeys(top) {
		if key != "rules" {
			problems = append(problems, Problem{
				File: file, What: fmt.Sprintf("unknown key %q", key),
				Do: "the file holds [[rules]] only: remove it",
			})
		}
	}
	entries, err := ruleTables(top["rules"])
	if err != nil {
		return nil, nil, err
	}
	if len(entries) > maxRules {
		return nil, nil, fmt.Errorf("it has %d rules, at most %d are allowed", len(entries), maxRules)
	}
	rules := &Rules{}
	for i, entry := range entries {
		t := &table{values: entry}
		name := t.readText("name")
		if enabled, given := t.readFlag("enabled"); given && !enabled && t.err == nil {
			continue
		}
		r, err := t.readRule(name)
		if err == nil && slices.ContainsFunc(rules.list, func(other rule) bool { return other.name == name }) {
			err = errors.New("another rule has the same name")
		}
		if err != nil {
			where := fmt.Sprintf("rule %d", i+1)
			if name != "" {
				where += fmt.Sprintf(" (%q)", name)
			}
			problems = append(problems, Problem{
				File: file, Rule: where, What: err.Error(),
				Do: "the rule is left out: mend or remove it",
			})
			continue
		}
		rules.list = append(rules.list, r)
	}
	return rules, problems, nil
}

// ruleTables reads [[rules]].
func ruleTables(v any) ([]map[string]any, error) {
	if v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, errors.New("rules has to be a list of tables: write [[rules]]")
	}
	out := make([]map[string]any, 0, len(list))
	for _, one := range list {
		m, ok := one.(map[string]any)
		if !ok {
			return nil, errors.New("rules has to be a list of tables: write [[rules]]")
		}
		out = append(out, m)
	}
	return out, nil
}

// selectRules selects the rules for a command line. If limited, it selects only rules that name what they drop.
func (e *compiled) selectRules(r reading) (chosen []*rule, limited bool) {
	limited = r.loose
	likely := e.likelyRules(r)
	for i := range e.rules {
		candidate := &e.rules[i]
		if candidate.exact != "" && candidate.exact == r.whole ||
			!r.opaque && likely&(1<<min(i, 63)) != 0 && candidate.fitsReading(r) {
			chosen = append(chosen, candidate)
		}
	}
	if limited {
		chosen = slices.DeleteFunc(chosen, func(c *rule) bool { return !c.strategy.isNaming() })
	}
	return chosen, limited
}

// commandWords builds the prefilter for the expressions of rules. All rules from the 64th on share bit 63.
func commandWords(rules []rule) (look *automaton, always uint64) {
	words := make([][]string, min(len(rules), 64))
	for i := range rules {
		at := min(i, 63)
		if re := rules[i].regex; re == nil || re.need == nil {
			always |= 1 << at
		} else {
			words[at] = append(words[at], re.need...)
		}
	}
	if look = newAutomaton(words); look == nil {
		always = ^uint64(0)
	}
	return look, always
}

// likelyRules returns the bits of rules that may match one of the commands.
func (e *compiled) likelyRules(r reading) uint64 {
	bits := e.always
	if e.commands == nil || len(r.producers) == 0 {
		return bits
	}
	bits |= e.commands.scanWords(r.whole)
	for _, spellings := range r.producers {
		for _, one := range spellings {
			bits |= e.commands.scanWords(one)
		}
	}
	return bits
}

// fitsReading reports whether a rule matches all commands that printed something. A rule for only some of them must not
// touch the output of the others.
func (r *rule) fitsReading(cmd reading) bool {
	if len(cmd.producers) == 0 {
		return false
	}
	if len(cmd.producers) == 1 && r.matchesCommand(cmd.whole) {
		return true
	}
	for _, spellings := range cmd.producers {
		if !slices.ContainsFunc(spellings, r.matchesCommand) {
			return false
		}
	}
	return true
}
