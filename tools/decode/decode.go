// Package decode is the stage that converts what a model wrote into a call. It finds the tool, validates the arguments
// against the tool's schema and converts them to a canonical form, so that equal calls are equal bytes for the policy,
// approvals and the cache.
package decode

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/nearest"
	"github.com/zephbot/zephbot/tools"
)

// Options configures the stage. The zero value is usable.
type Options struct {
	// Hides reports whether the policy denies every call of a tool. Such a tool is not suggested in place of an unknown
	// one. May be nil.
	Hides func(tools.Definition) bool
	// Await is called for a tool that does not exist, before the call is refused. It waits a limited time for the
	// provider of the tool, and returns why the tool is not available. After nil, the tool is looked up again. May be
	// nil.
	Await func(ctx context.Context, tool string) error
	// Thinking reports whether the model was shown the field "thinking" in addition to the tool's own fields (TAFC,
	// seed 003), so that it is removed before validation. If the schema admits no further fields, the field is removed
	// in any case. May be nil.
	Thinking func(tools.Definition) bool
	// Reformat is called once for arguments that are not JSON or do not fit the schema (invalid_parameters,
	// type_mismatch). args is what the model wrote, which can be any text; problem says what is wrong. It returns a
	// corrected JSON object. It is called for probes too, and must be safe for concurrent use. nil = off.
	Reformat Reformat
	// Memory stores the result of Reformat, so that a resumed call has the same arguments and its approval the same
	// hash. nil = in this process only.
	Memory Memory
}

// Reformat corrects the form of arguments.
type Reformat func(ctx context.Context, def tools.Definition, call *tools.Call, args json.RawMessage,
	problem *tools.Error) (json.RawMessage, error)

// thinking is the field with a model's reasoning. It is never validated, passed to a tool or logged.
const thinking = "thinking"

// New returns the stage. It sets Def and replaces Args by the canonical form: sorted keys, no insignificant white
// space, numbers as written.
//
// Arguments that are not JSON are repaired if there is only one interpretation (see mend). If that fails, or if they do
// not fit the schema, Options.Reformat is called once. Its result is validated like all arguments and passes the rest
// of the chain: policy, judge and approval see the corrected call.
func New(list tools.Set, o Options) tools.Middleware {
	if o.Memory == nil {
		o.Memory = &recent{}
	}
	d := &decoder{tools: list, options: o, schemas: newCache()}
	return func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			if err := d.decode(ctx, call); err != nil {
				return nil, err
			}
			return next(ctx, call)
		}
	}
}

type decoder struct {
	tools   tools.Set
	options Options
	schemas *cache
}

func (d *decoder) decode(ctx context.Context, call *tools.Call) error {
	tool, err := d.resolve(ctx, call)
	if err != nil {
		return err
	}
	call.Def = tool.Definition
	written := call.Args
	problem := d.read(ctx, call, written)
	if problem == nil {
		return nil
	}
	if !problem.Category.Reformat() {
		return problem
	}
	if text, ok := spelled(written); ok {
		if mended, ok := mend(text); ok && d.try(ctx, call, json.RawMessage(mended)) {
			return nil
		}
		written = json.RawMessage(text)
	} else {
		written = call.Args // canonical by now, and without thinking
	}
	return d.reformat(ctx, call, written, problem)
}

// read validates arguments and puts their canonical form into the call.
func (d *decoder) read(ctx context.Context, call *tools.Call, written json.RawMessage) *tools.Error {
	checked := d.schemas.of(call.Def)
	args, failed := parse(written)
	if failed != nil {
		return failed
	}
	if d.strips(call.Def, checked, args) {
		delete(args, thinking)
	}
	// before validation, so that the audit line of a refused call is canonical too and has no thinking
	call.Args = encode(args)
	args, failed = checked.validate(ctx, args)
	if failed != nil {
		return failed
	}
	call.Args = encode(args)
	return nil
}

// try validates corrected arguments. If they are no better, the call is unchanged.
func (d *decoder) try(ctx context.Context, call *tools.Call, corrected json.RawMessage) bool {
	before := call.Args
	if d.read(ctx, call, corrected) != nil {
		call.Args = before
		return false
	}
	return true
}

// lookup finds the called tool, even one that the turn has taken away: the gate refuses it with the reason, and the
// audit gets its arguments.
func (d *decoder) lookup(call *tools.Call) (tools.Tool, bool) {
	if t, ok := call.Tools.Added(call.Tool); ok {
		return t, true
	}
	return d.tools.Lookup(call.Tool)
}

// resolve finds the tool, and refuses one that differs from what the model was offered.
func (d *decoder) resolve(ctx context.Context, call *tools.Call) (tools.Tool, error) {
	tool, ok := d.lookup(call)
	if !ok && d.options.Await != nil {
		if err := d.options.Await(ctx, call.Tool); err != nil {
			return tool, err
		}
		tool, ok = d.lookup(call)
	}
	switch {
	case ok && call.Definition != "" && call.Definition != tool.Definition.Hash():
		call.Def = tool.Definition
		return tool, &tools.Error{
			Category: tools.PermanentFailure, Message: "the tool has changed since it was offered",
			Suggestion: "Look at the tool as it is offered now before you call it again.",
		}
	case ok:
		return tool, nil
	case call.Definition != "":
		return tool, tools.Errorf(tools.PermanentFailure, "the tool %s is no longer available", shorten(call.Tool))
	}
	e := tools.Errorf(tools.ToolNotFound, "there is no tool named %q", shorten(call.Tool))
	if near := d.near(call); len(near) > 0 {
		e.Suggestion = "Did you mean " + strings.Join(near, " or ") +
			"? Check the name against the list of available tools."
	}
	return tool, e
}

// near returns the tools that an unknown name may mean: its alias, the tool of any server with this bare name, or the
// most similar name. It leaves out tools that this session may not use.
func (d *decoder) near(call *tools.Call) []string {
	const most = 3
	var known, found []string
	var defs []tools.Definition
	for _, def := range call.Tools.Over(d.tools).Definitions() {
		if !d.hides(def) {
			defs, known = append(defs, def), append(known, def.Name)
		}
	}
	add := func(name string) {
		if slices.Contains(found, name) {
			return
		}
		if len(found) < most {
			found = append(found, name)
		}
	}
	spelled := strings.ToLower(strings.TrimSpace(call.Tool))
	for _, def := range defs {
		_, bare, qualified := strings.Cut(def.Name, ":")
		if def.Name == spelled || slices.Contains(def.Stated().Aliases, spelled) || (qualified && bare == call.Tool) {
			add(def.Name)
		}
	}
	if name, ok := nearest.Nearest(call.Tool, known); ok {
		add(name)
	}
	return found
}

// hides reports whether the policy denies every call of a tool.
func (d *decoder) hides(def tools.Definition) bool {
	return d.options.Hides != nil && d.options.Hides(def)
}

// strips reports whether "thinking" is our field rather than the tool's.
func (d *decoder) strips(def tools.Definition, s *argSchema, args map[string]any) bool {
	if _, ok := args[thinking]; !ok || s.declares(thinking) {
		return false
	}
	return s.closed() || (d.options.Thinking != nil && d.options.Thinking(def))
}

// encode returns the canonical form.
func encode(args map[string]any) json.RawMessage {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(args); err != nil {
		return json.RawMessage("{}") // unreachable: the tree comes from our own parser
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n"))
}

// shorten limits what a model wrote before it goes into a message.
func shorten(s string) string {
	const most = 100
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
