package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Typed describes a tool whose arguments are the struct In. The schema is derived from the struct (tags `json` and
// `jsonschema`).
type Typed[In any] struct {
	Definition Definition // Schema is set by New
	// Describe is like Tool.Describe, with decoded arguments; nil = the raw arguments.
	Describe func(ctx context.Context, call *Call, in In) (Subject, error)
	// Check is like Tool.Check, with decoded arguments; may be nil.
	Check func(ctx context.Context, call *Call, in In) error
	// Changes is like Tool.Changes, with decoded arguments; may be nil.
	Changes func(ctx context.Context, call *Call, in In) (Changes, error)
	// State is like Tool.State, with decoded arguments; may be nil.
	State func(ctx context.Context, call *Call, in In) ([]FileState, error)
	// Preview is like Tool.Preview, with decoded arguments; may be nil.
	Preview func(ctx context.Context, call *Call, in In) (Preview, error)
	// Deed is like Tool.Deed, with decoded arguments; may be nil.
	Deed func(ctx context.Context, call *Call, in In) (Effect, error)
	Run  func(ctx context.Context, call *Call, in In) (*Result, error)
	// Adjust can refine the generated schema (enums, limits); may be nil.
	Adjust func(s *jsonschema.Schema)
}

// New converts a typed tool. An error is a programming mistake: the struct has no schema.
func New[In any](t Typed[In]) (Tool, error) {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		return Tool{}, fmt.Errorf("schema of %s: %w", t.Definition.Name, err)
	}
	simplify(schema)
	if t.Adjust != nil {
		t.Adjust(schema)
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return Tool{}, fmt.Errorf("schema of %s: %w", t.Definition.Name, err)
	}
	def := t.Definition
	def.Schema = raw
	tool := Tool{Definition: def}
	tool.Run = func(ctx context.Context, call *Call) (*Result, error) {
		in, err := decode[In](call.Args)
		if err != nil {
			return nil, err
		}
		return t.Run(ctx, call, in)
	}
	if t.Check != nil {
		tool.Check = func(ctx context.Context, call *Call) error {
			in, err := decode[In](call.Args)
			if err != nil {
				return err
			}
			return t.Check(ctx, call, in)
		}
	}
	if t.Changes != nil {
		tool.Changes = func(ctx context.Context, call *Call) (Changes, error) {
			in, err := decode[In](call.Args)
			if err != nil {
				return Changes{}, err
			}
			return t.Changes(ctx, call, in)
		}
	}
	if t.Preview != nil {
		tool.Preview = func(ctx context.Context, call *Call) (Preview, error) {
			in, err := decode[In](call.Args)
			if err != nil {
				return Preview{}, err
			}
			return t.Preview(ctx, call, in)
		}
	}
	if t.Deed != nil {
		tool.Deed = func(ctx context.Context, call *Call) (Effect, error) {
			in, err := decode[In](call.Args)
			if err != nil {
				return Effect{}, err
			}
			return t.Deed(ctx, call, in)
		}
	}
	if t.State != nil {
		tool.State = func(ctx context.Context, call *Call) ([]FileState, error) {
			in, err := decode[In](call.Args)
			if err != nil {
				return nil, err
			}
			return t.State(ctx, call, in)
		}
	}
	if t.Describe != nil {
		tool.Describe = func(ctx context.Context, call *Call) (Subject, error) {
			in, err := decode[In](call.Args)
			if err != nil {
				return Subject{}, err
			}
			return t.Describe(ctx, call, in)
		}
	}
	return tool, nil
}

// simplify removes what some providers reject: type arrays such as ["null","array"] for slices.
func simplify(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, p := range s.Properties {
		simplify(p)
	}
	for _, d := range s.Defs {
		simplify(d)
	}
	simplify(s.Items)
	simplify(s.AdditionalProperties)
}

// decode decodes arguments strictly. The decode stage has already validated them against the schema, so errors are rare
// but possible.
func decode[In any](args json.RawMessage) (In, error) {
	var in In
	if len(bytes.TrimSpace(args)) == 0 {
		args = []byte("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return in, misfit(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return in, Errorf(InvalidParameters, "arguments: something follows the JSON object")
	}
	return in, nil
}

// misfit converts a decoding error to the terms of the caller's JSON instead of our structs.
func misfit(err error) *Error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field == "" {
			return &Error{
				Category: TypeMismatch, Message: "arguments: want a JSON object, got " + wrong.Value,
				Err: err,
			}
		}
		return &Error{Category: TypeMismatch, Message: "field " + wrong.Field + ": got " + wrong.Value +
			", which does not fit", Err: err}
	}
	return &Error{
		Category: InvalidParameters, Message: "arguments: " + strings.TrimPrefix(err.Error(), "json: "),
		Err: err,
	}
}
