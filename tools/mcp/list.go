package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/content"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

const (
	maxPages   = 20              // of a list
	maxListed  = 1000            // tools that are read; package guard keeps 100
	refreshGap = 5 * time.Second // between two lists that a server triggers (seed 001)
)

// listTools lists the tools of a server.
func (c *conn) listTools(ctx context.Context, timeout time.Duration) ([]guard.Tool, error) {
	session := c.readySession()
	if res := session.InitializeResult(); res == nil || res.Capabilities == nil || res.Capabilities.Tools == nil {
		return nil, nil // it announces that it has no tools
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var list []*sdk.Tool
	seen := map[string]bool{}
	for params := (&sdk.ListToolsParams{}); ; {
		var page *sdk.ListToolsResult
		err := c.doRequest(ctx, func(ctx context.Context) (err error) {
			page, err = session.ListTools(ctx, &sdk.ListToolsParams{Cursor: params.Cursor})
			return err
		})
		if err != nil {
			return nil, err
		}
		list = append(list, page.Tools...)
		if page.NextCursor == "" || len(list) >= maxListed {
			break
		}
		if seen[page.NextCursor] || len(seen) == maxPages {
			c.s.log.Warn().Int("tools", len(list)).Msg("the mcp server's list of tools does not end; what came is used")
			break
		}
		seen[page.NextCursor] = true
		params.Cursor = page.NextCursor
	}
	offered := content.Tools(list[:min(len(list), maxListed)])
	for i := range offered {
		offered[i].NeedsTask = c.tasks.requiresTask(offered[i].Name)
	}
	return offered, nil
}

// admitTools selects and sanitises the tools that a server offers.
func (s *server) admitTools(list []guard.Tool) guard.Admitted {
	return guard.Server{
		ID: s.cfg.ID, Trust: s.cfg.Trust, Allow: s.cfg.Allowlist, Expected: s.cfg.ExpectedTools,
		MaxDescription: s.m.o.MaxDescriptionBytes,
	}.Admit(list)
}

// ingestOffer lists the server's tools, sanitises them and compares them with what was accepted.
func (s *server) ingestOffer(ctx context.Context, c *conn, timeout time.Duration) (*offer, error) {
	list, err := c.listTools(ctx, timeout)
	if err != nil {
		return nil, err
	}
	a := s.admitTools(list)
	s.lockTools(&a)
	o := &offer{findings: a.Findings, dropped: a.Dropped, warnings: a.Warnings, known: map[string]guard.Tool{}}
	if res := c.readySession().InitializeResult(); res != nil && res.Instructions != "" {
		text, findings := guard.Instructions(res.Instructions, s.m.o.MaxInstructionsBytes)
		o.instructions, o.findings = text, append(o.findings, findings...)
		o.words = guard.Digest(res.Instructions)
	}
	for _, t := range a.Tools {
		o.known[t.Name] = t
		o.order = append(o.order, t.Name)
	}
	if err = s.compareOffer(ctx, o); err != nil {
		return nil, err
	}
	s.buildTools(o)
	s.logOffer(o)
	return o, nil
}

// lockTools drops tools that were not there at the first connect, when LockToolList is set.
func (s *server) lockTools(a *guard.Admitted) {
	if !s.m.o.LockToolList {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locked == nil {
		s.locked = guard.Fingerprints(a.Tools)
		return
	}
	a.Tools = slices.DeleteFunc(a.Tools, func(t guard.Tool) bool {
		_, ok := s.locked[t.Name]
		if !ok {
			a.Dropped = append(a.Dropped, guard.Drop{
				Tool:   t.Name,
				Reason: "it came after the start, and lock_tool_list is set",
			})
		}
		return !ok
	})
}

// buildTools creates the tools of an offer that do not wait for an admin.
func (s *server) buildTools(o *offer) {
	o.tools = make([]tools.Tool, 0, len(o.order))
	for _, name := range o.order {
		if !slices.Contains(o.withdrawn, name) && !slices.Contains(o.fresh, name) {
			o.tools = append(o.tools, s.buildTool(o.known[name]))
		}
	}
}

// logOffer logs what a person has to know about an offer. Texts of the server appear only as short quoted excerpts.
func (s *server) logOffer(o *offer) {
	for _, text := range o.warnings {
		s.log.Warn().Msg(text)
	}
	for _, d := range o.dropped {
		s.log.Warn().Str("tool", d.Tool).Str("reason", d.Reason).Msg("mcp tool dropped")
	}
	for _, f := range o.findings {
		if f.Injection() {
			s.log.Warn().Str("tool", f.Tool).Str("field", f.Field).Str("rule", f.Rule).Str("preview", f.Preview).
				Msg("mcp definition tries to instruct the model")
		}
	}
}

// buildTool returns one tool for the registry.
func (s *server) buildTool(t guard.Tool) tools.Tool {
	d := tools.Definition{
		Name: guard.Qualified(s.cfg.ID, t.Name), Description: t.Description, Schema: t.Input, OutputSchema: t.Output,
		Server: s.cfg.ID, Timeout: s.outerTimeout(),
	}
	if hint := guard.Hint(t.Output, s.m.o.OutputSchemaHintBytes); hint != "" {
		d.Description = strings.TrimSpace(d.Description + "\n" + hint)
	}
	t.Annotations.Apply(&d, s.cfg.Trust)
	// compiled on first use: most tools are never called
	output := sync.OnceValue(func() *content.Schema { return content.Compile(t.Output) })
	return tools.Tool{
		Definition: d,
		Describe:   func(_ context.Context, call *tools.Call) (tools.Subject, error) { return s.describeCall(call, t) },
		Run: func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			return s.runTool(ctx, call, t, output)
		},
	}
}

// logFaults logs what the server sent that could not be read.
func (s *server) logFaults(faults []string) {
	s.log.Warn().Strs("faults", faults).Msg("the mcp server sent what cannot be read")
}

// registerOffer puts an offer into the registry and notifies those who used the server of the differences.
func (s *server) registerOffer(next *offer) error {
	s.listing.Lock()
	defer s.listing.Unlock()
	return s.registerLocked(next)
}

func (s *server) registerLocked(next *offer) error {
	if err := s.m.o.Registry.Replace(s.cfg.ID, next.tools); err != nil {
		return &guard.Error{
			Code: guard.InvalidInput, Server: s.cfg.ID,
			Message: "the server's tools cannot be offered: " + err.Error(), Err: err,
		}
	}
	s.mu.Lock()
	was := s.offered
	if was == nil {
		was = &offer{withdrawn: s.told, fresh: s.told, held: s.toldHeld}
	}
	s.offered, s.told, s.toldHeld = next, append(slices.Clone(next.withdrawn), next.fresh...), next.held
	s.mu.Unlock()
	s.tellDifferences(was, next)
	return nil
}

// tellDifferences reports the differences between two offers.
func (s *server) tellDifferences(was, next *offer) {
	since := func(now, before []string) []string {
		return slices.DeleteFunc(slices.Clone(now), func(name string) bool { return slices.Contains(before, name) })
	}
	changed, fresh := since(next.withdrawn, was.withdrawn), since(next.fresh, was.fresh)
	var parts []string
	if len(changed) > 0 {
		parts = append(parts, "Tools of the server "+s.cfg.ID+" changed since they were accepted: "+someOf(changed)+".")
	}
	if len(fresh) > 0 {
		parts = append(parts, "The server "+s.cfg.ID+" has new tools: "+someOf(fresh)+".")
	}
	if next.held && !was.held {
		parts = append(parts, "The instructions of the server "+s.cfg.ID+" changed since they were accepted.")
	}
	if len(parts) > 0 {
		parts = append(parts, "They cannot be used until an admin accepts them (/mcp accept "+s.cfg.ID+").")
		s.announceNotice(Notice{
			Kind: Withdrawn, Text: strings.Join(parts, " "), Tools: s.qualifiedNames(changed),
			Fresh: s.qualifiedNames(fresh), Held: next.held && !was.held,
		})
	}
	if was.known != nil { // nil: it was not connected before
		s.tellOthers(was, next)
	}
}

// tellOthers reports which tools can now be used, and which are gone.
func (s *server) tellOthers(was, next *offer) {
	var added, gone []string
	for _, name := range next.order {
		if _, ok := was.known[name]; !ok && !slices.Contains(next.fresh, name) {
			added = append(added, name)
		}
	}
	for _, name := range was.order {
		if _, ok := next.known[name]; !ok {
			gone = append(gone, name)
		}
	}
	var parts []string
	if len(added) > 0 {
		parts = append(parts, "new: "+someOf(added))
	}
	if len(gone) > 0 {
		parts = append(parts, "gone: "+someOf(gone))
	}
	if len(parts) > 0 {
		s.notifySessions(Changed, fmt.Sprintf("The server %s offers other tools now (%s).", s.cfg.ID,
			strings.Join(parts, "; ")), s.qualifiedNames(append(added, gone...)))
	}
}

func (s *server) qualifiedNames(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = guard.Qualified(s.cfg.ID, name)
	}
	return out
}

// someOf joins names for a sentence, and shortens a long list.
func someOf(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// refreshTools lists the tools again. On failure, the old list stays.
func (s *server) refreshTools(ctx context.Context, c *conn) {
	next, err := s.ingestOffer(ctx, c, s.cfg.Timeout)
	if err == nil && ctx.Err() == nil {
		err = s.registerOffer(next)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn().Err(err).Msg("mcp tools could not be listed again; the old list stays")
	}
}

// refresher limits how often a server can make us list its tools: the first request runs at once, the next after a
// pause, and none is lost.
type refresher struct {
	s     *server
	timer *time.Timer // set while a list is due
	last  time.Time
}

// requestList requests a list.
func (r *refresher) requestList() {
	if r.timer == nil {
		r.timer = time.NewTimer(max(0, refreshGap-time.Since(r.last)))
	}
}

// dueSignal returns a channel that fires when it is time to list, and never when nothing was requested.
func (r *refresher) dueSignal() <-chan time.Time {
	if r.timer == nil {
		return nil
	}
	return r.timer.C
}

func (r *refresher) refreshNow(ctx context.Context, c *conn) {
	r.timer, r.last = nil, time.Now()
	r.s.refreshTools(ctx, c)
}

func (r *refresher) stopTimer() {
	if r.timer != nil {
		r.timer.Stop()
	}
}
