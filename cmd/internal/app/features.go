package app

import (
	"context"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/command"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/halt"
	"github.com/zephbot/zephbot/bot/refusal"
	"github.com/zephbot/zephbot/bot/rulebook"
	"github.com/zephbot/zephbot/bot/servers"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/terminal"
)

// listFeatures lists what people can use, and what works and follows other processes besides. Commands, menus, buttons
// and what runs follow from this list.
func (s *service) listFeatures(store bot.Store, questions servers.Questions, stops halt.Button) feature.List {
	c, ch, words := s.core, s.ch, s.core.words()
	conversation := &command.Conversation{
		Store: store, Behind: background{c}, Speech: s.spoken(), Overheard: s.talk, Words: words, Now: c.now,
	}
	status := &command.Status{
		Store:  store,
		About:  s.about(),
		Blocks: c.blockedTools(),
		Admins: ch.admins,
		Words:  words,
		Now:    c.now,
	}
	unscheduled := words.ScheduleOff
	if own(ch.name) {
		unscheduled = words.ScheduleElsewhere
	}
	return feature.List{
		conversation.Feature(),
		status.Feature(),
		dispatch.Feature(func() *dispatch.Dispatcher { return s.dispatcher }),
		stops.Feature(),
		approval.Feature(questions),
		rulebook.Answers{Book: c.book, Chain: c.unasked, Granted: s.broker.Rules, Words: words}.Feature(),
		s.quotas.Feature(),
		{Name: "moves", Follow: s.moves.Follow},
		ch.people.Feature(words, ch.follow),
		c.choices.Feature(),
		c.personas.Feature(),
		s.settings(),
		{
			Name:   "what model servers take",
			Run:    func(ctx context.Context) error { return c.models.Learnt.Run(ctx, s.tellAside) },
			Follow: c.models.Learnt.Follow,
		},
		c.plan.Feature(unscheduled),
		s.hooks.Feature(words),
		c.zones.Feature(),
		c.skillHandler.Feature(words, s.operators, func(place bot.Place) { s.outbox.Wake(place) }),
		s.memories().Feature(),
		{Name: "news", Follow: c.news.Follow},
		{Name: "talk of groups", Off: ch.name != telegram.Name, Run: s.talk.Run},
		{Name: "background commands", Follow: background{c}.follow},
		s.serverHandler.Feature(),
		s.recap.Feature(),
		s.speaks(),
		c.searcher.Feature(ch.display),
		refusal.Explainer{Store: store, Words: words}.Feature(),
		c.receipts(ch, store).Feature(),
		s.privacy.Feature(ch.name != terminal.Name),
		s.page.Feature(words),
		{Name: "signs", Off: s.signs == nil, Run: s.signs.Run},
		{Name: "send budget", Run: s.pacing},
		{Name: "code index", Run: c.indexes},
		{Name: "passages of code", Run: s.embedsCode},
		{Name: "previews", Run: s.sweepUndecided},
		{Name: "windows of models", Run: c.models.AskWindows},
		{Name: "what could not be charged", Run: s.meter.Run},
		{Name: "admissions that others decide", Off: ch.people == nil, Run: func(ctx context.Context) error {
			return ch.people.Settle(ctx, func(err error) {
				c.log.Warn().Err(err).Msg("not looked for admissions that were decided elsewhere; this is repeated in a minute")
			}, s.outbox.Wake)
		}},
		{Name: "ends of standing approvals", Run: func(ctx context.Context) error {
			return s.broker.RemindOfEnds(ctx, store, func(err error) {
				c.log.Warn().Err(err).Msg("not looked for standing approvals that end; this is repeated in an hour")
			}, s.outbox.Wake)
		}},
	}
}
