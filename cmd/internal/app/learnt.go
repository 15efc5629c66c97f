package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/learnt"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// graceLearnt is how long the end of the program waits until what was learnt of model servers is stored.
const graceLearnt = 5 * time.Second

// serverOf returns the hash of what the server of a provider is known by: its address and its key; "" = there is no such
// provider.
func (c *Core) serverOf(provider string) string { return serverHash(c.cfg, provider) }

func serverHash(cfg *config.Config, provider string) string {
	for _, p := range cfg.LLM.Providers {
		if p.Name == provider {
			parts := []string{p.Type, address(p)}
			for _, key := range p.Keys() {
				parts = append(parts, key.Reveal())
			}
			sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
			return hex.EncodeToString(sum[:8])
		}
	}
	return ""
}

// modelOf returns the model of a provider; "" = there is no such provider.
func (c *Core) modelOf(provider string) string {
	for i := range c.cfg.LLM.Providers {
		if p := &c.cfg.LLM.Providers[i]; p.Name == provider {
			return p.Model
		}
	}
	return ""
}

// learnWindow keeps how many tokens a provider has shown to take.
func (c *Core) learnWindow(provider string, tokens int) {
	c.learnt.LearnWindow(provider, c.modelOf(provider), tokens)
}

// learntWindow returns how many tokens a provider has shown to take, in this or another process; 0 = nothing is known.
func (c *Core) learntWindow(provider string) int {
	if known := c.learnt.Recall(provider, c.modelOf(provider)); known != nil {
		return known.Window
	}
	return 0
}

// setAside lists what the servers of the configured models refuse.
func (c *Core) setAside() []texts.SetAside {
	var places [][2]string
	for _, p := range c.cfg.LLM.Providers {
		places = append(places, [2]string{p.Name, p.Model})
	}
	return c.learnt.Aside(places)
}

// tellAside tells the admins of a tool that the server of a model refuses. The rows of one tool always have the same keys,
// so it is said once, whichever processes find it out.
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
