package providers

import (
	"context"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// leastWindow is the smallest window that a conversation is fitted into.
const leastWindow = 1000

// windows returns the windows of the providers: as they are configured, else by the table of models. What a server
// lists itself (AskWindows) and what its refusals show come later.
func windows(cfg *config.Config) map[string]int {
	sizes := map[string]int{}
	for i := range cfg.LLM.Providers {
		p := &cfg.LLM.Providers[i]
		window := p.ContextTokens
		if window == 0 && p.Type != "offline" {
			window = cost.SizesOf(Address(*p), p.Model).Window
		}
		if window > 0 {
			sizes[p.Name] = usableWindow(window, longestAnswer(p))
		}
	}
	return sizes
}

// usableWindow is how much of a window counts. A conversation may fill four fifths of it, so one whose last fifth is
// less than the longest answer counts as smaller than it is.
func usableWindow(window, answer int) int {
	return max(min(window, (window-answer)/4*5), leastWindow)
}

// askWithin limits how long a server is asked for the window of its model.
const askWithin = 5 * time.Second

// unlisted are the providers that were asked for an answer and not yet for their windows, and what the others said.
type unlisted struct {
	mu     sync.Mutex
	seen   map[string]bool
	sizes  map[string]dialect.Sizes
	queued chan string
}

// keep remembers what the server of a provider lists of its model.
func (u *unlisted) keep(provider string, sizes dialect.Sizes) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sizes[provider] = sizes
}

// listed returns what the server of a provider has listed of its model.
func (u *unlisted) listed(provider string) dialect.Sizes {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.sizes[provider]
}

func newUnlisted(providers int) *unlisted {
	return &unlisted{seen: map[string]bool{}, sizes: map[string]dialect.Sizes{}, queued: make(chan string, providers)}
}

// note queues a provider when it is asked for the first time. It never waits.
func (u *unlisted) note(provider string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.seen[provider] {
		return
	}
	u.seen[provider] = true
	select {
	case u.queued <- provider:
	default: // it is none of those that are configured
	}
}

// AskWindows asks each provider, after its first use, how long the window of its model is. No turn waits for it, and a
// server that does not answer is not asked again. It returns when ctx ends.
func (m *Set) AskWindows(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case name := <-m.unlisted.queued:
			m.askWindow(ctx, name)
		}
	}
}

func (m *Set) askWindow(ctx context.Context, name string) {
	router, routed := m.route.(*route.Router)
	p := m.named(name)
	if !routed || p == nil {
		return
	}
	if d := DialectOf(*p); len(d.Listings()) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	sizes := m.listedSizes(ctx, p)
	m.unlisted.keep(name, sizes)
	if sizes.Window == 0 || p.ContextTokens > 0 {
		return
	}
	answer := longestAnswer(p)
	if sizes.Output > 0 {
		answer = min(answer, sizes.Output)
	}
	router.SetWindow(name, usableWindow(sizes.Window, answer))
	m.opts.Log.Info().Str("provider", name).Str("model", p.Model).
		Int("tokens", sizes.Window).Int("longest_answer", sizes.Output).
		Msg("the server says how long the window of its model is")
}

// listedSizes returns what the server of a provider lists of its model.
func (m *Set) listedSizes(ctx context.Context, p *config.Provider) dialect.Sizes {
	if p.Type == "anthropic" {
		members, err := m.anthropicKeys(*p)
		if err != nil {
			return dialect.Sizes{}
		}
		return members[0].Sizes(ctx)
	}
	members, err := m.openAIKeys(*p)
	if err != nil {
		return dialect.Sizes{}
	}
	return members[0].Sizes(ctx)
}

// longestAnswers returns the longest answers of the providers.
func longestAnswers(cfg *config.Config) map[string]int {
	sizes := map[string]int{}
	for i := range cfg.LLM.Providers {
		sizes[cfg.LLM.Providers[i].Name] = longestAnswer(&cfg.LLM.Providers[i])
	}
	return sizes
}
