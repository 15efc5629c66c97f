package app

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/memory"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
)

// openMemory builds what is remembered between conversations, and registers its tools. Where nothing is stored, as on
// the command line, they are there and refuse: a call from there comes from no chat.
func (c *Core) openMemory(ctx context.Context) error {
	if !c.cfg.Memory.Enabled {
		return nil
	}
	limits := c.cfg.Memory.Limits
	var store facts.Store
	if c.stores != nil {
		store = c.stores.Bot
	}
	c.memory = memory.New(memory.Deps{
		Store: store, Moves: c.moves, Shared: c.shared(),
		Limits:  memory.Limits{Entries: limits.Entries, Bytes: limits.ContentBytes, Results: limits.SearchResults},
		Secret:  func(text string) bool { return c.redactor.String(text) != text },
		Flagged: c.flags, Record: c.memoryLine, Recorded: func(ctx context.Context) { c.records.Settle(ctx) },
		Zone: c.zone(), Now: c.now, Log: c.log.With().Str("component", "memory").Logger(),
	})
	list, err := c.memory.Tools()
	if err != nil {
		return err
	}
	for _, tool := range list {
		if err := c.registry.Add(tool); err != nil {
			return err
		}
	}
	if store == nil {
		return nil
	}
	return c.memory.Follow(ctx)
}

// flags reports whether a text tries to give instructions.
func (c *Core) flags(text string) bool {
	_, rules := c.stages.marker.Wrap(tools.Remembered, text)
	return len(rules) > 0
}

// memoryLine is what the audit says of memories that were replaced, deleted or edited. It does not repeat their texts.
func (c *Core) memoryLine(e memory.Event) []bot.Fact {
	raw, err := json.Marshal(struct {
		IDs    []string `json:"ids"`
		By     string   `json:"replaced_by,omitempty"`
		Shared bool     `json:"shared"`
	}{e.IDs, e.By, e.Scope.Shared()})
	if err != nil || c.records == nil {
		return nil
	}
	return c.records.Due(&tools.Call{Tool: "memory_" + e.What, Args: raw, Origin: e.Origin, Trail: &tools.Trail{}}, nil)
}

// recalls is what turns are reminded of; nil = nothing.
func (c *Core) recalls() turn.Memory {
	if c.memory == nil {
		return nil
	}
	return c.memory
}

// followMemory finds what other processes have had remembered.
func (c *Core) followMemory(ctx context.Context) error {
	if c.memory == nil {
		return nil
	}
	if err := c.memory.Follow(ctx); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return nil
}

// movedMemory has the next followMemory read everything again, because a group has a new id.
func (c *Core) movedMemory() {
	if c.memory != nil {
		c.memory.Reload()
	}
}

// memories is what /memory and its buttons show.
func (s *service) memories() memory.Desk {
	return memory.Desk{Memory: s.core.memory, Words: s.core.words(), Admins: s.ch.admins}
}

// memoryCommand answers /memory; nil = there is nothing to show.
func (s *service) memoryCommand() func(context.Context, *turn.Call) (turn.Effect, error) {
	if s.core.memory == nil {
		return nil
	}
	return s.memories().Command
}
