package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/command"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// mcpBucket holds what the MCP client keeps over a restart: servers that were added in the chat, and tools as they were accepted.
const mcpBucket = "mcp"

// maxSampleTokens bounds what a server may have the model say at once.
const maxSampleTokens = 2000

// openServers builds the MCP client; it connects when it runs.
func (c *Core) openServers() error {
	m := c.cfg.MCP
	o := mcp.Options{
		Registry: c.registry, AllowedCommands: m.AllowedCommands, ChatCommands: m.ChatCommands, MaxDynamicServers: m.MaxDynamicServers, MaxDescriptionBytes: m.MaxDescriptionBytes,
		MaxInstructionsBytes: m.MaxInstructionsBytes, OutputSchemaHintBytes: m.OutputSchemaHintBytes, ConnectAttempts: m.MaxConnectAttempts,
		Backoff: time.Duration(m.StartupRetryBackoffMS) * time.Millisecond, LockToolList: m.LockToolList, EnvIsolation: m.DefaultEnvIsolation,
		Elicitation: m.ElicitationEnabled, ElicitationTimeout: time.Duration(m.ElicitationTimeout) * time.Second, ElicitationQueue: m.ElicitationQueue,
		Notify: c.serverNotice, Redact: c.redactor.String, Environ: os.Environ(), WorkDir: filepath.Join(c.dir, "mcp"), Version: c.opts.Version,
		Roots: func(o tools.Origin) []string {
			dir, err := c.kit.workspace(o)
			if err != nil {
				return nil
			}
			return []string{dir}
		},
		Resolver: c.opts.Internet.Resolver, CAs: c.opts.Internet.Roots, Dial: c.opts.Internet.Dial, Now: c.now,
		Log: c.log.With().Str("component", "mcp").Logger(),
	}
	if o.MaxDynamicServers == 0 {
		o.MaxDynamicServers = -1 // none, where the client's own zero means its default
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
		o.Sample = c.sample
	}
	o.Sandbox = mcp.Sandbox{
		Helper: sandbox.Self, Off: c.cfg.Tools.Shell.Sandbox == shell.SandboxOff, Require: c.cfg.Tools.Shell.Sandbox == shell.SandboxRequired,
		Deny: c.kit.denied,
	}
	if !c.kit.confined {
		o.Sandbox.Level = c.kit.level // what is missing
	}
	for _, s := range m.Servers {
		o.Servers = append(o.Servers, serverConfig(s))
	}
	var err error
	if c.signIns, err = c.openSignIns(&o); err != nil {
		return fmt.Errorf("%w: mcp: %w", ErrConfig, err)
	}
	client, err := mcp.New(o)
	if err != nil {
		return fmt.Errorf("%w: mcp: %w", ErrConfig, err)
	}
	c.servers = client
	return nil
}

// serverConfig translates an entry of [[mcp.servers]].
func serverConfig(s config.MCPServer) mcp.Server {
	out := mcp.Server{
		ID: s.ID, Command: s.Command, Args: s.Args, Env: map[string]string{}, URL: s.URL, Headers: map[string]string{}, Timeout: time.Duration(s.Timeout) * time.Second,
		Trust: guard.Trust(s.TrustLevel), Allowlist: s.ToolAllowlist, ExpectedTools: s.ExpectedTools, Elicitation: s.ElicitationEnabled, EnvIsolation: s.EnvIsolation,
		Scope: mcp.Scope(s.Scope), Policy: guard.Policy{Allowed: s.Policy.AllowedTools, Denied: s.Policy.DeniedTools}, CallsPerMinute: s.Policy.RateLimit.MaxCallsPerMinute,
		OAuth: s.OAuth.Enabled, Confine: s.Confine, Network: s.Network,
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
	for _, r := range s.Roots {
		out.Roots = append(out.Roots, mcp.Root{URI: r.URI, Name: r.Name})
	}
	return out
}

// sample lets a server ask the primary model, within a call that a person has approved: its card said so.
func (c *Core) sample(ctx context.Context, r mcp.SampleRequest) (mcp.SampleResult, error) {
	if c.stores == nil {
		return mcp.SampleResult{}, errors.New("nobody approved this")
	}
	a, err := c.stores.Bot.ApprovalOf(ctx, r.Origin.Session, r.Call)
	if err != nil || a.State != bot.Approved {
		return mcp.SampleResult{}, errors.Join(errors.New("the call was not approved by a person"), err)
	}
	req := &llm.Request{System: r.System, MaxTokens: min(max(r.MaxTokens, 1), maxSampleTokens)}
	for _, m := range r.Messages {
		role := llm.User
		if m.Role == "assistant" {
			role = llm.Assistant
		}
		req.Messages = append(req.Messages, llm.Message{Role: role, Text: m.Text})
	}
	resp, err := c.provider.Chat(ctx, req, nil)
	if err != nil {
		return mcp.SampleResult{}, err
	}
	return mcp.SampleResult{Text: resp.Text, Model: resp.Model}, nil
}

// serverNotice takes what happened to a server to where it matters: to the people and models that use it, and to the index of tools.
func (c *Core) serverNotice(n mcp.Notice) {
	select {
	case c.resync <- struct{}{}:
	default: // it is asked for already
	}
	if c.tell != nil {
		c.tell(n)
	}
}

// resyncing keeps the index of tools in step with the servers until ctx ends.
func (c *Core) resyncing(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.resync:
			if report, err := c.catalog.Sync(ctx); err != nil && ctx.Err() == nil {
				c.log.Warn().Err(err).Msg("index of tools not brought up to date; tools are ranked by words")
			} else if report.Added+report.Updated+report.Removed > 0 {
				c.log.Debug().Int("added", report.Added).Int("updated", report.Updated).Int("removed", report.Removed).Msg("index of tools")
			}
		}
	}
}

// servers is the MCP client as /mcp sees it.
type servers struct {
	client  *mcp.Manager
	service *service
}

// List implements command.Servers.
func (s servers) List() []texts.Server {
	var list []texts.Server
	shares, budget := s.service.core.catalog.Shares()
	for _, st := range s.client.Statuses() {
		share := shares[st.ID]
		list = append(list, texts.Server{
			Fit: share.Fit, Of: share.Of, Budget: budget,
			ID: st.ID, State: string(st.State), Tools: len(st.Tools), Trust: string(st.Trust), Problem: st.Problem, Changed: st.Withdrawn, Fresh: st.Fresh, Held: st.Held,
			Dropped: len(st.Dropped), Dynamic: st.Dynamic,
		})
	}
	return list
}

// maxToolLine bounds the description of a tool in /mcp tools, in characters.
const maxToolLine = 120

// Tools implements command.Servers.
func (s servers) Tools(id string) ([]texts.ServerTool, error) {
	if !s.known(id) {
		return nil, command.ErrNoServer
	}
	var list []texts.ServerTool
	for _, d := range s.client.Tools(id) {
		line, _, _ := strings.Cut(strings.TrimSpace(d.Description), "\n")
		if r := []rune(line); len(r) > maxToolLine {
			line = string(r[:maxToolLine]) + "…"
		}
		list = append(list, texts.ServerTool{Name: d.Name, Description: line})
	}
	for _, st := range s.client.Statuses() {
		if st.ID != id {
			continue
		}
		for _, d := range st.Dropped {
			list = append(list, texts.ServerTool{Name: guard.Qualified(id, d.Tool), Description: d.Reason, Dropped: true})
		}
	}
	return list, nil
}

func (s servers) known(id string) bool {
	_, ok := s.status(id)
	return ok
}

// proposed says what is wrong with /mcp add at first sight. A refusal stands in the audit.
func (s servers) proposed(call *turn.Call, id string, target []string) error {
	server, err := s.parse(id, target)
	if err == nil && !s.known(id) {
		if err = s.client.Check(server); err != nil {
			err = errors.New(sentence(err))
		}
	}
	switch {
	case err != nil:
	case !isURL(target[0]) && !s.service.core.cfg.MCP.ChatCommands:
		err = errors.New(s.service.core.words().ServerPrograms(call.Message.Language))
	case s.known(id):
		err = fmt.Errorf("there is a server %s already; /mcp remove %s takes it away", id, id)
	case s.service.ch.nobody:
		err = errors.New(s.service.core.words().ServerNobody(call.Message.Language))
	default:
		return nil
	}
	return s.audited(call, "add", addArgs(id, target), "", func() error { return refusal(err) })
}

// refusal is an error that the audit counts as blocked.
func refusal(err error) error {
	return &tools.Error{Category: tools.PolicyBlocked, Message: err.Error(), Denied: true, Err: err}
}

func addArgs(id string, target []string) map[string]any {
	if isURL(target[0]) {
		return map[string]any{"id": id, "url": target[0]}
	}
	return map[string]any{"id": id, "command": target[0], "args": target[1:]}
}

func isURL(word string) bool {
	return strings.HasPrefix(word, "http://") || strings.HasPrefix(word, "https://")
}

// audited does what a command asks for, and writes a line of it into the audit like one of a tool's call: tool "/mcp VERB", the arguments, who asked, who
// approved. It returns the error in words for the person.
func (s servers) audited(call *turn.Call, verb string, args map[string]any, by string, work func() error) error {
	err := work()
	if log := s.service.core.audit; log != nil {
		var res *tools.Result
		if err == nil {
			res = &tools.Result{}
		}
		log.Record(mcpCall(call, verb, args, by, err), res, err)
	}
	var denied *tools.Error
	var e *guard.Error
	if errors.As(err, &denied) && !errors.As(err, &e) && denied.Err != nil && denied.Denied {
		return denied.Err
	}
	return err
}

// mcpCall is a command of /mcp as the audit sees it.
func mcpCall(call *turn.Call, verb string, args map[string]any, by string, err error) *tools.Call {
	raw, jsonErr := json.Marshal(args)
	if jsonErr != nil {
		raw = json.RawMessage("{}")
	}
	id, _ := args["id"].(string)
	c := &tools.Call{
		ID: call.Message.ID, Tool: "/mcp " + verb, Args: raw, Trail: &tools.Trail{ApprovedBy: by, MCPServer: id},
		Origin: tools.Origin{Channel: call.Message.Place.Channel, Session: call.Session, Chat: call.Message.Place.ChatKey(), Caller: call.Message.Caller, Admin: call.Admin},
	}
	if e, ok := errors.AsType[*guard.Error](err); ok {
		c.Trail.MCPErrorCode = string(e.Code)
	}
	return c
}

// parse reads what follows /mcp add ID.
func (s servers) parse(id string, target []string) (mcp.Server, error) {
	server := mcp.Server{ID: id, Trust: guard.Untrusted}
	if err := guard.ServerID(id); err != nil {
		return server, err
	}
	first := target[0]
	if isURL(first) {
		if len(target) > 1 {
			return server, errors.New("after a URL nothing may follow")
		}
		server.URL = first
		return server, nil
	}
	server.Command, server.Args = first, target[1:]
	return server, guard.Command(first, s.service.core.cfg.MCP.AllowedCommands)
}

// Pending implements command.Servers.
func (s servers) Pending(ctx context.Context, language, id string) (string, []texts.ServerChange, error) {
	if !s.known(id) {
		return "", nil, command.ErrNoServer
	}
	w := s.service.core.words()
	p, err := s.client.Pending(ctx, id)
	if err != nil {
		return "", nil, errors.New(sentence(err))
	}
	list := make([]texts.ServerChange, len(p.Changes))
	for i, c := range p.Changes {
		list[i] = texts.ServerChange{Tool: c.Tool, New: c.New, Old: shownLines(w, language, c.Old), Now: shownLines(w, language, c.Now)}
	}
	return p.Code, list, nil
}

// shownLines are the lines by which a person compares two states of a tool.
func shownLines(w texts.Words, language string, s mcp.Shown) []string {
	var lines []string
	add := func(head, text string) {
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, "\n"); strings.TrimSpace(line) != "" {
				lines = append(lines, head+line)
			}
		}
	}
	add("", s.Title)
	add("", s.Description)
	for _, part := range []struct{ head, schema string }{{"← ", s.Input}, {"→ ", s.Output}} {
		var b bytes.Buffer
		switch {
		case part.schema == "":
		case json.Indent(&b, []byte(part.schema), "", " ") == nil:
			add(part.head, b.String())
		default:
			add(part.head, w.ServerLong(language))
		}
	}
	add("", s.Hints)
	return lines
}

// sentence is an error as a person may read it: what the client says in plain words, else the error's own text.
func sentence(err error) string {
	var e *guard.Error
	if errors.As(err, &e) && e.Message != "" {
		return e.Message + " (" + string(e.Code) + ")"
	}
	return err.Error()
}
