// Package decode is the stage that turns what a model wrote into a call: it finds the tool, checks the arguments
// against the tool's schema and brings them into one canonical form, so that equal calls are equal bytes for the
// policy, an approval and the cache.
package decode

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/nearest"
	"github.com/zephbot/zephbot/tools"
)

// Options configures the stage. The zero value is useful.
type Options struct {
	// Hides says that the policy denies every call of a tool: such a tool is not proposed in place of an unknown one.
	// May be nil.
	Hides func(tools.Definition) bool
	// Await is asked for a tool that is not there, before the call is refused: it waits until whoever offers the tool
	// is ready, not long, and says why it cannot be had at the moment. nil from it = look again. May be nil.
	Await func(ctx context.Context, tool string) error
	// Thinking says that the model was shown the field "thinking" in addition to the tool's own (TAFC, seed 003), so
	// that it is taken out before validation. Where the schema admits no other fields than its own, it is taken out
	// without asking. May be nil.
	Thinking func(tools.Definition) bool
	// Reformat is asked once for arguments that are not JSON or do not fit the schema (invalid_parameters,
	// type_mismatch): args are what the model wrote (any text), problem is what is wrong. It returns a corrected JSON
	// object. It is called for probes too and must be safe for concurrent use. nil = off.
	Reformat Reformat
	// Memory keeps what Reformat said, so that a call that is resumed has the same arguments, and an approval the same
	// hash. nil = in this process only.
	Memory Memory
}

// Reformat corrects the form of arguments.
type Reformat func(ctx context.Context, def tools.Definition, call *tools.Call, args json.RawMessage,
	problem *tools.Error) (json.RawMessage, error)

// thinking is the field that carries a model's reasoning; it is never validated, run or logged.
const thinking = "thinking"

// New makes the stage. It sets Def and replaces Args by the canonical form: keys sorted, no insignificant space,
// numbers as they were written.
//
// Arguments that are not JSON are mended where there is only one reading (see mend); then, and when they do not fit the
// schema, Options.Reformat is asked once. What comes of it is checked like any arguments and walks the rest of the
// chain: policy, judge and approval see the corrected call.
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
		written = call.Args // canonical by now, and free of thinking
	}
	return d.reformat(ctx, call, written, problem)
}

// read checks arguments and puts their canonical form into the call.
func (d *decoder) read(ctx context.Context, call *tools.Call, written json.RawMessage) *tools.Error {
	checked := d.schemas.of(call.Def)
	args, failed := parse(written)
	if failed != nil {
		return failed
	}
	if d.strips(call.Def, checked, args) {
		delete(args, thinking)
	}
	// before validation: the audit line of a refused call is canonical too, and free of thinking
	call.Args = encode(args)
	args, failed = checked.validate(ctx, args)
	if failed != nil {
		return failed
	}
	call.Args = encode(args)
	return nil
}

// try reads corrected arguments; the call stays as it was when they are no better.
func (d *decoder) try(ctx context.Context, call *tools.Call, corrected json.RawMessage) bool {
	before := call.Args
	if d.read(ctx, call, corrected) != nil {
		call.Args = before
		return false
	}
	return true
}

// lookup finds the tool that is called, also one that the turn takes away: the gate refuses that with the reason, and
// the audit has its arguments.
func (d *decoder) lookup(call *tools.Call) (tools.Tool, bool) {
	if t, ok := call.Tools.Added(call.Tool); ok {
		return t, true
	}
	return d.tools.Lookup(call.Tool)
}

// resolve finds the tool, and refuses one that is not what the model was offered.
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

// near lists the tools that an unknown name may have meant: its alias, the tool of any server with this bare name, the
// nearest spelling. What this conversation may not use is not mentioned.
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

// strips reports whether "thinking" is our field and not the tool's.
func (d *decoder) strips(def tools.Definition, s *argSchema, args map[string]any) bool {
	if _, ok := args[thinking]; !ok || s.declares(thinking) {
		return false
	}
	return s.closed() || (d.options.Thinking != nil && d.options.Thinking(def))
}

// encode writes the canonical form.
func encode(args map[string]any) json.RawMessage {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(args); err != nil {
		return json.RawMessage("{}") // unreachable: the tree comes from our own parser
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n"))
}

// shorten bounds what a model wrote before it goes into a message.
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
