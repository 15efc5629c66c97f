package app

import (
	"slices"

	"github.com/zephbot/zephbot/bot/choice"
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
		deps.Offered = append(deps.Offered, choice.Model{Name: name, ID: c.modelID(name)})
	}
	if c.opts.Provider != nil { // it answers alone
		deps.Offered = []choice.Model{{Name: c.opts.Provider.Name()}}
	}
	return choice.New(deps)
}

// offersOther reports whether people can choose a model that is not asked by itself if another one fails.
func (c *Core) offersOther() bool {
	llm := c.cfg.LLM
	return c.opts.Provider == nil && slices.ContainsFunc(llm.Choices, func(name string) bool {
		return name != llm.Primary && !slices.Contains(llm.Fallback, name)
	})
}
