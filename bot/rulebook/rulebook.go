// Package rulebook applies the rules to what the service knows: which standing approvals hold for a call, where it may
// work, whether a server is still the one that somebody trusted; and it answers /policy.
package rulebook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/place"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// Store is what a Book reads and changes (bot.Store).
type Store interface {
	bot.Writer
	bot.Facts
	Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error)
}

// Servers knows the MCP servers (mcp.Manager).
type Servers interface {
	// Address tells a server from another one of the same name; "" when there is none.
	Address(id string) string
	// Tools lists the tools of a server that is connected.
	Tools(id string) []tools.Definition
}

// Runner runs the commands (shell.Runner).
type Runner interface {
	// Bars says whether all files that a command in a directory must not read can be hidden from it.
	Bars(ctx context.Context, dir string) (list []string, complete bool)
}

// Deps are what a Book works with. All are needed but Store and Judged.
type Deps struct {
	Policy   *policy.Set
	Off      bool   // tools.enabled is false: every call is refused
	Judged   bool   // a model judges calls too
	Confined bool   // the kernel bounds what a command may reach
	Sandbox  string // what the kernel enforces, for people
	Commands place.Set
	Files    place.Set
	Runner   Runner
	Tools    tools.Set
	Servers  Servers
	Store    Store           // nil = nothing is stored: there are no standing approvals
	Env      func() []string // names of the process's variables
	// Problem says what is wrong with the name of a tool as far as the configuration knows; sure when it cannot be right.
	Problem func(tool string) (problem string, sure bool)
	Now     func() time.Time
	Log     zerolog.Logger
}

// Book applies the rules. Safe for concurrent use; it starts no goroutines.
type Book struct{ deps Deps }

// New makes a Book.
func New(deps Deps) *Book { return &Book{deps: deps} }

// Request adds to a call what the policy has to know of the service (gate.Options.Request).
func (b *Book) Request(ctx context.Context, call *tools.Call) (policy.Request, error) {
	d := &b.deps
	r := policy.Request{Trust: policy.Trusted, Confined: d.Confined}
	if d.Off {
		return r, &tools.Error{
			Category: tools.PolicyBlocked, Denied: true, Message: "Tools are switched off here.",
			Suggestion: "Answer without tools; the operator can set tools.enabled.",
		}
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
		if r.Grants, err = approval.Grants(ctx, d.Store, call.Origin.Chat, bot.SessionKey(call.Origin.Session), d.Now()); err != nil {
			return r, err
		}
	}
	if call.Def.Server != "" {
		r.Server = d.Servers.Address(call.Def.Server)
	}
	r.InsidePaths = roots
	r.Dir = sandbox.Canonical(roots[0])
	if limits := d.Policy.ReadLimits(); call.Def.Runs() && r.Confined && limits.Any && !limits.Wide {
		_, r.Bared = d.Runner.Bars(ctx, r.Dir)
	}
	r.Env = d.Env()
	return r, nil
}

// Covers says whether grants would have answered a question that was asked before, by the rules of today.
func (b *Book) Covers(a *bot.Approval, q *tools.Question, grants []policy.Grant) bool {
	r := policy.Request{
		Caller: a.Caller, Chat: a.Place.ChatKey(), Session: string(a.Session), Tool: q.Tool, Inputs: q.Inputs, Dir: q.Dir, Scripts: q.Files, ReadOnly: q.ReadOnly,
		Trust: policy.Trusted, Confined: b.deps.Confined, Server: q.Server, Definition: q.Definition,
	}
	if q.Dir != "" {
		r.InsidePaths = append([]string{q.Dir}, b.deps.Commands.Dirs()...)
	}
	if json.Unmarshal([]byte(q.Args), &r.Args) != nil || b.deps.Policy.Decide(r).Effect != policy.Ask {
		return false
	}
	r.Grants = grants
	return b.deps.Policy.Decide(r).Effect == policy.Allow
}

// Alive says whether the server of a grant is the one that it was stored for, and says the same about the tool. A
// server that is away for the moment is not another one.
func (b *Book) Alive(g policy.Grant) bool {
	id, _, _ := strings.Cut(g.Tool, ":")
	if b.deps.Servers.Address(id) != g.Server {
		return false
	}
	tool, ok := b.deps.Tools.Lookup(g.Tool)
	return !ok || tool.Definition.Hash() == g.Definition
}

// EndServer ends the standing approvals for the tools of a server that is no more.
func (b *Book) EndServer(ctx context.Context, server string) error {
	facts, err := approval.EndServer(ctx, b.deps.Store, server, b.deps.Now())
	if err != nil || len(facts) == 0 {
		return err
	}
	_, err = b.deps.Store.Apply(ctx, &bot.Change{Facts: facts})
	return err
}

// Line is what the audit says of a standing approval that was stored or revoked, made into facts by due.
func (b *Book) Line(e approval.RuleEvent, due func(call *tools.Call, err error) []bot.Fact) []bot.Fact {
	args, err := json.Marshal(map[string]any{"rule": e.Grant.Grant, "chat": e.Chat, "stored_by": e.Grant.By, "stored_at": e.Grant.At})
	if err != nil {
		b.deps.Log.Error().Err(err).Msg("standing approval not recorded")
		return nil
	}
	return due(&tools.Call{
		ID: e.ID, Tool: "policy_" + e.Verb, Args: args, Trail: &tools.Trail{ApprovedBy: e.By, Rule: "grant: " + e.Grant.Tool},
		Origin: tools.Origin{Channel: e.Place.Channel, Session: string(e.Session), Chat: e.Place.ChatKey(), Caller: e.By},
	}, nil)
}

// Unreadable says what commands in a directory may not read; false when nothing restricts reading. env gives the names
// of the process's variables.
func Unreadable(rules *policy.Set, env func() []string) func(dir string) (shell.Unreadable, bool) {
	return func(dir string) (shell.Unreadable, bool) {
		limits := rules.ReadLimits()
		if !limits.Any {
			return shell.Unreadable{}, false
		}
		r := &policy.Request{Dir: dir, Trust: policy.Trusted, Env: env()}
		return shell.Unreadable{Places: limits.Places, Denied: func(path string, isDir bool) bool {
			// A directory is closed as a whole only where nothing below it may be an exception.
			return !(isDir && (limits.Exceptions || path == dir)) && rules.DeniesRead(r, path)
		}}, true
	}
}

// ErrMistaken marks errors about what was asked, for the one who asked it.
var ErrMistaken = errors.New("the question is wrong")

// mistake is an ErrMistaken that says only what is wrong.
type mistake struct{ error }

// Unwrap makes it an ErrMistaken.
func (m mistake) Unwrap() []error { return []error{ErrMistaken, m.error} }

func mistakenf(format string, args ...any) error { return mistake{fmt.Errorf(format, args...)} }
