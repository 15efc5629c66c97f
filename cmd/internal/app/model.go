package app

import (
	"errors"
	"fmt"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/offline"
	"github.com/zephbot/zephbot/agent/llm/openai"
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// models builds the configured providers behind one route.
func (c *Core) models() (llm.Provider, error) {
	if c.opts.Provider != nil {
		return c.opts.Provider, nil
	}
	if len(c.cfg.LLM.Providers) == 0 {
		return nil, errors.New("no model is configured: add [[llm.providers]] to the config, or set ZEPH_LLM_PROVIDERS_MAIN_MODEL and ZEPH_LLM_PROVIDERS_MAIN_API_KEY")
	}
	var list []llm.Provider
	for _, p := range c.cfg.LLM.Providers {
		provider, err := c.model(p)
		if err != nil {
			return nil, fmt.Errorf("llm.providers %q: %w", p.Name, err)
		}
		list = append(list, provider)
	}
	return route.New(list, c.cfg.LLM.Primary, c.cfg.LLM.Fallback, route.Options{
		Now: c.now, Log: c.log.With().Str("component", "model").Logger(),
		Observe: func(a route.Attempt) {
			c.metrics.Model(a.Provider, a.Usage.Input, a.Usage.CachedInput, a.Usage.Output, a.USD)
			c.metrics.Phase("model", a.Duration)
		},
	})
}

func (c *Core) model(p config.Provider) (llm.Provider, error) {
	switch p.Type {
	case "offline":
		return offline.New(offline.Options{Name: p.Name}), nil
	case "openai", "ollama":
		if !p.ToolUse {
			return nil, errors.New("tool_use = false is not part of this version: tools go through the API's tool calls")
		}
		return openai.New(openai.Options{
			Name: p.Name, BaseURL: p.BaseURL, Key: openai.Key(p.APIKey.Reveal()), Model: p.Model, EmbeddingModel: p.EmbeddingModel,
			MaxTokens: p.MaxTokens, Timeout: c.cfg.LLM.Timeout, InputUSDPerMTok: p.InputUSDPerMTok, OutputUSDPerMTok: p.OutputUSDPerMTok,
			Now: c.now, Log: c.log.With().Str("component", "model").Logger(),
		})
	default:
		return nil, fmt.Errorf("type %q is not part of this version; use openai (any OpenAI-compatible server), ollama or offline", p.Type)
	}
}

// modelLine names the model for people.
func (c *Core) modelLine() string {
	if c.opts.Provider != nil {
		return c.opts.Provider.Name()
	}
	for _, p := range c.cfg.LLM.Providers {
		if p.Name != c.cfg.LLM.Primary {
			continue
		}
		if p.Type == "offline" {
			return offline.ModelName + " (offline)"
		}
		return p.Model
	}
	return "none"
}
