package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/anthropic"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/fenced"
	"github.com/zephbot/zephbot/agent/llm/keypool"
	"github.com/zephbot/zephbot/agent/llm/negotiate"
	"github.com/zephbot/zephbot/agent/llm/offline"
	"github.com/zephbot/zephbot/agent/llm/openai"

	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// route combines the configured providers in one route.
func (c *Core) route() (llm.Provider, error) {
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
		Now: c.now, Log: c.log.With().Str("component", "model").Logger(), Timeout: c.cfg.LLM.Timeout, Windows: windows(c.cfg), Unpriced: c.prices().unpriced,
		Answers: answers(c.cfg), Learn: c.learnWindow, Learnt: c.learntWindow,
		Observe: c.observeAttempt,
	})
}

// model returns a provider, and makes it at the first call: all users of a provider share its request limit.
func (c *Core) model(p config.Provider) (llm.Provider, error) {
	if made, ok := c.models[p.Name]; ok {
		return made, nil
	}
	made, err := c.newModel(p)
	if err == nil {
		c.models[p.Name] = made
	}
	return made, err
}

// between returns a function that waits before each word; nil = no waiting.
func between(d time.Duration) func(context.Context) error {
	if d <= 0 {
		return nil
	}
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *Core) newModel(p config.Provider) (llm.Provider, error) {
	switch p.Type {
	case "offline":
		return offline.New(offline.Options{Name: p.Name, Pace: between(p.Pace)}), nil
	case "openai", "ollama":
		provider, err := c.openai(p)
		if err != nil {
			return nil, err
		}
		return c.paced(provider, p), nil
	case "anthropic":
		provider, err := c.anthropic(p)
		if err != nil {
			return nil, err
		}
		return c.paced(provider, p), nil
	default:
		return nil, fmt.Errorf("type %q is unknown; use openai (any OpenAI-compatible server), anthropic, ollama or offline", p.Type)
	}
}

// paced limits the requests to a provider to what it allows, across all callers.
func (c *Core) paced(provider llm.Provider, p config.Provider) llm.Provider {
	log := c.log.With().Str("component", "model").Str("provider", p.Name).Logger()
	return withTools(route.NewPacer(provider, route.PacerOptions{Most: c.cfg.Agent.Concurrency, Now: c.now, Observe: func(limit int, wait time.Duration) {
		log.Warn().Int("at_once", limit).Dur("wait", wait).Msg("the provider says that it is asked too often; fewer requests at once")
	}}), p)
}

// vendor is what a server with OpenAI's API does, asked with one key or with several.
type vendor interface {
	llm.Provider
	llm.Embedder
	spend.Listener
}

// openai returns a server with OpenAI's API; with several keys, a pool of them.
func (c *Core) openai(p config.Provider) (vendor, error) {
	members, err := c.openaiMembers(p)
	if err != nil {
		return nil, err
	}
	if len(members) == 1 {
		return members[0], nil
	}
	return keypool.New(members, c.poolOptions())
}

// openaiMembers returns a provider for each key.
func (c *Core) openaiMembers(p config.Provider) ([]*openai.Provider, error) {
	tariff, _ := tariffOf(&p)
	learner := negotiate.NewLearner() // one key learns for all of them
	var members []*openai.Provider
	for _, key := range p.Keys() {
		provider, err := openai.New(openai.Options{
			Name: p.Name, BaseURL: address(p), Key: openai.Key(key.Reveal()), Model: p.Model, EmbeddingModel: p.EmbeddingModel,
			TranscriptionModel: p.TranscriptionModel, TranscriptionUSDPerMinute: c.minuteOf(&p).USD,
			MaxTokens: longestAnswer(&p), Idle: c.cfg.LLM.Idle, Tariff: tariff, Wire: p.Wire, Dialect: dialectOf(p), Memory: c.learnt, Learner: learner, Refused: c.refused, Native: prompt.Native, Accepts: accepts(p), Now: c.now, Log: c.log.With().Str("component", "model").Logger(),
		})
		if err != nil {
			return nil, err
		}
		members = append(members, provider)
	}
	return members, nil
}

// anthropic returns a server with Anthropic's API; with several keys, a pool of them.
func (c *Core) anthropic(p config.Provider) (llm.Provider, error) {
	members, err := c.anthropicMembers(p)
	if err != nil {
		return nil, err
	}
	if len(members) == 1 {
		return members[0], nil
	}
	return keypool.New(members, c.poolOptions())
}

// anthropicMembers returns a provider for each key.
func (c *Core) anthropicMembers(p config.Provider) ([]*anthropic.Provider, error) {
	tariff, _ := tariffOf(&p)
	learner := negotiate.NewLearner() // one key learns for all of them
	var members []*anthropic.Provider
	for _, key := range p.Keys() {
		provider, err := anthropic.New(anthropic.Options{
			Name: p.Name, BaseURL: p.BaseURL, Key: anthropic.Key(key.Reveal()), Model: p.Model, MaxTokens: longestAnswer(&p), Idle: c.cfg.LLM.Idle,
			Tariff: tariff, Dialect: dialectOf(p), Memory: c.learnt, Learner: learner, Refused: c.refused, Native: prompt.Native,
			Now: c.now, Log: c.log.With().Str("component", "model").Logger(), Accepts: accepts(p),
		})
		if err != nil {
			return nil, err
		}
		members = append(members, provider)
	}
	return members, nil
}

func (c *Core) poolOptions() keypool.Options {
	return keypool.Options{Now: c.now, Log: c.log.With().Str("component", "model").Logger()}
}

// longestAnswer is llm.providers[].max_tokens, or what the model can write where that is known to be less.
func longestAnswer(p *config.Provider) int {
	if most := cost.SizesOf(address(*p), p.Model).Output; most > 0 && most < p.MaxTokens {
		return most
	}
	return p.MaxTokens
}

// address returns the address of an API. Where it has no path, it gets that of the preset: people leave out /v1.
func address(p config.Provider) string {
	d := dialectAt(p, p.BaseURL)
	if p.Type == "ollama" && d.BaseURL == "" {
		d, _ = dialect.Named("ollama")
	}
	u, err := url.Parse(p.BaseURL)
	of, ofErr := url.Parse(d.BaseURL)
	if p.Type == "anthropic" || err != nil || ofErr != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return p.BaseURL
	}
	return strings.TrimRight(p.BaseURL, "/") + of.Path
}

// dialectOf returns what the server of a provider accepts; the zero value = nobody knows this server.
func dialectOf(p config.Provider) dialect.Dialect {
	base := address(p)
	switch {
	case base == "" && p.Type == "anthropic":
		base = anthropic.DefaultBaseURL
	case base == "":
		base = openai.DefaultBaseURL
	}
	d := dialectAt(p, base)
	if d.Name == "" && p.Type == "ollama" {
		d, _ = dialect.Named("ollama")
	}
	return d
}

// dialectAt returns the dialect of a provider's preset, or else that of the host of an address.
func dialectAt(p config.Provider, base string) dialect.Dialect {
	if d, named := dialect.Named(p.Preset); named {
		return d
	}
	d, _ := dialect.OfAddress(base)
	return d
}

// accepts returns what a model accepts besides text, according to the configuration; nil = nothing.
func accepts(p config.Provider) *llm.Accepts {
	if len(p.Accepts) == 0 {
		return nil
	}
	takes := func(kind llm.PartKind) bool { return slices.Contains(p.Accepts, string(kind)) }
	return &llm.Accepts{Image: takes(llm.ImagePart), Audio: takes(llm.AudioPart), File: takes(llm.FilePart)}
}

// withTools lets a model without native tool calls write them in its text.
func withTools(provider llm.Provider, p config.Provider) llm.Provider {
	if p.ToolUse {
		return provider
	}
	return fenced.New(provider, fenced.Options{Native: prompt.Native})
}

// embedder returns what computes embeddings by the provider of a name, "" = the configured one, and the name of its model;
// nil if none is configured.
func (c *Core) embedder(name string) (*spend.Embedder, string, error) {
	p, err := c.embedding(name)
	if err != nil || p == nil {
		return nil, "", err
	}
	embedder, err := c.embedderOf(*p)
	return embedder, p.EmbeddingModel, err
}

// embedding returns the provider that computes embeddings; nil if none is configured.
func (c *Core) embedding(name string) (*config.Provider, error) {
	if name == "" {
		name = c.cfg.LLM.Embedding
	}
	if name == "" {
		return nil, nil
	}
	for i := range c.cfg.LLM.Providers {
		p := &c.cfg.LLM.Providers[i]
		switch {
		case p.Name != name:
		case p.Type != "openai" && p.Type != "ollama":
			return nil, fmt.Errorf("provider %q cannot compute embeddings: its type is %s", name, p.Type)
		default:
			return p, nil
		}
	}
	return nil, fmt.Errorf("provider %q is not configured", name)
}

// embedderOf returns what computes embeddings by a provider.
func (c *Core) embedderOf(p config.Provider) (*spend.Embedder, error) {
	provider, err := c.openai(p)
	if err != nil {
		return nil, err
	}
	return spend.NewEmbedder(provider, c.embeddingOf(&p), func(usd float64) { c.metrics.Model(p.Name, 0, 0, 0, usd) }), nil
}

// modelLine names the model for people.
func (c *Core) modelLine() string {
	if c.opts.Provider != nil {
		return c.opts.Provider.Name()
	}
	if id := c.modelID(c.cfg.LLM.Primary); id != "" {
		return id
	}
	return "none"
}

// modelLineOf names the model of a conversation.
func (c *Core) modelLineOf(session bot.SessionKey) string {
	if name := c.choices.Of(session); name != "" {
		return c.modelID(name)
	}
	return c.modelLine()
}

// modelID is the vendor's name of the model of a provider; "" = there is no such provider.
func (c *Core) modelID(name string) string {
	for _, p := range c.cfg.LLM.Providers {
		if p.Name != name {
			continue
		}
		if p.Type == "offline" {
			return offline.ModelName + " (offline)"
		}
		return p.Model
	}
	return ""
}
