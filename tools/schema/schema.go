// Package schema compiles the JSON schemas of tools, which are foreign, and validates values at a limited cost: both an
// amount of work and the caller's context limit it. It also measures beforehand how large a schema becomes when its
// references are followed.
package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// baseURN is the address of a schema during compilation, unknown to any loader. It occurs in the locations of errors.
const baseURN = "urn:tool"

// maxWork limits one validation, in steps of about a microsecond. Arguments with a hundred fields take a few hundred
// steps; a result with 20 000 rows of two fields takes 200 000, and one with 100 000 rows exceeds the limit.
const maxWork = 300_000

// ErrTooCostly means that a validation would take more than maxWork.
var ErrTooCostly = errors.New("checking it takes more work than one check may")

// Schema is a compiled schema. It is safe for concurrent use; validations of one schema are serialised.
type Schema struct {
	compiled *jsonschema.Schema
	turn     chan struct{} // holds the only permit to validate
	meter    *meter        // of the current validation
}

// Compile compiles a schema as draft 2020-12 unless it says otherwise, or else as draft 7, because older schemas often
// have no $schema. References to other documents are never followed. It returns nil when there is no schema, when it
// exceeds the limits of Measure, and when it cannot be compiled (a foreign dialect). Nothing can be checked then, which
// must not count as an error of a value. A pattern that RE2 does not know, or that is too large, accepts everything.
// Where a schema says nullable, as OpenAPI does, null is valid.
func Compile(raw json.RawMessage) *Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil || doc == nil {
		return nil
	}
	if _, problem := measure(doc, len(raw)); problem != "" || !plain(doc) {
		return nil
	}
	allowNull(doc, false)
	s := &Schema{turn: make(chan struct{}, 1)}
	for _, draft := range []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7} {
		c := jsonschema.NewCompiler()
		c.UseLoader(denyAll{})
		c.UseRegexpEngine(s.regexp)
		c.DefaultDraft(draft)
		if err := c.AddResource(baseURN, doc); err != nil {
			continue
		}
		if s.compiled, err = c.Compile(baseURN); err == nil {
			instrument(s.compiled, s)
			return s
		}
	}
	return nil
}

// denyAll refuses references to other documents: for a foreign server, the library would open file:///etc/passwd.
type denyAll struct{}

func (denyAll) Load(url string) (any, error) {
	return nil, fmt.Errorf("schema refers to %s: references to other documents are not followed", url)
}

// Validate validates a value in the form of jsonschema.UnmarshalJSON. The error is a *jsonschema.ValidationError if the
// value is not valid, ErrTooCostly, or the cause of ctx. Nothing is left running when it returns.
func (s *Schema) Validate(ctx context.Context, value any) (err error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.turn }()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.meter = &meter{ctx: ctx, left: maxWork}
	defer func() {
		s.meter = nil
		if p := recover(); p != nil {
			err = ended(p)
		}
	}()
	err = s.compiled.Validate(value)
	if err == nil {
		return nil
	}
	if failed, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		left := maxCauses
		prune(failed, &left)
		return failed
	}
	return &jsonschema.ValidationError{SchemaURL: baseURN, ErrorKind: &kind.Schema{Location: err.Error()}}
}

// maxCauses limits the parts of an error: a value can be wrong in a million ways, and the caller walks through all of
// them.
const maxCauses = 5000

func prune(e *jsonschema.ValidationError, left *int) {
	*left -= len(e.Causes)
	if *left < 0 {
		e.Causes = e.Causes[:max(len(e.Causes)+*left, min(len(e.Causes), 1))]
		*left = 0
	}
	for _, c := range e.Causes {
		if *left == 0 {
			c.Causes = c.Causes[:min(len(c.Causes), 1)]
		}
		prune(c, left)
	}
}

// ended returns why a validation was aborted. A panic of the library itself, for example about a number that it cannot
// parse, also means that the value cannot be checked.
func ended(p any) error {
	if s, ok := p.(stopped); ok {
		return s.err
	}
	return ErrTooCostly
}

// stopped is the panic that ends the library's recursion, because the library supports neither a context nor a limit.
type stopped struct{ err error }

// stop aborts a validation from any depth; Validate recovers it.
func stop(err error) {
	panic(stopped{err}) //nolint:forbidigo // there is no other way out of the library
}

// meter counts the work of one validation.
type meter struct {
	ctx  context.Context //nolint:containedctx // of the one validation that it counts
	left int
	seen int // steps since the context was last checked
}

// charge adds n steps.
func (m *meter) charge(n int) {
	if m == nil { // the schema itself is being compiled
		return
	}
	if n < 1 {
		n = 1
	}
	if m.left -= n; m.left < 0 {
		stop(ErrTooCostly)
	}
	if m.seen += n; m.seen >= 1000 {
		m.seen = 0
		if m.ctx.Err() != nil {
			stop(context.Cause(m.ctx))
		}
	}
}
