// Package providers builds the models of the configuration, and knows what they are called, take and cost.
package providers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/offline"
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/bot/learnt"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// Options configure a Set.
type Options struct {
	Config   *config.Config
	Provider llm.Provider     // replaces the configured models, for tests; nil = as configured
	Now      func() time.Time // nil = time.Now
	Log      zerolog.Logger
	// Observe is told of each attempt to call a model; nil = nobody wants to know.
	Observe func(ctx context.Context, a route.Attempt)
	// Spent is told what embeddings, transcriptions and speech by a provider have cost; nil = nobody wants to know.
	Spent func(provider string, usd float64)
	// Refused takes what servers say when they refuse a form of a request; nil = nobody wants to know.
	Refused func(words string)
}

// Set is the models of a configuration. Until the first call of a model, methods are for one goroutine.
type Set struct {
	Learnt   *learnt.Memory // of the servers of models
	cfg      *config.Config
	opts     Options
	route    llm.Provider
	made     map[string]llm.Provider // by configured name
	offers   func() spend.Offers     // read from the tables when it is first called
	unlisted *unlisted
}

// New returns the models, and opens nothing.
func New(o Options) *Set {
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Set{
		cfg:      o.Config,
		opts:     o,
		made:     map[string]llm.Provider{},
		unlisted: newUnlisted(len(o.Config.LLM.Providers)),
	}
	m.offers = sync.OnceValue(m.readOffers)
	m.Learnt = learnt.New(learnt.Deps{
		Server: func(provider string) string { return ServerHash(m.cfg, provider) }, Now: o.Now, Log: o.Log,
	})
	return m
}

// Route combines the configured providers, and does so once.
func (m *Set) Route() (llm.Provider, error) {
	if m.route != nil {
		return m.route, nil
	}
	var err error
	m.route, err = m.combine()
	return m.route, err
}

func (m *Set) combine() (llm.Provider, error) {
	if m.opts.Provider != nil {
		return m.opts.Provider, nil
	}
	if len(m.cfg.LLM.Providers) == 0 {
		return nil, errors.New("no model is configured: `zephbot setup` adds one; or set " +
			"ZEPH_LLM_PROVIDERS_MAIN_MODEL and ZEPH_LLM_PROVIDERS_MAIN_API_KEY, or add [[llm.providers]] to the config " +
			"(ZEPH_LLM_PROVIDERS_MAIN_TYPE=offline alone is the built-in one, without intelligence)")
	}
	var list []llm.Provider
	for _, p := range m.cfg.LLM.Providers {
		provider, err := m.provider(p)
		if err != nil {
			return nil, fmt.Errorf("llm.providers %q: %w", p.Name, err)
		}
		list = append(list, provider)
	}
	return route.New(list, m.cfg.LLM.Primary, m.cfg.LLM.Fallback, route.Options{
		Now:      m.opts.Now,
		Log:      m.log(),
		Timeout:  m.cfg.LLM.Timeout,
		Windows:  windows(m.cfg),
		Unpriced: m.Offers().Unpriced(),
		Answers:  longestAnswers(m.cfg),
		Learn:    m.learnWindow,
		Learnt:   m.learntWindow,
		Observe:  m.observe,
	})
}

// provider returns a provider, and makes it at the first call: all users of a provider share its request limit.
func (m *Set) provider(p config.Provider) (llm.Provider, error) {
	if made, ok := m.made[p.Name]; ok {
		return made, nil
	}
	made, err := m.NewProvider(p)
	if err == nil {
		m.made[p.Name] = made
	}
	return made, err
}

// Helper returns a model for a purpose besides the answers to people: the named one, else the route that answers them.
// Whoever its calls are made for pays for them.
func (m *Set) Helper(purpose, name string) (*spend.Model, error) {
	if name == "" || m.opts.Provider != nil {
		provider, err := m.Route()
		if err != nil {
			return nil, err
		}
		return spend.NewModel(purpose, provider), nil
	}
	p := m.named(name)
	if p == nil {
		return nil, fmt.Errorf("provider %q is not configured", name)
	}
	made, err := m.provider(*p)
	if err != nil {
		return nil, err
	}
	return spend.NewModel(purpose, route.Observed(made, m.Offers().Unpriced()[name], m.observe)), nil
}

// Embedder returns what computes embeddings by the provider of a name, "" = the configured one, and the name of its
// model; nil if none is configured.
func (m *Set) Embedder(name string) (*spend.Embedder, string, error) {
	p, err := m.Embedding(name)
	if err != nil || p == nil {
		return nil, "", err
	}
	embedder, err := m.EmbedderOf(*p)
	return embedder, p.EmbeddingModel, err
}

// Embedding returns the provider of a name, "" = the configured one, if it computes
// embeddings; nil if none is configured.
func (m *Set) Embedding(name string) (*config.Provider, error) {
	if name == "" {
		name = m.cfg.LLM.Embedding
	}
	if name == "" {
		return nil, nil //nolint:nilnil // none is configured
	}
	switch p := m.named(name); {
	case p == nil:
		return nil, fmt.Errorf("provider %q is not configured", name)
	case p.Type != "openai" && p.Type != "ollama":
		return nil, fmt.Errorf("provider %q cannot compute embeddings: its type is %s", name, p.Type)
	default:
		return p, nil
	}
}

// EmbedderOf returns what computes embeddings by a provider.
func (m *Set) EmbedderOf(p config.Provider) (*spend.Embedder, error) {
	provider, err := m.openAI(p)
	if err != nil {
		return nil, err
	}
	return spend.NewEmbedder(provider, m.EmbeddingCost(&p), m.spentBy(p.Name)), nil
}

// Transcriber returns what writes down speech; nil when no provider does.
func (m *Set) Transcriber() (*spend.Transcriber, error) {
	best := m.firstWith(func(p *config.Provider) bool { return p.TranscriptionModel != "" })
	if best == nil {
		return nil, nil //nolint:nilnil // no speech is written down
	}
	provider, err := m.openAI(*best)
	if err != nil {
		return nil, fmt.Errorf("llm.providers %q: %w", best.Name, err)
	}
	return spend.NewTranscriber(provider, m.MinuteCost(best), m.spentBy(best.Name)), nil
}

// Voice returns what speaks; nil when no provider does.
func (m *Set) Voice() (*spend.Voice, error) {
	best := m.firstWith(func(p *config.Provider) bool { return p.SpeechModel != "" })
	if best == nil {
		return nil, nil //nolint:nilnil // nothing is spoken
	}
	return m.VoiceOf(*best)
}

// VoiceOf returns what speaks by a provider.
func (m *Set) VoiceOf(p config.Provider) (*spend.Voice, error) {
	provider, err := m.openAI(p)
	if err != nil {
		return nil, fmt.Errorf("llm.providers %q: %w", p.Name, err)
	}
	return spend.NewVoice(provider, m.SpeechCost(&p), m.spentBy(p.Name)), nil
}

// Painter returns what makes pictures; nil when no provider does.
func (m *Set) Painter() (*spend.Painter, error) {
	best := m.firstWith(func(p *config.Provider) bool { return p.ImageModel != "" })
	if best == nil {
		return nil, nil //nolint:nilnil // no pictures are made
	}
	provider, err := m.openAI(*best)
	if err != nil {
		return nil, fmt.Errorf("llm.providers %q: %w", best.Name, err)
	}
	return spend.NewPainter(provider, m.UnpricedImages(best), m.spentBy(best.Name)), nil
}

// firstWith returns the provider that has something: the primary one where it does, else a fallback, else any; nil = none
// has it.
func (m *Set) firstWith(has func(p *config.Provider) bool) *config.Provider {
	order := append([]string{m.cfg.LLM.Primary}, m.cfg.LLM.Fallback...)
	var best *config.Provider
	rank := func(p *config.Provider) int {
		if i := slices.Index(order, p.Name); i >= 0 {
			return i
		}
		return len(order)
	}
	for i := range m.cfg.LLM.Providers {
		if p := &m.cfg.LLM.Providers[i]; has(p) && (best == nil || rank(p) < rank(best)) {
			best = p
		}
	}
	return best
}

// Primary names the model that answers, for people.
func (m *Set) Primary() string {
	if m.opts.Provider != nil {
		return m.opts.Provider.Name()
	}
	if id := m.ID(m.cfg.LLM.Primary); id != "" {
		return id
	}
	return "none"
}

// ID is the vendor's name of the model of a provider; "" = there is no such provider.
func (m *Set) ID(name string) string {
	switch p := m.named(name); {
	case p == nil:
		return ""
	case p.Type == "offline":
		return offline.ModelName + " (offline)"
	default:
		return p.Model
	}
}

// named returns the provider of a name; nil = there is none.
func (m *Set) named(name string) *config.Provider {
	i := slices.IndexFunc(m.cfg.LLM.Providers, func(p config.Provider) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &m.cfg.LLM.Providers[i]
}

// observe is told of each attempt to call a model.
func (m *Set) observe(ctx context.Context, a route.Attempt) {
	m.unlisted.note(a.Provider)
	if m.opts.Observe != nil {
		m.opts.Observe(ctx, a)
	}
}

// spentBy returns what is told of the costs of a provider besides those of answers; nil = nobody wants to know.
func (m *Set) spentBy(provider string) func(usd float64) {
	if m.opts.Spent == nil {
		return nil
	}
	return func(usd float64) { m.opts.Spent(provider, usd) }
}

func (m *Set) log() zerolog.Logger { return m.opts.Log.With().Str("component", "model").Logger() }
