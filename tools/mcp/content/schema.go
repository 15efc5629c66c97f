package content

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// base is the address of a schema while it is compiled: one that no loader knows.
const base = "urn:output"

// maxProblem bounds what Check says, in bytes.
const maxProblem = 300

// Schema is a compiled output schema. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
}

// Compile reads an output schema, as draft 2020-12 unless it says otherwise, else as draft 7. References to other documents are never followed. nil where there
// is none or where it does not compile (a foreign dialect, a look-ahead in a pattern): then the results are not checked.
func Compile(raw json.RawMessage) *Schema {
	if len(raw) == 0 {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil || doc == nil {
		return nil
	}
	for _, draft := range []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7} {
		c := jsonschema.NewCompiler()
		c.UseLoader(denyAll{})
		c.DefaultDraft(draft)
		if err := c.AddResource(base, doc); err != nil {
			continue
		}
		if compiled, err := c.Compile(base); err == nil {
			return &Schema{compiled: compiled}
		}
	}
	return nil
}

// denyAll refuses references out of the schema: the library would open file:///etc/passwd for a foreign server.
type denyAll struct{}

func (denyAll) Load(url string) (any, error) {
	return nil, fmt.Errorf("schema refers to %s: references to other documents are not followed", url)
}

// Check says on one line what of a value does not fit; "" = it fits. A nil Schema admits everything.
func (s *Schema) Check(value json.RawMessage) string {
	if s == nil {
		return ""
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return "it is no JSON"
	}
	err = s.compiled.Validate(v)
	if err == nil {
		return ""
	}
	failed, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return "it could not be checked"
	}
	problems := leaves(failed)
	slices.Sort(problems) // the validator walks maps: without this the order would change from call to call
	problems = slices.Compact(problems)
	text := strings.Join(problems[:min(len(problems), 3)], "; ")
	if more := len(problems) - 3; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return guard.Line(text, maxProblem)
}

// leaves are what is really wrong, each with its place.
func leaves(e *jsonschema.ValidationError) []string {
	if len(e.Causes) > 0 {
		var all []string
		for _, c := range e.Causes {
			all = append(all, leaves(c)...)
		}
		return all
	}
	at := "/" + strings.Join(e.InstanceLocation, "/")
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return []string{fmt.Sprintf("%s: want %s, got %s", at, strings.Join(k.Want, " or "), k.Got)}
	case *kind.Required:
		return []string{fmt.Sprintf("%s: lacks %s", at, strings.Join(k.Missing, ", "))}
	case *kind.AdditionalProperties:
		return []string{fmt.Sprintf("%s: has fields that are not in the schema: %s", at, strings.Join(k.Properties, ", "))}
	}
	return []string{at + ": " + e.ErrorKind.LocalizedString(message.NewPrinter(language.English))}
}
