package decode

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"sort"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/zephbot/zephbot/policy/nearest"
	"github.com/zephbot/zephbot/tools"
)

// maxProblems limits the problems in one message; a model corrects them one after another anyway.
const maxProblems = 5

// Classes of problems, in the order in which they are reported.
const (
	missing = iota
	unknown
	mistyped
	misvalued
)

type problem struct {
	class int
	text  string
}

// explain returns an error whose message a model can act on: "missing required field: url". The first problem
// determines the category.
func (s *argSchema) explain(e *jsonschema.ValidationError) *tools.Error {
	problems := s.problems(e)
	if len(problems) == 0 {
		problems = []problem{{misvalued, "the arguments do not fit the schema"}}
	}
	slices.SortStableFunc(problems, func(a, b problem) int {
		if a.class != b.class {
			return a.class - b.class
		}
		// the validator iterates over maps: without sorting, the order would change between calls
		return strings.Compare(a.text, b.text)
	})
	problems = slices.CompactFunc(problems, func(a, b problem) bool { return a == b })
	texts := make([]string, 0, maxProblems)
	for _, p := range problems[:min(len(problems), maxProblems)] {
		texts = append(texts, p.text)
	}
	if more := len(problems) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	category := tools.InvalidParameters
	if problems[0].class == mistyped {
		category = tools.TypeMismatch
	}
	return tools.Errorf(category, "%s", strings.Join(texts, "; "))
}

// problems returns the underlying problems in the tree of causes.
func (s *argSchema) problems(e *jsonschema.ValidationError) []problem {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		if len(e.Causes) > 0 {
			return s.alternatives(e)
		}
	}
	if len(e.Causes) > 0 {
		var all []problem
		for _, cause := range e.Causes {
			all = append(all, s.problems(cause)...)
		}
		return all
	}
	return s.leaf(e)
}

// alternatives explains a value that fits none of several forms. If one form has the right type, its problems are the
// useful ones.
func (s *argSchema) alternatives(e *jsonschema.ValidationError) []problem {
	var wants []string
	var right []*jsonschema.ValidationError
	got := ""
	for _, cause := range e.Causes {
		t := typeAt(cause, e.InstanceLocation)
		if t == nil {
			right = append(right, cause)
			continue
		}
		got = t.Got
		for _, w := range t.Want {
			if !slices.Contains(wants, w) {
				wants = append(wants, w)
			}
		}
	}
	switch {
	case len(right) == 0:
		return []problem{{mistyped, fmt.Sprintf("field %s: want %s, got %s", where(e.InstanceLocation),
			strings.Join(wants, " or "), got)}}
	case len(right) == 1:
		return s.problems(right[0])
	}
	var forms []string
	for _, cause := range right {
		if ps := s.problems(cause); len(ps) > 0 {
			forms = append(forms, ps[0].text)
		}
	}
	slices.Sort(forms)
	forms = slices.Compact(forms)
	text := fmt.Sprintf("field %s fits none of the allowed forms (%s)", where(e.InstanceLocation),
		strings.Join(forms[:min(len(forms), maxProblems)], " / "))
	return []problem{{misvalued, text}}
}

// typeAt returns the type error about the value itself rather than something inside; nil if the type is right.
func typeAt(e *jsonschema.ValidationError, place []string) *kind.Type {
	if t, ok := e.ErrorKind.(*kind.Type); ok && slices.Equal(e.InstanceLocation, place) {
		return t
	}
	for _, cause := range e.Causes {
		if t := typeAt(cause, place); t != nil {
			return t
		}
	}
	return nil
}

// leaf explains one violated keyword.
func (s *argSchema) leaf(e *jsonschema.ValidationError) []problem {
	at := e.InstanceLocation
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return missingFields(at, k.Missing)
	case *kind.DependentRequired:
		return missingFields(at, k.Missing)
	case *kind.Dependency:
		return missingFields(at, k.Missing)
	case *kind.AdditionalProperties:
		return s.unknownFields(e, k.Properties)
	case *kind.FalseSchema:
		return []problem{{unknown, "field " + where(at) + " is not allowed here"}}
	case *kind.Type:
		return []problem{{mistyped, fmt.Sprintf("field %s: want %s, got %s", where(at), strings.Join(k.Want, " or "),
			k.Got)}}
	case *kind.Not: // {"not": {}} is one way to write "no other fields"
		if len(at) > 0 {
			return s.notAllowed(e)
		}
	case *kind.Enum:
		return []problem{{misvalued, fmt.Sprintf("field %s: want one of %s, got %s", where(at), values(k.Want),
			value(k.Got))}}
	case *kind.Const:
		return []problem{{misvalued, fmt.Sprintf("field %s: want %s, got %s", where(at), value(k.Want), value(k.Got))}}
	}
	return []problem{{misvalued, fmt.Sprintf("field %s: %s", where(at), bounds(e.ErrorKind))}}
}

// bounds explains the keywords that limit size and form.
func bounds(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return fmt.Sprintf("want at least %s, got %s", rat(k.Want), rat(k.Got))
	case *kind.Maximum:
		return fmt.Sprintf("want at most %s, got %s", rat(k.Want), rat(k.Got))
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf("want more than %s, got %s", rat(k.Want), rat(k.Got))
	case *kind.ExclusiveMaximum:
		return fmt.Sprintf("want less than %s, got %s", rat(k.Want), rat(k.Got))
	case *kind.MinLength:
		return fmt.Sprintf("want at least %d characters, got %d", k.Want, k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("want at most %d characters, got %d", k.Want, k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("want at least %d items, got %d", k.Want, k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("want at most %d items, got %d", k.Want, k.Got)
	case *kind.Pattern:
		return fmt.Sprintf("want text that matches %s, got %s", shorten(k.Want), value(k.Got))
	}
	return shorten(k.LocalizedString(message.NewPrinter(language.English)))
}

func missingFields(at, names []string) []problem {
	full := make([]string, len(names))
	for i, n := range names {
		full[i] = field(append(slices.Clip(at), n))
	}
	if len(full) == 1 {
		return []problem{{missing, "missing required field: " + full[0]}}
	}
	return []problem{{missing, "missing required fields: " + strings.Join(full, ", ")}}
}

func (s *argSchema) unknownFields(e *jsonschema.ValidationError, names []string) []problem {
	known := s.fields(e.SchemaURL)
	all := make([]problem, 0, len(names))
	for _, n := range names {
		all = append(all, problem{unknown, unknownField(append(slices.Clip(e.InstanceLocation), n), known)})
	}
	return all
}

// notAllowed explains a field that failed {"not": {}} in additionalProperties.
func (s *argSchema) notAllowed(e *jsonschema.ValidationError) []problem {
	parent, ok := strings.CutSuffix(e.SchemaURL, "/additionalProperties")
	if !ok {
		return []problem{{misvalued, "field " + where(e.InstanceLocation) + ": this value is not allowed"}}
	}
	return []problem{{unknown, unknownField(e.InstanceLocation, s.fields(parent))}}
}

func unknownField(place, known []string) string {
	text := "unknown field: " + field(place)
	if near, ok := nearest.Nearest(place[len(place)-1], known); ok {
		return text + " (did you mean " + near + "?)"
	}
	if len(known) == 0 {
		return text + " (no fields are known here)"
	}
	const most = 20
	list := strings.Join(known[:min(len(known), most)], ", ")
	if len(known) > most {
		list += ", …"
	}
	return text + " (known fields: " + list + ")"
}

// fields returns the sorted properties of the subschema at an address such as "urn:tool#/properties/options".
func (s *argSchema) fields(address string) []string {
	_, fragment, _ := strings.Cut(address, "#")
	var node any = s.doc
	for step := range strings.SplitSeq(strings.TrimPrefix(fragment, "/"), "/") {
		if step == "" {
			continue
		}
		if plain, err := url.PathUnescape(step); err == nil {
			step = plain
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		m, ok := node.(map[string]any)
		if !ok {
			return nil // an index into a list, as in allOf/0: there are no names to suggest
		}
		node = m[step]
	}
	m, _ := node.(map[string]any)
	properties, _ := m["properties"].(map[string]any)
	names := make([]string, 0, len(properties))
	for n := range properties {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// field formats a location as a model would: options.depth, items[2].name.
func field(place []string) string {
	var b strings.Builder
	for i, p := range place {
		switch {
		case isIndex(p) && i > 0:
			b.WriteString("[" + p + "]")
		case i > 0:
			b.WriteString("." + shorten(p))
		default:
			b.WriteString(shorten(p))
		}
	}
	return b.String()
}

func where(place []string) string { return orArgs(field(place)) }

func isIndex(p string) bool {
	return p != "" && strings.Trim(p, "0123456789") == ""
}

func value(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "something else"
	}
	return shorten(string(raw))
}

func values(list []any) string {
	const most = 20
	texts := make([]string, 0, most+1)
	for i, v := range list {
		if i == most {
			texts = append(texts, "…")
			break
		}
		texts = append(texts, value(v))
	}
	return strings.Join(texts, ", ")
}

func rat(r *big.Rat) string {
	if r.IsInt() {
		return shorten(r.Num().String())
	}
	f, _ := r.Float64()
	return fmt.Sprint(f)
}
