package app

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/agent/summary"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/recap"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/policy/scan"
)

// leastWindow is the smallest window that a conversation is fitted into.
const leastWindow = 1000

// windows returns the windows of the providers: as they are configured, else by the table of models. What a server lists
// itself (askWindows) and what its refusals show come later.
func windows(cfg *config.Config) map[string]int {
	sizes := map[string]int{}
	for i := range cfg.LLM.Providers {
		p := &cfg.LLM.Providers[i]
		window := p.ContextTokens
		if window == 0 && p.Type != "offline" {
			window = cost.SizesOf(address(*p), p.Model).Window
		}
		if window > 0 {
			sizes[p.Name] = usable(window, longestAnswer(p))
		}
	}
	return sizes
}

// usable is how much of a window counts. A conversation may fill four fifths of it, so one whose last fifth is less than
// the longest answer counts as smaller than it is.
func usable(window, answer int) int {
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

// askWindows asks each provider, after its first use, how long the window of its model is. No turn waits for it, and a
// server that does not answer is not asked again. It returns when ctx ends.
func (c *Core) askWindows(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case name := <-c.unlisted.queued:
			c.askWindow(ctx, name)
		}
	}
}

func (c *Core) askWindow(ctx context.Context, name string) {
	router, routed := c.provider.(*route.Router)
	i := slices.IndexFunc(c.cfg.LLM.Providers, func(p config.Provider) bool { return p.Name == name })
	if !routed || i < 0 {
		return
	}
	p := &c.cfg.LLM.Providers[i]
	if d := dialectOf(*p); len(d.Listings()) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	sizes := c.listedSizes(ctx, p)
	c.unlisted.keep(name, sizes)
	if sizes.Window == 0 || p.ContextTokens > 0 {
		return
	}
	answer := longestAnswer(p)
	if sizes.Output > 0 {
		answer = min(answer, sizes.Output)
	}
	router.SetWindow(name, usable(sizes.Window, answer))
	c.log.Info().Str("provider", name).Str("model", p.Model).Int("tokens", sizes.Window).Int("longest_answer", sizes.Output).
		Msg("the server says how long the window of its model is")
}

// listedSizes returns what the server of a provider lists of its model.
func (c *Core) listedSizes(ctx context.Context, p *config.Provider) dialect.Sizes {
	if p.Type == "anthropic" {
		members, err := c.anthropicMembers(*p)
		if err != nil {
			return dialect.Sizes{}
		}
		return members[0].Sizes(ctx)
	}
	members, err := c.openaiMembers(*p)
	if err != nil {
		return dialect.Sizes{}
	}
	return members[0].Sizes(ctx)
}

// answers returns the longest answers of the providers.
func answers(cfg *config.Config) map[string]int {
	sizes := map[string]int{}
	for i := range cfg.LLM.Providers {
		sizes[cfg.LLM.Providers[i].Name] = longestAnswer(&cfg.LLM.Providers[i])
	}
	return sizes
}

// recapInput is how many tokens a recap is made of at most: the model has seconds to read them.
const recapInput = 16_000

// recalling adds what reminds people of conversations.
func (s *service) recalling() *service {
	c, own := s.core, s.core.cfg.Session.Recap
	model, err := c.paid("recap", own.Provider)
	if err != nil { // the configuration was checked: the name is that of a provider
		c.log.Warn().Err(err).Str("key", "session.recap.recap_provider").Msg("recaps are written by the model of the conversation")
		model = spend.NewModel("recap", c.provider)
	}
	write := summary.Recap(model, cmp.Or(c.zone(), time.UTC))
	options := recap.Options{OnResume: own.OnResume && !s.ch.once, Messages: own.MaxInputMessages}
	s.recap = recap.New(recap.Deps{
		Store: c.stores.Bot, Keeper: c.keeper(), Composer: s.ch.composer, Words: c.words(), Current: c.moves.Current,
		Owner: c.owner, Lives: c.living.Lives, Now: c.now, Log: c.log.With().Str("component", "recap").Logger(),
		Open: func(msg *bot.Message, id string) turn.Budget { return s.meter.Open(msg, id) },
		Wake: func(place bot.Place) { s.outbox.Wake(place) },
		Write: func(ctx context.Context, talk recap.Talk) (string, error) {
			return write(ctx, summary.Talk{
				Earlier: talk.Earlier, Entries: talk.Entries, MaxInput: min(c.cfg.Agent.ContextBudgetTokens/2, recapInput), MaxTokens: own.MaxTokens,
				Prefer: c.choices.Of(talk.Session), Party: talk.Caller,
			})
		},
	}, options)
	return s
}

// compaction is how the agent shortens conversations that become too long: the model of a turn sums up what is old.
func (c *Core) compaction() agent.Compaction {
	sumUp := summary.Conversation(spend.NewModel("conversation", c.provider), cmp.Or(c.zone(), time.UTC))
	return agent.Compaction{
		SumUp: func(ctx context.Context, talk agent.Talk) (string, error) { return sumUp(ctx, summary.Talk(talk)) },
		Suspect: func(text string) bool {
			return slices.ContainsFunc(scan.Find(text), func(m scan.Match) bool { return m.Category != "exfiltration" })
		},
	}
}
