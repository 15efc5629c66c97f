package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/access"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/cmd/internal/check"
	"github.com/zephbot/zephbot/cmd/internal/replay"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
)

// Rules applies the rules of a configuration to calls and runs nothing: for `policy replay` and `policy test`. It needs
// neither database nor model, and writes nothing into data_dir. It implements replay.Decider, for one goroutine at a
// time. The caller must close it.
type Rules struct {
	core   *Core
	guard  *access.Guard
	home   string // a directory for what the tools open; removed by Close
	allows map[access.Role][]string
}

// OpenRules builds the rules and the tools.
func OpenRules(opts Options) (*Rules, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if err := Ready(opts, check.Use{Terminal: true}); err != nil {
		return nil, err
	}
	home, err := temporary("rules")
	if err != nil {
		return nil, err
	}
	opts.Home, opts.workspaces = home, recordedWorkspaces(opts)
	r := &Rules{core: newCore(opts), home: home}
	r.core.passing = true
	if err := r.open(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Rules) open() error {
	c := r.core
	err := c.openRules()
	if err != nil {
		return err
	}
	if c.kit, err = c.tools(); err != nil {
		return err
	}
	c.registry = c.kit.registry
	if err := c.openChain(context.Background()); err != nil {
		return err
	}
	r.guard = access.New(accessOptions(c, ""), nil, texts.Words{}, c.now) // only asked what is configured
	r.allows = c.roleTools()
	return nil
}

// recordedWorkspaces returns where the conversations of a service worked. Nothing is created.
func recordedWorkspaces(opts Options) func(tools.Origin) (string, error) {
	root := filepath.Join(opts.Config.Path(opts.Config.DataDir), "workspaces")
	if dir := opts.Config.Workspaces.Dir; dir != "" {
		root = opts.Config.Path(dir)
	}
	return func(o tools.Origin) (string, error) {
		if o.Channel == terminal.Name {
			return opts.WorkDir, nil
		}
		return filepath.Join(root, bot.WorkspaceID(o.Session)), nil
	}
}

// Close releases what OpenRules opened.
func (r *Rules) Close() error {
	return errors.Join(r.core.Close(), os.RemoveAll(r.home))
}

// Decide implements replay.Decider.
func (r *Rules) Decide(c replay.Call) (replay.Decision, error) {
	call := r.call(c)
	if !r.allowed(call) {
		return replay.Decision{Effect: string(policy.Deny), Rule: "hidden in this chat"}, nil
	}
	tool, known := r.core.registry.Lookup(call.Tool)
	if !known {
		return r.unregistered(call)
	}
	call.Def = tool.Definition
	decided := &capture{Set: r.core.policy}
	stage := chain.NewGate(r.core.registry, chain.GateOptions{
		Policy:  decided,
		Request: r.core.book.Request,
	})
	_, err := stage(func(context.Context, *tools.Call) (*tools.Result, error) {
		return &tools.Result{}, nil
	})(context.Background(), call)
	switch {
	case decided.decision != nil:
		return found(*decided.decision), nil
	case err != nil: // the tool itself refuses it, such as a path that is not allowed
		return replay.Decision{
			Effect: string(policy.Deny),
			Rule:   "not possible",
			Reason: tools.AsError(err).Why().String(),
		}, nil
	}
	return replay.Decision{Effect: call.Trail.Effect, Rule: call.Trail.Rule, Reason: call.Trail.Reason.String()}, nil
}

func found(d policy.Decision) replay.Decision {
	return replay.Decision{Effect: string(d.Effect), Rule: d.Rule, Reason: d.Reason.String()}
}

// capture keeps the decision of the rules. What is checked after it depends on the disk of today, and so does what the
// files contain that a call names.
type capture struct {
	*policy.Set
	decision *policy.Decision
}

// Decide implements chain.Policy.
func (c *capture) Decide(r policy.Request) policy.Decision {
	d := c.Set.Decide(r)
	c.decision = &d
	return d
}

// Named implements chain.Policy.
func (*capture) Named(policy.Request) []command.FileName { return nil }

// flagged is the source of flagged content of a recorded call, which its line does not name.
const flagged = "an earlier result"

func (r *Rules) call(c replay.Call) *tools.Call {
	caller, agent, _ := strings.Cut(c.Caller, "/")
	session := bot.SessionKey(c.Session)
	o := tools.Origin{
		Channel: cmp.Or(c.Channel, terminal.Name),
		Session: c.Session,
		Chat:    session.ChatKey(),
		Caller:  caller,
		Agent:   agent,
		Admin:   r.role(caller) == access.Admin || c.Channel == terminal.Name,
	}
	call := &tools.Call{
		ID:     "replay",
		Tool:   r.core.policy.Canonical(c.Tool),
		Args:   c.Args,
		Origin: o,
		Trail:  &tools.Trail{},
	}
	if len(bytes.TrimSpace(call.Args)) == 0 {
		call.Args = json.RawMessage("{}")
	}
	if c.Flagged {
		call.Suspicious = flagged
	}
	return call
}

// allowed applies the allow-lists of the channel, the chat and the role.
func (r *Rules) allowed(call *tools.Call) bool {
	if call.Origin.Channel != telegram.Name {
		return true
	}
	place, ok := bot.SessionKey(call.Origin.Session).Place()
	if ok {
		if rules := r.guard.Rules(place); rules.Allowed != nil && !rules.Allowed(call.Tool) {
			return false
		}
	}
	list := r.allows[r.role(call.Origin.Caller)]
	return len(list) == 0 || slices.Contains(list, call.Tool)
}

// role returns the role of a person according to the configuration. What was given in the chat is not known.
func (r *Rules) role(caller string) access.Role {
	id, ok := strings.CutPrefix(caller, telegram.Name+":")
	t := r.core.cfg.Telegram
	switch {
	case !ok:
		return access.User
	case slices.Contains(ids(t.Admins), id):
		return access.Admin
	case slices.Contains(ids(t.Approvers), id):
		return access.Approver
	}
	return access.User
}

// unregistered decides about a tool that is not here: of a server, which is not asked, or of an earlier version.
func (r *Rules) unregistered(call *tools.Call) (replay.Decision, error) {
	var args map[string]any
	d := json.NewDecoder(bytes.NewReader(call.Args))
	d.UseNumber()
	if err := d.Decode(&args); err != nil {
		return replay.Decision{}, fmt.Errorf("the arguments are not a JSON object: %w", err)
	}
	server, _, of := strings.Cut(call.Tool, ":")
	if !of {
		if problem, sure := r.core.cfg.ToolProblem(call.Tool, false); problem.Known() && sure {
			return replay.Decision{}, errors.New(problem.String())
		}
	}
	call.Def.Name, call.Def.Server = call.Tool, server
	request, err := r.core.book.Request(context.Background(), call)
	if err != nil {
		e := tools.AsError(err)
		return replay.Decision{Effect: string(policy.Deny), Rule: "not possible", Reason: e.Message}, nil
	}
	request.Caller, request.Chat, request.Session = call.Origin.Caller, call.Origin.Chat, call.Origin.Session
	request.Tool, request.Args, request.Inputs, request.Suspicious = call.Tool, args, []string{
		string(call.Args),
	}, call.Suspicious
	if of {
		request.Says = &act.Statement{}
		for _, s := range r.core.cfg.MCP.Servers {
			request.TrustedServer = request.TrustedServer || s.ID == server && s.TrustLevel == "trusted"
		}
	}
	return found(r.core.policy.Decide(request)), nil
}

// ExampleCall makes the call of an example: in a group, in the private chat of its caller, or at the terminal.
func ExampleCall(e *replay.Example, args json.RawMessage) replay.Call {
	c := replay.Call{Tool: e.Tool, Args: args, Caller: e.Caller, Flagged: e.Flagged}
	if e.Mode == replay.Chat {
		c.Channel, c.Caller, c.Session = terminal.Name, cmp.Or(c.Caller, terminal.Name+":local"), terminal.Name+"/local"
		return c
	}
	c.Caller = cmp.Or(c.Caller, telegram.Name+":1")
	person, _, _ := strings.Cut(strings.TrimPrefix(c.Caller, telegram.Name+":"), "/")
	place := telegram.Private("0", person)
	if e.Chat != "" {
		place.Chat = e.Chat
	}
	c.Channel, c.Session = telegram.Name, place.SessionKey(person).String()
	return c
}
