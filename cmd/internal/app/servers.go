package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/bot/servers"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/ask"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// mcpBucket holds what the MCP client keeps over a restart: servers that were added in a chat, and tools in the state
// in which they were accepted.
const mcpBucket = "mcp"

// openServers builds the MCP client; it connects when it runs.
func (c *Core) openServers() error {
	m := c.cfg.MCP
	o := mcp.Options{
		Registry:              c.registry,
		AllowedCommands:       m.AllowedCommands,
		ChatCommands:          m.ChatCommands,
		MaxDynamicServers:     m.MaxDynamicServers,
		MaxDescriptionBytes:   m.MaxDescriptionBytes,
		MaxInstructionsBytes:  m.MaxInstructionsBytes,
		OutputSchemaHintBytes: m.OutputSchemaHintBytes,
		ConnectAttempts:       m.MaxConnectAttempts,
		Backoff:               time.Duration(m.StartupRetryBackoffMS) * time.Millisecond,
		LockToolList:          m.LockToolList,
		EnvIsolation:          m.DefaultEnvIsolation,
		Instead: "If the call needs that, ask the person with " + ask.Name +
			", but for no password or key, and call the tool again with the answer.",
		Elicitation:        m.ElicitationEnabled,
		ElicitationTimeout: time.Duration(m.ElicitationTimeout) * time.Second,
		ElicitationQueue:   m.ElicitationQueue,
		Notify:             c.serverNotice,
		Redact:             c.redactor.String,
		Environ:            os.Environ(),
		WorkDir:            filepath.Join(c.dir, "mcp"),
		Version:            c.opts.Version,
		Roots: func(o tools.Origin) []string {
			dir, err := c.kit.workspace(o)
			if err != nil {
				return nil
			}
			return []string{dir}
		},
		Resolver: c.opts.Internet.Resolver,
		CAs:      c.opts.Internet.Roots,
		Dial:     c.opts.Internet.Dial,
		Now:      c.now,
		Log:      c.log.With().Str("component", "mcp").Logger(),
	}
	if c.tracer != nil {
		o.Header = c.tracer.Inject
	}
	if o.MaxDynamicServers == 0 {
		o.MaxDynamicServers = -1 // none; the client's own zero means its default
	}
	if m.ToolTimeoutSecs != nil {
		o.ToolTimeout = time.Duration(*m.ToolTimeoutSecs) * time.Second
	}
	if c.stores != nil {
		o.Store = c.bucket(mcpBucket)
	}
	if c.elicit != nil {
		o.Elicit = c.elicit
	}
	if m.Sampling && c.provider != nil {
		o.Sample = servers.Sampler{
			Model:     spend.NewModel("sample", c.provider),
			Approvals: c.approvals(),
			Payer:     func(turn string) cost.Payer { return c.payer(turn) },
		}.Sample
	}
	o.Sandbox = mcp.Sandbox{
		Helper:  sandbox.Self,
		Off:     c.cfg.Tools.Shell.Sandbox == shell.SandboxOff,
		Require: c.cfg.Tools.Shell.Sandbox == shell.SandboxRequired,
		Deny:    c.kit.denied,
	}
	if !c.kit.confined {
		o.Sandbox.Level = c.kit.level.String() // what is missing
	}
	for _, s := range m.Servers {
		o.Servers = append(o.Servers, serverConfig(s, c.cfg.Path))
	}
	var err error
	if c.signIns, err = c.openSignIns(&o); err != nil {
		return fmt.Errorf("%w: mcp: %w", config.ErrInvalid, err)
	}
	client, err := mcp.New(o)
	if err != nil {
		return fmt.Errorf("%w: mcp: %w", config.ErrInvalid, err)
	}
	c.servers = client
	return nil
}

// withheldVariables says how many variables of this process tools do not get; "" = they get all. Which ones is logged at
// debug: most of them are harmless, and the list is long.
func (c *Core) withheldVariables() string {
	var parts []string
	if n := len(c.kit.runner.WithheldVariables()); n > 0 {
		parts = append(parts, fmt.Sprintf("commands do not get %d of this process's variables", n))
	}
	programs := slices.ContainsFunc(c.cfg.MCP.Servers, func(s config.MCPServer) bool { return s.Command != "" })
	if n := len(guard.Withheld(os.Environ())); n > 0 && programs {
		parts = append(parts, fmt.Sprintf("programs of MCP servers do not get %d", n))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "; --log-level debug names them"
}

// serverConfig converts an entry of [[mcp.servers]]; path resolves what is relative to the configuration.
func serverConfig(s config.MCPServer, path func(string) string) mcp.Server {
	out := mcp.Server{
		ID:             s.ID,
		Command:        s.Command,
		Args:           s.Args,
		Dir:            s.Dir,
		Env:            map[string]string{},
		URL:            s.URL,
		Headers:        map[string]string{},
		Timeout:        time.Duration(s.Timeout) * time.Second,
		Trust:          guard.Trust(s.TrustLevel),
		Allowlist:      s.ToolAllowlist,
		ExpectedTools:  s.ExpectedTools,
		Elicitation:    s.ElicitationEnabled,
		EnvIsolation:   s.EnvIsolation,
		Scope:          mcp.Scope(s.Scope),
		Policy:         guard.Policy{Allowed: s.Policy.AllowedTools, Denied: s.Policy.DeniedTools},
		CallsPerMinute: s.Policy.RateLimit.MaxCallsPerMinute,
		OAuth:          s.OAuth.Enabled,
		Confine:        s.Confine,
		Network:        s.Network,
	}
	if s.StartupTimeout != nil {
		out.StartupTimeout = time.Duration(*s.StartupTimeout) * time.Second
	}
	for name, value := range s.Env {
		out.Env[name] = value.Reveal()
	}
	for name, value := range s.Headers {
		out.Headers[name] = value.Reveal()
	}
	for _, p := range s.Read {
		out.Read = append(out.Read, path(p))
	}
	for _, r := range s.Roots {
		out.Roots = append(out.Roots, mcp.Root{URI: r.URI, Name: r.Name})
	}
	return out
}

// serverNotice passes on what happened to a server: to the people and models that use it, and to the index of tools.
func (c *Core) serverNotice(n mcp.Notice) {
	select {
	case c.resync <- struct{}{}:
	default: // it has been requested already
	}
	if c.tell != nil {
		c.tell(n)
	}
}

// resyncing updates the index of tools when servers change, until ctx ends.
func (c *Core) resyncing(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.resync:
			if report, err := c.catalog.Sync(ctx); err != nil && ctx.Err() == nil {
				c.log.Warn().Err(err).Msg("index of tools not updated; tools are ranked by words")
			} else if report.Added+report.Updated+report.Removed > 0 {
				c.log.Debug().Int("added", report.Added).Int("updated", report.Updated).
					Int("removed", report.Removed).Msg("index of tools")
			}
		}
	}
}

// approvals returns the questions to people; nil if nothing is stored.
func (c *Core) approvals() servers.Approvals {
	if c.stores == nil {
		return nil
	}
	return c.stores.Bot
}
