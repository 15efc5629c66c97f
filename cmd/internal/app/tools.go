package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot/rulebook"
	"github.com/zephbot/zephbot/cmd/internal/check"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/tools/chain"

	"github.com/google/uuid"

	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
	"github.com/zephbot/zephbot/tools/audit"
	"github.com/zephbot/zephbot/tools/mcp"
)

// Bench provides the tools and rules without a model, a channel or a database: for `tools` and `policy` on the command
// line. They work in the process's own directory. The caller must close it.
type Bench struct {
	core *Core
	stop func() // ends the MCP client; nil if it does not run
	home string // a directory that Close removes; "" = none
}

// OpenBench builds rules, tools and an audit log of its own in the terminal's directory.
func OpenBench(opts Options) (*Bench, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if err := Ready(opts, check.Use{Terminal: true}); err != nil {
		return nil, err
	}
	opts.Home = opts.Layout().Terminal()
	b := &Bench{core: newCore(opts)}
	b.core.passing = true
	if err := b.open(context.Background()); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// temporary makes a directory for what is gone afterwards.
func temporary(purpose string) (string, error) {
	dir, err := os.MkdirTemp("", "zephbot-"+purpose+"-")
	if err != nil {
		return "", fmt.Errorf(
			"make a temporary directory: %w; let this account write in %s, or set TMPDIR to another directory",
			err, os.TempDir(),
		)
	}
	return dir, nil
}

// OpenTrial builds what a start builds in a temporary directory: to see whether that is possible, or what tools
// and servers there are. It writes no log. A running service does not notice it. With an error, the Bench may be
// there all the same, to be closed.
func OpenTrial(ctx context.Context, opts Options) (*Bench, error) {
	home, err := temporary("trial")
	if err != nil {
		return nil, err
	}
	cfg := *opts.Config
	cfg.Audit.Enabled = false
	if opts.Now == nil {
		opts.Now = time.Now
	}
	opts.Config, opts.Home, opts.Log = &cfg, home, zerolog.Nop()
	b := &Bench{core: newCore(opts), home: home}
	b.core.passing = true
	return b, b.open(ctx)
}

func (b *Bench) open(ctx context.Context) error {
	c := b.core
	err := c.openRules()
	if err != nil {
		return err
	}
	if c.kit, err = c.tools(); err != nil {
		return err
	}
	c.openFilter()
	c.registry = c.kit.registry
	if err := c.openChain(ctx); err != nil {
		return err
	}
	if !c.cfg.Audit.Enabled {
		return nil
	}
	for _, path := range layout.ToolsLogs(c.dir) {
		c.audit, err = audit.New(audit.Options{
			Path:     path,
			Redactor: c.redactor,
			Now:      c.now,
			ID:       c.owner,
			Log:      c.log,
			Rotation: c.rotation(),
		})
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("audit log: %w", err)
}

// Connect connects the configured MCP servers and waits for the first attempt of each, at most for limit.
func (b *Bench) Connect(ctx context.Context, limit time.Duration) error {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.core.servers.Run(running) }) // never fails
	b.stop = func() {
		cancel()
		wg.Wait()
	}
	ready, done := context.WithTimeout(ctx, limit)
	defer done()
	return b.core.servers.Ready(ready)
}

// Servers returns the state of the MCP servers.
func (b *Bench) Servers() []mcp.Status { return b.core.servers.Statuses() }

// Offered lists the tools of a server.
func (b *Bench) Offered(id string) []tools.Definition { return b.core.servers.Tools(id) }

// Configured says whether any MCP server is configured.
func (b *Bench) Configured() bool { return len(b.core.cfg.MCP.Servers) > 0 }

// Close ends what OpenBench and Connect have started.
func (b *Bench) Close() error {
	if b.stop != nil {
		b.stop()
	}
	err := b.core.Close()
	if b.home != "" {
		err = errors.Join(err, os.RemoveAll(b.home))
	}
	return err
}

// Usable lists the tools that a turn would be offered.
func (b *Bench) Usable() []tools.Definition { return b.core.usable(tools.Origin{}, nil) }

// Definitions lists the registered tools.
func (b *Bench) Definitions() []tools.Definition { return b.core.registry.Definitions() }

// CallOptions are the options of `tools call`.
type CallOptions struct {
	Tool   string
	Args   json.RawMessage
	Caller string // "" = terminal:local
	Yes    bool   // approves questions
}

// CallOutcome is the result of a call (contract: tools call --json).
type CallOutcome struct {
	Text     string `json:"text"`
	Category string `json:"error_category"`
	ExitCode *int   `json:"exit_code"`
	Raw      any    `json:"raw"`
	Cached   bool   `json:"cached"`
	Rule     string `json:"policy_match"`
	Failed   bool   `json:"-"`
}

// yes approves everything: a person who typed --yes has seen the call.
type yes struct{ by string }

// Approval implements approve.Lookup.
func (y yes) Approval(_ context.Context, _, _, hash string) (approve.Approval, error) {
	return approve.Approval{State: approve.Approved, By: y.by, Hash: hash}, nil
}

// Use implements approve.Lookup.
func (yes) Use(context.Context, *tools.Call, string) (bool, error) { return true, nil }

func (b *Bench) call(o CallOptions) *tools.Call {
	caller := o.Caller
	if caller == "" {
		caller = terminal.Name + ":local"
	}
	id := uuid.NewString()
	return &tools.Call{
		ID: id, Tool: b.core.policy.Canonical(o.Tool), Args: o.Args, Trail: &tools.Trail{},
		Origin: tools.Origin{Channel: terminal.Name, Session: "cli/" + id, Turn: id, Caller: caller, Admin: true},
	}
}

// Call executes one call through the whole chain. A question is a denial unless Yes is set, because there is nobody to
// ask.
func (b *Bench) Call(ctx context.Context, o CallOptions) CallOutcome {
	call := b.call(o)
	var lookup approve.Lookup
	if o.Yes {
		lookup = yes{by: call.Origin.Caller}
	}
	result, err := b.core.chain(lookup).Execute(cost.WithPayer(ctx, cost.Unlimited{}), call)
	out := CallOutcome{Cached: call.Trail.Cached, Rule: call.Trail.Rule, ExitCode: call.Trail.ExitCode}
	if err != nil {
		e := tools.AsError(err)
		out.Text, out.Category, out.Failed = tools.Feedback(e), string(e.Category), true
		return out
	}
	out.Text, out.Raw, out.Failed = result.Text, result.Raw, result.Error
	if call.Source(result).Kind().Brief { // a person or a script reads it
		out.Text = chain.StripMarks(out.Text)
	}
	if result.Failure != nil {
		out.Category = string(result.Failure.Category)
	}
	if result.ExitCode != nil {
		out.ExitCode = result.ExitCode
	}
	return out
}

// Decision is the policy's decision about a call (contract: policy check).
type Decision = rulebook.Decision

// Check returns what the policy would decide, without running anything. If the tool is not registered, or would refuse
// the arguments, only the rules are applied.
func (b *Bench) Check(ctx context.Context, o CallOptions) (Decision, error) {
	d, err := b.core.book.Check(ctx, b.core.unasked(), b.call(o))
	if errors.Is(err, rulebook.ErrMistaken) {
		err = fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	return d, err
}

// unasked makes a chain that tells what the rules say of a call: it asks neither a person nor the model that judges,
// which somebody would have to pay for.
func (c *Core) unasked() rulebook.Chain {
	o := c.chainOptions(nil)
	o.Judge = nil
	return chain.New(o)
}

// Sandbox returns what the kernel enforces for commands.
func (b *Bench) Sandbox() string { return b.core.kit.level.String() }
