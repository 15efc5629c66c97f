package app

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/choice"
	"github.com/zephbot/zephbot/bot/learnt"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// newChoices makes what /model works with. The first model on offer is the primary one.
func (c *Core) newChoices() *choice.Choices {
	deps := choice.Deps{Store: c.stores.Bot, Words: c.words(), Now: c.now}
	llm := c.cfg.LLM
	offered := llm.Choices
	if len(offered) == 0 {
		offered = llm.Fallback
	}
	for _, name := range append([]string{llm.Primary}, offered...) {
		if slices.ContainsFunc(deps.Offered, func(m choice.Model) bool { return m.Name == name }) {
			continue
		}
		deps.Offered = append(deps.Offered, choice.Model{Name: name, ID: c.models.ID(name)})
	}
	if c.opts.Provider != nil { // it answers alone
		deps.Offered = []choice.Model{{Name: c.opts.Provider.Name()}}
	}
	deps.Personas = c.personas
	return choice.New(deps)
}

// newPersonas makes the personas of the configuration.
func (c *Core) newPersonas() *choice.Personas {
	deps := choice.PersonaDeps{Store: c.stores.Bot, Words: c.words(), Now: c.now, Audit: c.commandAudit()}
	for _, name := range slices.Sorted(maps.Keys(c.cfg.Personas)) {
		own := c.cfg.Personas[name]
		persona := choice.Persona{Name: name, Instructions: own.Instructions, Voice: own.Voice}
		if own.Tools != nil {
			persona.Tools = c.canonical(*own.Tools)
		}
		if provider := c.cfg.ProviderOf(own.Model); own.Model != "" && provider != "" {
			persona.Model = choice.Model{Name: provider, ID: c.models.ID(provider)}
		}
		deps.Offered = append(deps.Offered, persona)
	}
	return choice.NewPersonas(deps)
}

// manner returns how a message is to be answered: by the persona of its conversation, and as its sender wants it.
func (c *Core) manner(ctx context.Context, session bot.SessionKey, msg *bot.Message) (turn.Manner, error) {
	behind := c.followChoices(ctx)
	m := c.personas.Manner(session)
	m.Model = c.choices.Of(session)
	err := errors.Join(behind, c.personas.Missing(ctx, session, msg.Language, &m))
	if msg.Place.Ordinary() { // elsewhere people read it who have nothing to do with the bot
		var unread error
		m.Own, unread = c.own.OwnInstructions(ctx, msg.Caller)
		err = errors.Join(err, unread)
	}
	return m, err
}

// followChoices reads what people have chosen, if another process may have stored it a moment ago.
func (c *Core) followChoices(ctx context.Context) error {
	if !c.shared() {
		return nil
	}
	var reads errgroup.Group
	follow := func(read func(context.Context) error) { reads.Go(func() error { return read(ctx) }) }
	follow(c.own.Follow)
	follow(c.zones.Follow)
	if len(c.cfg.Personas) > 0 {
		follow(c.personas.Follow)
	}
	if c.choices.Several() {
		follow(c.choices.Follow)
	}
	return reads.Wait()
}

// following runs commands once what people have chosen is read.
type following struct {
	turn.Commands
	follow func(ctx context.Context) error
}

// Run implements turn.Commands.
func (f following) Run(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	if err := f.follow(ctx); err != nil {
		return turn.Effect{}, err
	}
	return f.Commands.Run(ctx, call)
}

// modelLineOf names the model of a conversation, for people.
func (c *Core) modelLineOf(session bot.SessionKey) string {
	if name := c.choices.Of(session); name != "" {
		return c.models.ID(name)
	}
	return c.models.Primary()
}

// fencedFor reports whether the model of a conversation is sent no tools, so that it writes its calls as text.
func (c *Core) fencedFor(session bot.SessionKey) bool {
	return c.models.Fenced(cmp.Or(c.choices.Of(session), c.cfg.LLM.Primary))
}

// offersOther reports whether people can choose a model that is not asked by itself if another one fails.
func (c *Core) offersOther() bool {
	llm := c.cfg.LLM
	return c.opts.Provider == nil && slices.ContainsFunc(llm.Choices, func(name string) bool {
		return name != llm.Primary && !slices.Contains(llm.Fallback, name)
	})
}

// tellAside tells the admins of a tool that the server of a model refuses. The rows of one tool always have the same
// keys, so it is said once, whichever processes find it out.
func (s *service) tellAside(ctx context.Context, provider, model string, a dialect.Aside) {
	t := texts.SetAside{Provider: provider, Model: model, Tool: a.Tool, Reason: a.Reason}
	if a.Tool == learnt.NoTools {
		t.Tool = ""
	}
	for _, place := range s.operators() {
		s.mailer().Send(ctx, bot.Row{
			Session: place.SessionKey(""), Place: place, Purpose: bot.Reply,
			Key:     "aside/" + provider + "/" + model + "/" + a.Tool + "/" + a.Schema + "/" + place.Chat,
			Content: bot.Content{Text: s.core.words().ToolAside("", t)},
		})
	}
}
