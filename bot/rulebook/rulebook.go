// Package rulebook applies the rules to what the service knows: which standing approvals apply to a call, where it may
// work, and whether a server is still the one that was approved. It also answers /policy.
package rulebook

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
	"github.com/zephbot/zephbot/tools/workspace"
)

// Store is what a Book reads and changes (bot.Store).
type Store interface {
	bot.Writer
	bot.Facts
	Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error)
}

// Servers knows the MCP servers (mcp.Manager).
type Servers interface {
	// Address distinguishes a server from another one of the same name; "" if there is none.
	Address(id string) string
	// Tools lists the tools of a connected server.
	Tools(id string) []tools.Definition
}

// Runner runs the commands (shell.Runner).
type Runner interface {
	// Bars reports whether all files that a command in a directory must not read can be hidden from it.
	Bars(ctx context.Context, dir string) (list []string, complete bool)
}

// Deps are the dependencies of a Book. All but Store and Judged are required.
type Deps struct {
	Policy   *policy.Set
	Off      bool          // tools.enabled is false: every call is refused
	Judged   bool          // a model also judges calls
	Confined bool          // the kernel restricts what a command can access
	Reading  bool          // the kernel can keep a command from changing anything (sandbox.Level.Reading)
	Sandbox  reason.Reason // what the kernel enforces, for people
	Commands workspace.Places
	Files    workspace.Places
	Runner   Runner
	Tools    tools.Set
	Servers  Servers
	Store    Store           // nil = nothing is stored: there are no standing approvals
	Env      func() []string // names of the process's variables
	// Problem reports what is wrong with the name of a tool, as far as the configuration knows; sure means that it
	// cannot be right.
	Problem func(tool string) (problem reason.Reason, sure bool)
	// Trust returns how far the source of a call is trusted; nil = completely.
	Trust func(call *tools.Call) policy.Trust
	// Level is the autonomy level of a call where its conversation has a stricter one than the rules; nil = never.
	Level func(call *tools.Call) policy.Level
	Now   func() time.Time
	Log   zerolog.Logger
}

// Book applies the rules. It is safe for concurrent use and starts no goroutines.
type Book struct{ deps Deps }

// New returns a Book.
func New(deps Deps) *Book { return &Book{deps: deps} }

// Request adds to a call what the policy needs to know about the service (gate.Options.Request).
func (b *Book) Request(ctx context.Context, call *tools.Call) (policy.Request, error) {
	d := &b.deps
	r := policy.Request{Trust: policy.Trusted, Confined: d.Reading && !call.Def.Outside, Outside: call.Def.Outside}
	if d.Level != nil {
		r.Level = d.Level(call)
	}
	if d.Off {
		return r, tools.Refused(
			reason.New(reason.ToolsOff), "Answer without tools; the operator can set tools.enabled.",
		)
	}
	places := d.Files
	if call.Def.Runs() {
		places = d.Commands
	}
	roots, err := places.Roots(call.Origin)
	if err != nil {
		return r, err
	}
	if d.Store != nil {
		if r.Grants, err = approval.Grants(
			ctx, d.Store, call.Origin.Chat, bot.SessionKey(call.Origin.Session), call.ID, d.Now(),
		); err != nil {
			return r, err
		}
	}
	if call.Def.Server != "" {
		r.Server = d.Servers.Address(call.Def.Server)
	}
	if d.Trust != nil {
		r.Trust = d.Trust(call)
	}
	r.InsidePaths = roots
	r.Dir = sandbox.Canonical(roots[0])
	if limits := d.Policy.ReadLimits(); call.Def.Runs() &&
		d.Confined && !call.Def.Outside && limits.Any && !limits.Wide {
		_, r.Bared = d.Runner.Bars(ctx, r.Dir)
	}
	r.Env = d.Env()
	return r, nil
}

// Covers reports whether grants would have answered an earlier question under the current rules.
func (b *Book) Covers(a *bot.Approval, q *tools.Question, grants []policy.Grant) bool {
	r := policy.Request{
		Caller: a.Caller, Chat: a.Place.ChatKey(), Session: string(a.Session),
		Tool: q.Tool, Inputs: q.Inputs, Dir: q.Dir, Scripts: q.Files, ReadOnly: q.ReadOnly,
		Trust: policy.Trusted, Confined: b.deps.Reading, Server: q.Server, Definition: q.Definition,
	}
	if q.Dir != "" {
		r.InsidePaths = append([]string{q.Dir}, b.deps.Commands.Dirs()...)
	}
	if json.Unmarshal([]byte(q.Args), &r.Args) != nil {
		return false
	}
	// one that reads asks if that was too little
	if d := b.deps.Policy.Decide(r); d.Effect != policy.Ask && !d.Reading {
		return false
	}
	r.Grants = grants
	d := b.deps.Policy.Decide(r)
	return d.Effect == policy.Allow && !d.Reading
}

// Personal reports whether grants of a group count only in the workspace of the person who asked, because each has one.
func (b *Book) Personal(a *bot.Approval, q *tools.Question, grants []policy.Grant) bool {
	shared := slices.Concat(b.deps.Commands.Dirs(), b.deps.Files.Dirs())
	if !a.Place.Group || a.Session.Person() == "" || q.Dir == "" || slices.Contains(shared, q.Dir) {
		return false
	}
	return slices.ContainsFunc(grants, func(g policy.Grant) bool {
		where := g.Dir
		if where == "" {
			where = g.Input
		}
		return pathrule.Inside(q.Dir, where)
	})
}

// Alive reports whether the server of a grant is still the one for which it was stored, and describes the tool in the
// same way. A server that is temporarily away counts as the same.
func (b *Book) Alive(g policy.Grant) bool {
	id, _, _ := strings.Cut(g.Tool, ":")
	if b.deps.Servers.Address(id) != g.Server {
		return false
	}
	tool, ok := b.deps.Tools.Lookup(g.Tool)
	return !ok || tool.Definition.Hash() == g.Definition
}

// EndServer ends the standing approvals for the tools of a server that was removed.
func (b *Book) EndServer(ctx context.Context, server string) error {
	facts, err := approval.EndServer(ctx, b.deps.Store, server, b.deps.Now())
	if err != nil || len(facts) == 0 {
		return err
	}
	_, err = b.deps.Store.Apply(ctx, &bot.Change{Facts: facts})
	return err
}

// Line is the audit line of a standing approval that was stored or revoked; due turns it into facts.
func (b *Book) Line(e approval.RuleEvent, due func(call *tools.Call, err error) []bot.Fact) []bot.Fact {
	about := map[string]any{
		"rule": e.Grant.Grant, "chat": e.Chat, "stored_by": e.Grant.By, "stored_at": e.Grant.At,
	}
	if e.Grant.Most > 0 {
		about["most"] = e.Grant.Most
	}
	args, err := json.Marshal(about)
	if err != nil {
		b.deps.Log.Error().Err(err).Msg("standing approval not recorded")
		return nil
	}
	return due(&tools.Call{
		ID: e.ID, Tool: "policy_" + e.Verb, Args: args,
		Trail: &tools.Trail{ApprovedBy: e.By, Rule: "grant: " + e.Grant.Tool},
		Origin: tools.Origin{
			Channel: e.Place.Channel,
			Session: string(e.Session),
			Chat:    e.Place.ChatKey(),
			Caller:  e.By,
		},
	}, nil)
}

// Unreadable returns what commands in a directory must not read; false if nothing restricts reading. env returns the
// names of the process's variables.
func Unreadable(rules *policy.Set, env func() []string) func(dir string) (shell.Unreadable, bool) {
	return func(dir string) (shell.Unreadable, bool) {
		limits := rules.ReadLimits()
		if !limits.Any {
			return shell.Unreadable{}, false
		}
		r := &policy.Request{Dir: dir, Trust: policy.Trusted, Env: env()}
		return shell.Unreadable{Places: limits.Places, Denied: func(path string, isDir bool) bool {
			// A directory is hidden as a whole only if nothing below it can be an exception.
			return rules.DeniesRead(r, path) && !(isDir && (path == dir || rules.ExceptionBelow(path)))
		}}, true
	}
}

// ErrMistaken marks errors about the question, to be shown to the person who asked it.
var ErrMistaken = errors.New("the question is wrong")

// mistake is an ErrMistaken whose text says only what is wrong.
type mistake struct{ error }

// Unwrap makes it an ErrMistaken.
func (m mistake) Unwrap() []error { return []error{ErrMistaken, m.error} }

func newMistake(why reason.Reason) error { return mistake{&reason.Error{Reason: why}} }
