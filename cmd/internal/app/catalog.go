package app

import (
	"fmt"

	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence/vector"
)

// openCatalog builds the catalog, which chooses the tools of a turn.
func (c *Core) openCatalog() error {
	f := c.cfg.Agent.ToolFilter
	d := c.cfg.MCP.ToolDiscovery
	p := c.cfg.MCP.Pruning
	deps := c.cfg.Tools.Dependencies
	t := c.cfg.Tools.TAFC
	o := catalog.Options{
		Source: c.usable,
		Filter: catalog.Filter{Enabled: f.Enabled, TopK: f.TopK, MinSimilarity: f.MinSimilarity, AlwaysOn: f.AlwaysOn},
		Discovery: catalog.Discovery{
			Strategy:         d.Strategy,
			TopK:             d.TopK,
			MinSimilarity:    d.MinSimilarity,
			AlwaysInclude:    d.AlwaysInclude,
			MinToolsToFilter: d.MinToolsToFilter,
			Strict:           d.Strict,
		},
		Pruning: catalog.Pruning{
			Enabled:         p.Enabled,
			MaxTools:        p.MaxTools,
			MinToolsToPrune: p.MinToolsToPrune,
			AlwaysInclude:   p.AlwaysInclude,
		},
		Dependencies: catalog.Dependencies{
			Enabled:       deps.Enabled,
			BoostPerDep:   deps.BoostPerDep,
			MaxTotalBoost: deps.MaxTotalBoost,
			Rules:         map[string]catalog.Rule{},
		},
		TAFC:   catalog.TAFC{Enabled: t.Enabled, Threshold: t.ComplexityThreshold},
		Budget: int(c.cfg.MCP.MaxDefinitionShare * float64(c.cfg.Agent.ContextBudgetTokens)),
		Now:    c.now, Log: c.log.With().Str("component", "catalog").Logger(),
	}
	if c.stores != nil {
		o.Index = c.stores.Vectors.Collection(vector.Tools)
	}
	for tool, r := range deps.Rules {
		o.Dependencies.Rules[tool] = catalog.Rule{Requires: r.Requires, Prefers: r.Prefers}
	}
	chooser := ""
	if p.Enabled {
		chooser = p.Provider
	}
	var err error
	if chooser != "" || c.provider != nil { // a call from the command line needs no model
		if o.Chooser, err = c.models.Helper("choose", chooser); err != nil {
			return fmt.Errorf("%w: mcp.pruning.pruning_provider: %w", config.ErrInvalid, err)
		}
	}
	if c.opts.Provider == nil { // a scripted model computes no embeddings
		if o.Embedder, o.Model, err = c.models.Embedder(d.Provider); err != nil {
			return fmt.Errorf("%w: llm.embedding: %w", config.ErrInvalid, err)
		}
	}
	if c.catalog, err = catalog.New(o); err != nil {
		return fmt.Errorf("%w: tools: %w", config.ErrInvalid, err)
	}
	c.warnings = append(c.warnings, c.catalog.Warnings()...)
	search, err := c.catalog.SearchTool()
	if err != nil {
		return fmt.Errorf("%s: %w", catalog.SearchName, err)
	}
	return c.registry.Add(search)
}
