package content

import (
	"bytes"
	"context"
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
	"github.com/zephbot/zephbot/tools/schema"
)

// maxProblem is the maximum length of the result of Check, in bytes.
const maxProblem = 300

// Schema is a compiled output schema. It is safe for concurrent use.
type Schema struct {
	compiled *schema.Schema
}

// Compile compiles an output schema. It returns nil when there is none or when it cannot be checked here; results are
// not checked then.
func Compile(raw json.RawMessage) *Schema {
	compiled := schema.Compile(raw)
	if compiled == nil {
		return nil
	}
	return &Schema{compiled: compiled}
}

// Check returns one line about how a value violates the schema. The result is "" when it is valid, and when the value
// is too large to check. A nil Schema accepts everything. Check stops when ctx ends.
func (s *Schema) Check(ctx context.Context, value json.RawMessage) string {
	if s == nil {
		return ""
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return "it is no JSON"
	}
	err = s.compiled.Validate(ctx, v)
	failed, ok := errors.AsType[*jsonschema.ValidationError](err)
	switch {
	case err == nil:
		return ""
	case !ok:
		return "it could not be checked: " + err.Error()
	}
	problems := leaves(failed, nil)
	slices.Sort(problems) // the validator iterates over maps: without sorting, the order would change between calls
	problems = slices.Compact(problems)
	text := strings.Join(problems[:min(len(problems), 3)], "; ")
	if more := len(problems) - 3; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return guard.Line(text, maxProblem)
}

// maxLeaves limits how many problems are formatted: an answer may have a million.
const maxLeaves = 1000

// leaves returns the underlying problems, each with its location.
func leaves(e *jsonschema.ValidationError, all []string) []string {
	for _, c := range e.Causes {
		if all = leaves(c, all); len(all) >= maxLeaves {
			return all
		}
	}
	if len(e.Causes) > 0 {
		return all
	}
	return append(all, leaf(e))
}

func leaf(e *jsonschema.ValidationError) string {
	at := "/" + strings.Join(e.InstanceLocation, "/")
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return fmt.Sprintf("%s: want %s, got %s", at, strings.Join(k.Want, " or "), k.Got)
	case *kind.Required:
		return fmt.Sprintf("%s: lacks %s", at, strings.Join(k.Missing, ", "))
	case *kind.AdditionalProperties:
		return fmt.Sprintf("%s: has fields that are not in the schema: %s", at, strings.Join(k.Properties, ", "))
	}
	return at + ": " + e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
}
