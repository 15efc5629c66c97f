package app

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/agent/summary"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/recap"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/scan"
)

// recapInput is how many tokens a recap is made of at most: the model has seconds to read them.
const recapInput = 16_000

// asideTokens is how long an answer to a side question may be.
const asideTokens = 1000

// recalling adds what reminds people of conversations.
func (s *service) recalling() *service {
	c, own := s.core, s.core.cfg.Session.Recap
	model, err := c.models.Helper("recap", own.Provider)
	if err != nil { // the configuration was checked: the name is that of a provider
		c.log.Warn().Err(err).Str("key", "session.recap.recap_provider").
			Msg("recaps are written by the model of the conversation")
		model = spend.NewModel("recap", c.provider)
	}
	write := summary.Recap(model, cmp.Or(c.zone(), time.UTC))
	answer := summary.Aside(spend.NewModel("aside", c.provider), cmp.Or(c.zone(), time.UTC))
	options := recap.Options{OnResume: own.OnResume && !s.ch.once, Messages: own.MaxInputMessages}
	s.recap = recap.New(recap.Deps{
		Deps: s.jobDeps("recap"), Journals: c.stores.Bot, Composer: s.ch.composer, Words: c.words(),
		Open: func(msg *bot.Message, id string) turn.Budget { return s.meter.Open(msg, id) },
		Write: func(ctx context.Context, talk recap.Talk) (string, error) {
			return write(ctx, summary.Talk{
				Earlier:   talk.Earlier,
				Entries:   talk.Entries,
				MaxInput:  min(c.cfg.Agent.ContextBudgetTokens/2, recapInput),
				MaxTokens: own.MaxTokens,
				Prefer:    c.choices.Of(talk.Session),
				Party:     talk.Caller,
			})
		},
		Answer: func(ctx context.Context, talk recap.Talk, asked *bot.Message) (string, error) {
			manner, err := c.manner(ctx, talk.Session, asked)
			if err != nil { // it is answered all the same
				c.log.Warn().Err(err).Msg("not known how somebody wants to be answered")
			}
			how := prompt.Manner(manner.Persona, manner.Own, asked.Place.Group)
			return answer(ctx, summary.Talk{
				Earlier:   talk.Earlier,
				Entries:   talk.Entries,
				MaxInput:  min(c.cfg.Agent.ContextBudgetTokens/2, recapInput),
				MaxTokens: asideTokens,
				Prefer:    c.choices.Of(talk.Session),
				Party:     talk.Caller,
			}, how, strings.TrimSpace(asked.Args))
		},
		Admit: func(ctx context.Context, msg *bot.Message, id string) (turn.Admission, error) {
			return s.meter.Admit(ctx, msg, id)
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
