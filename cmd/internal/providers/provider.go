package providers

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
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// waitBetween returns a function that waits before each word; nil = no waiting.
func waitBetween(d time.Duration) func(context.Context) error {
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

// NewProvider makes a provider as it is configured, with its request limit.
func (m *Set) NewProvider(p config.Provider) (llm.Provider, error) {
	switch p.Type {
	case "offline":
		return offline.New(offline.Options{Name: p.Name, Pace: waitBetween(p.Pace)}), nil
	case "openai", "ollama":
		provider, err := m.openAI(p)
		if err != nil {
			return nil, err
		}
		return m.limitRequests(provider, p), nil
	case "anthropic":
		provider, err := m.anthropic(p)
		if err != nil {
			return nil, err
		}
		return m.limitRequests(provider, p), nil
	default:
		return nil, fmt.Errorf("type %q is %w", p.Type, ErrType)
	}
}

// ErrType means that a provider has a type that the configuration does not allow.
var ErrType = errors.New("unknown; use openai (any OpenAI-compatible server), anthropic, ollama or offline")

// limitRequests limits the requests to a provider to what it allows, across all callers.
func (m *Set) limitRequests(provider llm.Provider, p config.Provider) llm.Provider {
	log := m.opts.Log.With().Str("component", "model").Str("provider", p.Name).Logger()
	return withTools(route.NewPacer(provider, route.PacerOptions{
		Most: m.cfg.Agent.Concurrency,
		Now:  m.opts.Now,
		Observe: func(limit int, wait time.Duration) {
			log.Warn().Int("at_once", limit).Str("wait", wait.Round(time.Millisecond).String()).
				Msg("the provider says that it is asked too often; fewer requests at once")
		},
	}), p)
}

// vendor is what a server with OpenAI's API does, asked with one key or with several.
type vendor interface {
	llm.Provider
	llm.Embedder
	spend.Listener
	spend.Speaker
	spend.Artist
}

// openAI returns a server with OpenAI's API; with several keys, a pool of them.
func (m *Set) openAI(p config.Provider) (vendor, error) {
	members, err := m.openAIKeys(p)
	if err != nil {
		return nil, err
	}
	if len(members) == 1 {
		return members[0], nil
	}
	return keypool.New(members, m.poolOptions())
}

// openAIKeys returns a provider for each key.
func (m *Set) openAIKeys(p config.Provider) ([]*openai.Provider, error) {
	tariff, _ := TariffOf(&p)
	learner := negotiate.NewLearner() // one key learns for all of them
	var members []*openai.Provider
	for _, key := range p.Keys() {
		provider, err := openai.New(openai.Options{
			Name:                      p.Name,
			BaseURL:                   Address(p),
			Key:                       openai.Key(key.Reveal()),
			Model:                     p.Model,
			EmbeddingModel:            p.EmbeddingModel,
			TranscriptionModel:        p.TranscriptionModel,
			TranscriptionUSDPerMinute: m.MinuteCost(&p).USD,
			SpeechModel:               p.SpeechModel,
			SpeechVoice:               p.SpeechVoice,
			SpeechUSDPerMChar:         m.SpeechCost(&p).USD,
			ImageModel:                p.ImageModel,
			ImageQuality:              imageQuality(&p),
			ImagePrice:                m.imagePrice(&p),
			MaxTokens:                 longestAnswer(&p),
			Idle:                      m.cfg.LLM.Idle,
			Tariff:                    tariff,
			Wire:                      p.Wire,
			Dialect:                   DialectOf(p),
			Memory:                    m.Learnt,
			Learner:                   learner,
			Refused:                   m.opts.Refused,
			Native:                    prompt.Native,
			Accepts:                   accepts(p),
			Now:                       m.opts.Now,
			Log:                       m.log(),
		})
		if err != nil {
			return nil, err
		}
		members = append(members, provider)
	}
	return members, nil
}

// anthropic returns a server with Anthropic's API; with several keys, a pool of them.
func (m *Set) anthropic(p config.Provider) (llm.Provider, error) {
	members, err := m.anthropicKeys(p)
	if err != nil {
		return nil, err
	}
	if len(members) == 1 {
		return members[0], nil
	}
	return keypool.New(members, m.poolOptions())
}

// anthropicKeys returns a provider for each key.
func (m *Set) anthropicKeys(p config.Provider) ([]*anthropic.Provider, error) {
	tariff, _ := TariffOf(&p)
	learner := negotiate.NewLearner() // one key learns for all of them
	var members []*anthropic.Provider
	for _, key := range p.Keys() {
		provider, err := anthropic.New(anthropic.Options{
			Name:      p.Name,
			BaseURL:   p.BaseURL,
			Key:       anthropic.Key(key.Reveal()),
			Model:     p.Model,
			MaxTokens: longestAnswer(&p),
			Idle:      m.cfg.LLM.Idle,
			Tariff:    tariff,
			Dialect:   DialectOf(p),
			Memory:    m.Learnt,
			Learner:   learner,
			Refused:   m.opts.Refused,
			Native:    prompt.Native,
			Now:       m.opts.Now,
			Log:       m.log(),
			Accepts:   accepts(p),
		})
		if err != nil {
			return nil, err
		}
		members = append(members, provider)
	}
	return members, nil
}

func (m *Set) poolOptions() keypool.Options {
	return keypool.Options{Now: m.opts.Now, Log: m.log()}
}

// longestAnswer is llm.providers[].max_tokens, or what the model can write where that is known to be less.
func longestAnswer(p *config.Provider) int {
	if most := cost.SizesOf(Address(*p), p.Model).Output; most > 0 && most < p.MaxTokens {
		return most
	}
	return p.MaxTokens
}

// Address returns the address of an API. Where it has no path, it gets that of the preset: people leave out /v1.
func Address(p config.Provider) string {
	d := dialectAt(p, p.BaseURL)
	if p.Type == "ollama" && d.BaseURL == "" {
		d, _ = dialect.Named("ollama")
	}
	u, err := url.Parse(p.BaseURL)
	of, ofErr := url.Parse(d.BaseURL)
	if p.Type == "anthropic" || err != nil || ofErr != nil ||
		u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return p.BaseURL
	}
	return strings.TrimRight(p.BaseURL, "/") + of.Path
}

// DialectOf returns what the server of a provider accepts; the zero value = nobody knows this server.
func DialectOf(p config.Provider) dialect.Dialect {
	base := Address(p)
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
