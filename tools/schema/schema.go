// Package schema compiles the JSON schemas of tools, which strangers wrote, and validates values against them at a
// price that is bounded: by an amount of work, and by the context of whoever asks. It also says before any of that how
// large a schema becomes when its references are followed.
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

// Base is the address of a schema while it is compiled: one that no loader knows. It stands in the locations of errors.
const Base = "urn:tool"

// MaxWork bounds one validation, in steps of about a microsecond. Arguments of a hundred fields take a few hundred; a
// result with 20 000 rows of two fields takes 200 000, one with 100 000 rows does not get through.
const MaxWork = 300_000

// ErrTooCostly is the error of a validation that would take more than MaxWork.
var ErrTooCostly = errors.New("checking it takes more work than one check may")

// Schema is a compiled schema. It is safe for concurrent use; validations of one schema run one after the other.
type Schema struct {
	compiled *jsonschema.Schema
	turn     chan struct{} // holds the one place to validate
	meter    *meter        // of whoever holds it
}

// Compile reads a schema, as draft 2020-12 unless it says otherwise, else as draft 7: older schemas often come without
// $schema. References to other documents are never followed. nil where there is none, where it is larger than Measure
// admits, or where it cannot be compiled (a foreign dialect): then nothing can be checked here, which is no fault of a
// value. A pattern that RE2 does not know, or that would be too large, admits everything.
func Compile(raw json.RawMessage) *Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil || doc == nil {
		return nil
	}
	if _, problem := measure(doc, len(raw)); problem != "" || !plain(doc) {
		return nil
	}
	s := &Schema{turn: make(chan struct{}, 1)}
	for _, draft := range []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7} {
		c := jsonschema.NewCompiler()
		c.UseLoader(denyAll{})
		c.UseRegexpEngine(s.regexp)
		c.DefaultDraft(draft)
		if err := c.AddResource(Base, doc); err != nil {
			continue
		}
		if s.compiled, err = c.Compile(Base); err == nil {
			instrument(s.compiled, s)
			return s
		}
	}
	return nil
}

// denyAll refuses references out of the schema: the library would open file:///etc/passwd for a foreign server.
type denyAll struct{}

func (denyAll) Load(url string) (any, error) {
	return nil, fmt.Errorf("schema refers to %s: references to other documents are not followed", url)
}

// Validate checks a value as jsonschema.UnmarshalJSON reads it. The error is a *jsonschema.ValidationError where it
// does not fit, ErrTooCostly, or the cause of ctx. Nothing goes on after it has returned.
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
	s.meter = &meter{ctx: ctx, left: MaxWork}
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
	return &jsonschema.ValidationError{SchemaURL: Base, ErrorKind: &kind.Schema{Location: err.Error()}}
}

// maxCauses bounds the parts of an error: a value may be wrong in a million ways, and who reads it walks through them.
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

// ended says why a validation was broken off. What the library itself stumbles over (a number that it cannot read)
// cannot be checked either.
func ended(p any) error {
	if s, ok := p.(stopped); ok {
		return s.err
	}
	return ErrTooCostly
}

// stopped is what ends the library's recursion: it knows neither a context nor a limit.
type stopped struct{ err error }

// stop leaves a validation from wherever it is; Validate catches it.
func stop(err error) {
	panic(stopped{err}) //nolint:forbidigo // there is no other way out of the library
}

// meter counts the work of one validation.
type meter struct {
	ctx  context.Context //nolint:containedctx // of the one validation that it counts
	left int
	seen int // steps since the context was looked at
}

// charge pays for n steps.
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
