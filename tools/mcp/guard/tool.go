package guard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/tools/schema"
)

// Limits for what one server offers.
const (
	MaxTools              = 100  // tools of one server; further ones are dropped
	DefaultMaxDescription = 2048 // bytes
	defaultMaxInstruction = 2048 // bytes
	maxTitle              = 128  // bytes
)

// Tool is one tool of a server.
type Tool struct {
	Name        string          // as offered; after Sanitise, the name in the bot
	Original    string          // the name to use in a call to the server; set by Sanitise
	Title       string          // for people
	Description string          // for the model
	Input       json.RawMessage // schema of the arguments
	Output      json.RawMessage // schema of a structured result; nil = none
	Annotations Annotations
	NeedsTask   bool   // it can only be called as a task
	Fingerprint string // of the tool as it was offered; set by Sanitise
}

// Display returns the tool's name for people: the title, the title among the annotations, or the name.
func (t Tool) Display() string {
	switch {
	case t.Title != "":
		return t.Title
	case t.Annotations.Title != "":
		return t.Annotations.Title
	}
	return t.Name
}

// Severity of a finding.
type Severity int

// Severities. Only Warning and High are about text that tries to instruct a model.
const (
	Info Severity = iota
	Warning
	High
)

// Rules of findings, besides the patterns of policy/scan.
const (
	RuleHidden  = "hidden_characters" // invisible characters in a name or a value
	RuleTooLong = "too_long"          // a text was cut
	RuleTooDeep = "too_deep"          // a schema is nested deeper than ten levels
	// not a JSON object, too large, or not for an object: replaced by a schema that accepts any object
	RuleSchema = "invalid_schema"
	// too large once its references are followed: replaced by a schema that accepts any object
	RuleCostly    = "too_costly"
	RulePattern   = "pattern"          // a regular expression that only the server can check
	RuleRemoteRef = "remote_reference" // a $ref to another document; it is never followed
	RuleReference = "cross_reference"  // a description names another tool of the server
	RuleName      = "renamed"          // the name contained invalid characters, or collided with another
	RuleDuplicate = "duplicate"        // the same name twice: the second is left out
)

// Finding is something noticed about a tool or about a server's instructions.
type Finding struct {
	Tool     string // sanitised name; "" = the server's instructions
	Field    string // "name", "title", "description", "input/properties/url/description", "output/…", "instructions"
	Rule     string // of policy/scan, or one of the Rule constants
	Severity Severity
	Other    string // the tool that is mentioned, or the name before a change
	Preview  string // at most 64 bytes of the text, quoted, for the log
	Kept     bool   // the text was kept, because a call has to repeat it
}

// Injection reports whether the finding is about text that tries to instruct a model.
func (f Finding) Injection() bool { return f.Severity >= Warning && f.Rule != RuleReference }

// preview returns the beginning of a foreign text for a log: quoted, in ASCII.
func preview(s string) string {
	quoted := fmt.Sprintf("%+q", cut(s, 64))
	return cut(quoted, 64)
}

// Injections counts the places with text that tries to instruct a model.
func Injections(findings []Finding) int {
	places := map[[2]string]bool{}
	for _, f := range findings {
		if f.Injection() {
			places[[2]string{f.Tool, f.Field}] = true
		}
	}
	return len(places)
}

// Flagged returns the tools with such a place, sorted.
func Flagged(findings []Finding) []string {
	var names []string
	for _, f := range findings {
		if f.Injection() && f.Tool != "" && !slices.Contains(names, f.Tool) {
			names = append(names, f.Tool)
		}
	}
	slices.Sort(names)
	return names
}

// Penalties returns how many points one registration costs in a server's trust score: at most three for injections and
// three for cross references of flagged tools.
func Penalties(findings []Finding) int {
	refs := 0
	for _, f := range findings {
		if f.Rule == RuleReference && f.Severity == High {
			refs++
		}
	}
	return min(Injections(findings), 3) + min(refs, 3)
}

// Sanitise makes the tools of a server safe for a model, in the same order. It leaves out a second tool of the same
// name. It applies to trusted servers too, and never leaves out a tool because of its texts. maxDescription is in
// bytes; 0 = DefaultMaxDescription.
func Sanitise(server string, offered []Tool, maxDescription int) ([]Tool, []Finding) {
	if maxDescription <= 0 {
		maxDescription = DefaultMaxDescription
	}
	var findings []Finding
	unique := make([]Tool, 0, len(offered))
	seen := map[string]bool{}
	for _, t := range offered {
		if t.Original == "" {
			t.Original = t.Name
		}
		if seen[t.Original] {
			findings = append(findings, Finding{Tool: cleanName(t.Original), Field: "name", Rule: RuleDuplicate})
			continue
		}
		seen[t.Original] = true
		unique = append(unique, t)
	}
	originals := make([]string, len(unique))
	for i, t := range unique {
		originals[i] = t.Original
	}
	room := maxSchemas
	for i, name := range Names(originals) {
		t := &unique[i]
		report := func(f Finding) {
			f.Tool = name
			findings = append(findings, f)
		}
		if t.Fingerprint == "" {
			t.Fingerprint = Fingerprint(server, *t)
		}
		if name != t.Original {
			report(Finding{Field: "name", Rule: RuleName, Other: Line(t.Original, maxTitle)})
		}
		t.Name = name
		sanitiseTexts(t, maxDescription, report)
		offered := len(t.Input) + len(t.Output)
		sanitiseSchemas(t, room, report)
		room -= min(room, offered)
	}
	return unique, append(findings, references(unique, findings)...)
}

// sanitiseTexts sanitises the texts of one tool in place.
func sanitiseTexts(t *Tool, maxDescription int, report func(Finding)) {
	field := func(name, text string, limit int) string {
		clean, rules := Text(text, limit)
		for _, r := range rules {
			report(Finding{Field: name, Rule: r, Severity: Warning, Preview: preview(text)})
		}
		if len(rules) == 0 && len(text) > limit && len(clean) > limit-4 {
			report(Finding{Field: name, Rule: RuleTooLong})
		}
		return clean
	}
	if rules := instructs(t.Original); len(rules) > 0 {
		kept := t.Name == t.Original || len(instructs(t.Name)) > 0 // a call has to repeat it
		report(Finding{Field: "name", Rule: rules[0], Severity: Warning, Preview: preview(t.Original), Kept: kept})
	}
	t.Title = field("title", t.Title, maxTitle)
	t.Annotations.Title = field("annotations/title", t.Annotations.Title, maxTitle)
	t.Description = field("description", t.Description, maxDescription)
}

// sanitiseSchemas sanitises the schemas of one tool in place. limit is the maximum length of one, in bytes.
func sanitiseSchemas(t *Tool, limit int, report func(Finding)) {
	under := func(part string) func(Finding) {
		return func(f Finding) {
			f.Field = part + f.Field
			report(f)
		}
	}
	clean, ok := mendSchema(t.Input, limit, under("input"))
	if !ok || !forObject(clean) {
		clean = json.RawMessage(anyObject)
		if len(t.Input) > 0 {
			report(Finding{Field: "input", Rule: RuleSchema, Preview: preview(string(t.Input[:min(len(t.Input), 64)]))})
		}
	} else if !affordable(clean, under("input")) {
		clean = json.RawMessage(anyObject)
	}
	t.Input = clean
	if len(t.Output) == 0 {
		return
	}
	if clean, ok = mendSchema(t.Output, limit, under("output")); !ok {
		clean = nil
		report(Finding{Field: "output", Rule: RuleSchema, Preview: preview(string(t.Output[:min(len(t.Output), 64)]))})
	} else if !affordable(clean, under("output")) {
		clean = nil
	}
	t.Output = clean
}

// anyObject is the schema of a tool whose own schema cannot be used. Its server checks the arguments.
const anyObject = `{"type":"object"}`

// affordable reports whether a schema may be shown and checked. A schema of a few kilobytes can take years to check.
func affordable(raw json.RawMessage, report func(Finding)) bool {
	size, problem := schema.Measure(raw)
	if problem != "" {
		report(Finding{Rule: RuleCostly, Preview: problem})
		return false
	}
	for _, text := range size.Patterns[:min(len(size.Patterns), maxBadPatterns)] {
		report(Finding{Rule: RulePattern, Preview: preview(text)})
	}
	return true
}

// maxBadPatterns limits the findings of one schema.
const maxBadPatterns = 5

// forObject reports whether a schema describes objects, as arguments are.
func forObject(raw json.RawMessage) bool {
	var s struct {
		Type any `json:"type"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return false
	}
	switch t := s.Type.(type) {
	case nil:
		return true
	case string:
		return t == "object"
	case []any:
		return slices.Contains(t, any("object"))
	}
	return false
}

// Instructions makes a server's instructions safe for the system prompt. It does what Text does and ends a cut text
// with "...". limit is in bytes; 0 = defaultMaxInstruction.
func Instructions(text string, limit int) (string, []Finding) {
	if limit <= 0 {
		limit = defaultMaxInstruction
	}
	clean, rules := mend(text, limit, "...")
	var findings []Finding
	for _, r := range rules {
		findings = append(findings, Finding{Field: "instructions", Rule: r, Severity: Warning, Preview: preview(text)})
	}
	if len(rules) == 0 && len(clean) > limit-8 && len(text) > limit {
		findings = append(findings, Finding{Field: "instructions", Rule: RuleTooLong})
	}
	return strings.TrimSpace(clean), findings
}
