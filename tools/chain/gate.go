package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/grant"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// Policy decides requests; *policy.Set implements it. It is pure and safe for concurrent use. It is one interface, so that
// whoever wraps a policy cannot lose one of its checks without noticing.
type Policy interface {
	Decide(policy.Request) policy.Decision
	// Follows reports whether a call for the address asked, which is at before, may follow a redirect to another one.
	Follows(r policy.Request, asked, before, to policy.Address) bool
	// Offers returns what a standing approval would store.
	Offers(policy.Request) []policy.Offer
	// Confirms reports whether the operator wants a person to approve a call before anything of it runs.
	Confirms(policy.Request) bool
	// Named returns which files determine what a call does.
	Named(policy.Request) []command.FileName
}

// GateOptions configures the stage.
type GateOptions struct {
	// Policy makes the decisions. Nil refuses everything.
	Policy Policy
	// Request returns what the service knows in addition to the call: Env, Trust, Confined, Bared, Dir, InsidePaths,
	// Suspicious, Grants, Server. The gate adds the rest from the call, whose Def and Subject are already set. Nil =
	// nothing is known. An error refuses the call.
	Request func(ctx context.Context, call *tools.Call) (policy.Request, error)
	// Redact hides credentials in what people are shown of files; nil = nothing is hidden.
	Redact func(text string) string
}

// NewGate returns the stage that asks the policy. It lets the tool describe the call, and enforces the decision.
func NewGate(list tools.Set, o GateOptions) tools.Middleware {
	g := &gate{tools: list, options: o}
	return func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			if err := g.decideCall(ctx, call); err != nil {
				return nil, err
			}
			return next(ctx, call)
		}
	}
}

type gate struct {
	tools   tools.Set
	options GateOptions
}

// decideCall sets Subject and Trail. nil means that the call goes on to the approve stage, not that it may run.
func (g *gate) decideCall(ctx context.Context, call *tools.Call) error {
	if call.Tools.Takes(call.Def.Name) {
		return refuseHidden(call)
	}
	if g.options.Policy == nil {
		call.Trail.Effect, call.Trail.Rule = string(policy.Deny), "no policy"
		return refuseDenied()
	}
	subject, err := g.describeCall(ctx, call)
	if err != nil {
		return err
	}
	call.Subject = subject
	request, err := g.policyRequest(ctx, call)
	if err != nil {
		return err
	}
	call.Subject.Dir = request.Dir
	g.bindFiles(ctx, call, &request)
	request.Addresses = takeAddresses(call)
	d := g.options.Policy.Decide(request)
	if d.Effect != policy.Allow && call.Addresses != nil {
		call.Addresses.Leave()
	}
	if err := g.checkPossible(ctx, call, d.Effect); err != nil {
		return err
	}
	if d.Watched {
		call.Follow = g.followRedirects(call, request)
	}
	call.Trail.Rule = d.Rule
	call.Trail.Reason = d.Reason
	call.Trail.Suspicious = request.Suspicious
	call.Trail.Changed, call.Trail.Whole, call.Trail.Granted = d.Changed, d.Whole, d.Granted
	call.Trail.Server = request.Server
	if d.Effect == policy.Ask || d.Reading {
		call.Trail.Offers = g.options.Policy.Offers(request)
		call.Trail.Explicit = g.options.Policy.Confirms(request)
	}
	switch d.Effect {
	case policy.Allow, policy.Ask:
		call.Trail.Effect = string(d.Effect)
		call.Trail.Bared = d.Effect == policy.Allow && request.Bared
		call.Trail.Reading = d.Effect == policy.Allow && d.Reading
		return nil
	default: // an unknown effect is a denial too
		call.Trail.Effect = string(policy.Deny)
		return refuseDenied()
	}
}

// refuseHidden refuses a tool that the turn has taken away.
func refuseHidden(call *tools.Call) *tools.Error {
	why := call.Tools.Why(call.Def.Name)
	call.Trail.Effect, call.Trail.Rule, call.Trail.Reason = string(policy.Deny), "hidden in this chat", why
	switch why.Code {
	case reason.ToolHidden:
		return tools.Refused(why, "Use one of the tools you were offered.")
	case reason.ToolNotOfPersona:
		call.Trail.Rule = "not a tool of the persona"
	default:
		call.Trail.Rule = "not a tool of the sub-agent"
	}
	return tools.Refused(why, "Use one of the tools you were offered, or say in your answer what you could not do.")
}

// checkPossible refuses calls that the policy permits but that cannot run.
//
// A tool that the model was not shown, for whatever reason (tools.dependencies, a filter, the tool came later), cannot
// be called: an injected text may know its name. The journal of a session records what was shown. In addition, nobody
// is asked about a call that its tool will refuse, and a probe does not report it as allowed.
func (g *gate) checkPossible(ctx context.Context, call *tools.Call, effect policy.Effect) error {
	switch {
	case effect != policy.Allow && effect != policy.Ask:
		return nil
	case call.BatchN > 0 && call.Definition == "":
		call.Trail.Effect, call.Trail.Rule = string(policy.Deny), "not offered"
		call.Trail.Reason = reason.New(reason.ToolNotOffered, call.Def.Name)
		return tools.Refused(call.Trail.Reason, "Use one of the tools you were offered; others may be offered later.")
	case effect == policy.Allow && !call.Probe:
		return nil // the tool refuses it itself in a moment
	}
	tool, ok := call.Tools.Over(g.tools).Lookup(call.Def.Name)
	if !ok {
		return nil // a tool that is gone is refused when it would run
	}
	err := tool.SafeCheck(ctx, call)
	if err == nil {
		if tool.Deed != nil {
			call.Subject.Deed = func() *tools.Effect { return g.previewEffect(ctx, call, &tool) }
		}
		if tool.State != nil {
			call.Subject.State = func() ([]tools.FileState, error) { return tool.SafeState(ctx, call) }
		}
		return nil
	}
	e := tools.AsError(err)
	call.Trail.Effect, call.Trail.Rule, call.Trail.Reason = string(policy.Deny), "not possible", e.Why()
	return e
}

// previewEffect returns what a call that asks would do to files, for its card. Where that cannot be found out, people
// are asked about the text of the call.
func (g *gate) previewEffect(ctx context.Context, call *tools.Call, tool *tools.Tool) *tools.Effect {
	deed, err := tool.SafeDeed(ctx, call)
	if err != nil || deed == nil {
		return nil
	}
	if g.options.Redact != nil {
		deed.Diff = concealKept(deed.Diff, g.options.Redact)
	}
	return deed
}

// concealKept hides credentials in what a file contains already. What the call adds is shown as it is, because that is
// what people decide about. "" = it cannot be told apart.
func concealKept(diff string, redact func(string) string) string {
	lines, safe := strings.Split(diff, "\n"), strings.Split(redact(diff), "\n")
	if len(lines) != len(safe) {
		return ""
	}
	for i, line := range lines {
		if strings.HasPrefix(line, "+") {
			safe[i] = line
		}
	}
	return strings.Join(safe, "\n")
}

// bindFiles records the state of the files that determine what the call does, and has it checked
// again just before the call runs.
func (g *gate) bindFiles(ctx context.Context, call *tools.Call, request *policy.Request) {
	if request.Dir == "" {
		return
	}
	names := g.options.Policy.Named(*request)
	if len(names) == 0 {
		return
	}
	request.Scripts = readFileStates(ctx, request.Dir, names)
	decided, dir := request.Scripts, request.Dir
	call.Subject.Scripts = decided
	call.Unchanged = func(ctx context.Context) []string {
		return grant.ChangedFiles(decided, readFileStates(ctx, dir, names))
	}
}

// refuseDenied returns the only message that the model gets. The rule, pattern and path would tell it, or those who
// control it, how to evade them.
func refuseDenied() *tools.Error {
	return &tools.Error{
		Category: tools.PolicyBlocked, Reason: reason.New(reason.PolicyDenies),
		Message: "This call is denied by policy.",
		Suggestion: "Do not try the same thing in another form. Find another way, or tell the user what you " +
			"could not do.",
	}
}

// describeCall asks the tool what the policy has to check. A tool without a description is judged by its arguments.
func (g *gate) describeCall(ctx context.Context, call *tools.Call) (tools.Subject, error) {
	tool, ok := call.Tools.Over(g.tools).Lookup(call.Def.Name)
	if !ok {
		return tools.Subject{}, tools.Errorf(tools.PermanentFailure, "The tool %s is no longer available.",
			call.Def.Name)
	}
	if tool.Describe == nil {
		return tools.Subject{Inputs: []string{string(call.Args)}, Show: indentArgs(call.Args)}, nil
	}
	subject, err := tool.SafeDescribe(ctx, call)
	if err != nil {
		return tools.Subject{}, tools.AsError(err)
	}
	if subject.Show == "" {
		subject.Show = indentArgs(call.Args)
	}
	return subject, nil
}

func (g *gate) policyRequest(ctx context.Context, call *tools.Call) (policy.Request, error) {
	var r policy.Request
	if g.options.Request != nil {
		var err error
		if r, err = g.options.Request(ctx, call); err != nil {
			if ctx.Err() != nil {
				return r, tools.AsError(ctx.Err())
			}
			if e, ok := errors.AsType[*tools.Error](err); ok {
				return r, e
			}
			return r, &tools.Error{
				Category: tools.ServerError,
				Message:  "The permissions for this call could not be read.",
				Err:      fmt.Errorf("read permissions: %w", err),
			}
		}
	}
	args, err := decodeObject(call.Args)
	if err != nil {
		return r, &tools.Error{
			Category: tools.InvalidParameters, Message: "The arguments are not a JSON object.",
			Err: err,
		}
	}
	r.Caller, r.Chat = call.Origin.Caller, call.Origin.Chat
	r.Tool, r.Args = call.Def.Name, args
	r.Inputs, r.Paths, r.Files = call.Subject.Inputs, call.Subject.Paths, call.Subject.Files
	r.ReadOnly, r.Costly = call.Def.ReadOnly, call.Subject.Costly
	// not the statement that the rules have for the name: this is the tool that runs
	if r.Says = call.Def.Says; r.Says == nil || call.Def.Server != "" {
		r.Says = &act.Statement{}
	}
	if r.Suspicious == "" {
		r.Suspicious = call.Suspicious
	}
	if !call.Subject.Own {
		r.Foreign = call.Foreign
	}
	r.Touched, r.Reads = call.Touched, call.Def.Reads
	r.Session = call.Origin.Session
	r.TrustedServer = call.Def.Server != "" && call.Def.Trusted
	if call.Def.Server != "" {
		r.Definition = call.Def.Hash()
	}
	return r, nil
}

func decodeObject(args json.RawMessage) (map[string]any, error) {
	m := map[string]any{}
	if len(args) == 0 {
		return m, nil
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("decode arguments: %w", err)
	}
	return m, nil
}

func indentArgs(args json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, args, "", "  "); err != nil {
		return string(args)
	}
	return b.String()
}
