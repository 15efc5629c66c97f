package app

import (
	"fmt"
	"time"

	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/bot/memory"
	"github.com/zephbot/zephbot/bot/search"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/ask"
	"github.com/zephbot/zephbot/tools/code"
	"github.com/zephbot/zephbot/tools/delegate"
	"github.com/zephbot/zephbot/tools/diagnostics"
	"github.com/zephbot/zephbot/tools/file"
	"github.com/zephbot/zephbot/tools/image"
	"github.com/zephbot/zephbot/tools/overflow"
	"github.com/zephbot/zephbot/tools/plan"
	"github.com/zephbot/zephbot/tools/schedule"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/skill"
	"github.com/zephbot/zephbot/tools/web"
)

// toolPackage is a package with tools of our own.
type toolPackage struct {
	says func() []act.Tool // what the tools say of themselves
	// build makes the tools that the configuration asks for. nil = they belong to a part that is built later and
	// registers them. The order of the list is that in which tools are shown.
	build func(c *Core, k *kit) ([]tools.Tool, error)
}

// toolPackages is the one list of tools. The registry, the rules, other names of tools, and the names that a
// configuration may use follow from it.
func toolPackages() []toolPackage {
	return []toolPackage{
		{shell.Says, (*Core).shell},
		{memory.Says, (*Core).memoryTools},
		{search.Says, (*Core).searchTools},
		{file.Says, (*Core).fileTools},
		{web.Says, (*Core).webTools},
		{image.Says, (*Core).imageTools},
		{diagnostics.Says, (*Core).diagnosticTools},
		{skill.Says, (*Core).skillTools},
		{schedule.Says, (*Core).scheduleTools},
		{delegate.Says, (*Core).delegateTools},
		{ask.Says, func(*Core, *kit) ([]tools.Tool, error) { return ask.New() }},
		{plan.Says, (*Core).planTools},
		{overflow.Says, nil}, // the stage that keeps long outputs
		{code.Says, nil},     // the index of code
		{catalog.Says, nil},  // the catalog, which searches all others
	}
}

// Tools returns what our own tools say of themselves.
func Tools() []act.Tool {
	var list []act.Tool
	for _, p := range toolPackages() {
		list = append(list, p.says()...)
	}
	return list
}

// buildTools makes the tools and registers them.
func (c *Core) buildTools(k *kit) (err error) {
	if k.registry, err = tools.NewRegistry(); err != nil {
		return err
	}
	for _, p := range toolPackages() {
		if p.build == nil {
			continue
		}
		list, err := p.build(c, k)
		if err != nil {
			return err
		}
		for _, tool := range list {
			if err := k.registry.Add(tool); err != nil {
				return err
			}
		}
	}
	return nil
}

// fileTools are those that read and change files.
func (c *Core) fileTools(k *kit) ([]tools.Tool, error) {
	list, err := file.New(c.fileOptions(k))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	return list, nil
}

// webTools are those that read the web, and that which searches it if a backend is configured.
func (c *Core) webTools(*kit) ([]tools.Tool, error) {
	list, err := web.New(c.webOptions())
	if err != nil {
		return nil, fmt.Errorf("%w: tools.scrape: %w", config.ErrInvalid, err)
	}
	s := c.cfg.WebSearch
	if s.Backend == "" {
		return list, nil
	}
	common := c.webOptions()
	common.Timeout, common.AllowedDomains, common.DeniedDomains = time.Duration(s.Timeout)*time.Second, nil, nil
	search, err := web.NewSearch(web.SearchOptions{
		Backend: s.Backend, URL: s.URL, Key: s.APIKey.Reveal(), MaxResults: s.MaxResults, Web: common,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	return append(list, search), nil
}

// unset lists the tools that are absent because a key is not set.
func (c *Core) unset() []texts.Unset {
	if c.cfg.WebSearch.Backend == "" {
		return []texts.Unset{{Tool: web.SearchName, Key: "web_search.backend"}}
	}
	return nil
}

// webOptions are the options of the tools that read the web.
func (c *Core) webOptions() web.Options {
	s, e := c.cfg.Tools.Scrape, c.cfg.Tools.Egress
	return web.Options{
		Timeout: time.Duration(s.Timeout) * time.Second, MaxBody: int(min(s.MaxBodyBytes, 64<<20)),
		AllowedDomains: s.AllowedDomains, DeniedDomains: s.DeniedDomains,
		LogRequests: e.Enabled, LogBlocked: e.LogBlocked, LogBytes: e.LogResponseBytes, Now: c.now,
		Resolver: c.opts.Internet.Resolver, Dial: c.opts.Internet.Dial, Roots: c.opts.Internet.Roots,
	}
}

// diagnosticTools run checkers of code with the runner of commands.
func (c *Core) diagnosticTools(k *kit) ([]tools.Tool, error) {
	tool, err := diagnostics.New(diagnostics.Options{
		Runner: k.runner, Find: k.runner.FindProgram, Max: c.cfg.Tools.Diagnostics.MaxDiagnostics,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", diagnostics.Name, err)
	}
	return []tools.Tool{tool}, nil
}

// delegateTools give work to sub-agents, which have the tools of the same registry.
func (c *Core) delegateTools(k *kit) ([]tools.Tool, error) {
	tool, err := delegate.New(k.registry)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", delegate.Name, err)
	}
	return []tools.Tool{tool}, nil
}

// planTools show people what a model is going to do.
func (c *Core) planTools(*kit) ([]tools.Tool, error) {
	if !c.cfg.Tools.Plan.Enabled {
		return nil, nil
	}
	tool, err := plan.New()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", plan.Name, err)
	}
	return []tools.Tool{tool}, nil
}
