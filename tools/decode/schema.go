package decode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/schema"
)

// maxCached limits the compiled schemas, because servers may change their tools without limit.
const maxCached = 1024

// cache stores one compiled schema per definition hash. It is safe for concurrent use.
type cache struct {
	mu      sync.Mutex
	schemas map[string]*argSchema
}

func newCache() *cache { return &cache{schemas: map[string]*argSchema{}} }

func (c *cache) of(def tools.Definition) *argSchema {
	hash := def.Hash()
	c.mu.Lock()
	s := c.schemas[hash]
	c.mu.Unlock()
	if s != nil {
		return s
	}
	s = newSchema(def.Schema) // outside the lock: two first calls may compile the same schema, which only costs time
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.schemas) >= maxCached {
		clear(c.schemas)
	}
	c.schemas[hash] = s
	return s
}

// argSchema is a tool's schema in two forms. compiled is nil if the schema cannot be checked here. Arguments are not
// validated then, because a foreign tool with, say, an unknown schema dialect is usable, and its server validates them.
type argSchema struct {
	doc      map[string]any
	compiled *schema.Schema
}

func newSchema(raw []byte) *argSchema {
	s := &argSchema{compiled: schema.Compile(raw)}
	if doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw)); err == nil {
		s.doc, _ = doc.(map[string]any)
	}
	return s
}

// declares reports whether the schema has a field of this name at its top level.
func (s *argSchema) declares(field string) bool {
	p, _ := s.doc["properties"].(map[string]any)
	_, ok := p[field]
	return ok
}

// closed reports whether the schema admits only the fields that it names.
func (s *argSchema) closed() bool {
	switch extra := s.doc["additionalProperties"].(type) {
	case bool:
		return !extra
	case map[string]any: // jsonschema-go writes false as {"not": {}}
		not, ok := extra["not"].(map[string]any)
		return ok && len(not) == 0 && len(extra) == 1
	}
	return false
}

// validate validates the arguments. If the only problem is null for optional fields, it returns the arguments without
// these fields.
func (s *argSchema) validate(ctx context.Context, args map[string]any) (map[string]any, *tools.Error) {
	if s.compiled == nil {
		return args, nil
	}
	failed, err := s.check(ctx, args)
	if err != nil {
		return nil, err
	}
	if failed == nil {
		return args, nil
	}
	nulls := nullFields(failed)
	if len(nulls) > 0 {
		without := drop(args, nulls)
		again, err := s.check(ctx, without)
		if err != nil {
			return nil, err
		}
		if again == nil {
			return without, nil
		}
		if !requires(again, nulls) {
			failed = again
		}
	}
	return nil, s.explain(failed)
}

// check returns what is wrong with the arguments, or why they cannot be checked: ctx has ended, or the check would take
// too much work.
func (s *argSchema) check(ctx context.Context, args map[string]any) (*jsonschema.ValidationError, *tools.Error) {
	err := s.compiled.Validate(ctx, args)
	if err == nil {
		return nil, nil
	}
	if failed, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return failed, nil
	}
	if errors.Is(err, schema.ErrTooCostly) {
		return nil, &tools.Error{
			Category: tools.PermanentFailure, Message: "the arguments cannot be checked against the tool's schema: " +
				err.Error(), Err: err,
			Suggestion: "Call the tool with smaller or simpler arguments, or use another one.",
		}
	}
	return nil, tools.AsError(err)
}

// nullFields returns the places with null where something else is required.
func nullFields(e *jsonschema.ValidationError) [][]string {
	var places [][]string
	if t, ok := e.ErrorKind.(*kind.Type); ok && t.Got == "null" && len(e.InstanceLocation) > 0 {
		places = append(places, e.InstanceLocation)
	}
	if n, ok := e.ErrorKind.(*kind.Enum); ok && n.Got == nil && len(e.InstanceLocation) > 0 {
		places = append(places, e.InstanceLocation)
	}
	for _, cause := range e.Causes {
		places = append(places, nullFields(cause)...)
	}
	return places
}

// drop returns args without the null fields at the places.
func drop(args map[string]any, places [][]string) map[string]any {
	gone := map[string]bool{}
	for _, p := range places {
		gone[pointer(p)] = true
	}
	without, _ := dropIn(args, nil, gone).(map[string]any) // the result for a map is a map
	return without
}

func dropIn(v any, at []string, gone map[string]bool) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, x := range v {
			place := append(slices.Clip(at), k)
			if x == nil && gone[pointer(place)] {
				continue
			}
			m[k] = dropIn(x, place, gone)
		}
		return m
	case []any: // null in a list is an element, not a missing field
		list := make([]any, len(v))
		for i, x := range v {
			list[i] = dropIn(x, append(slices.Clip(at), fmt.Sprint(i)), gone)
		}
		return list
	default:
		return v
	}
}

// requires reports whether a field at one of the places is required.
func requires(e *jsonschema.ValidationError, places [][]string) bool {
	if r, ok := e.ErrorKind.(*kind.Required); ok {
		for _, p := range places {
			if last := len(p) - 1; slices.Equal(p[:last], e.InstanceLocation) && slices.Contains(r.Missing, p[last]) {
				return true
			}
		}
	}
	return slices.ContainsFunc(e.Causes, func(c *jsonschema.ValidationError) bool { return requires(c, places) })
}

// pointer returns a location as a JSON pointer (RFC 6901).
func pointer(place []string) string {
	var b strings.Builder
	for _, p := range place {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(p))
	}
	return b.String()
}
