package app

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/memory"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
)

// lateStore is the database for what is built before that is open and used after that.
type lateStore struct{ core *Core }

// Apply implements bot.Writer.
func (s lateStore) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	return s.core.stores.Bot.Apply(ctx, change)
}

// Fact implements bot.Facts.
func (s lateStore) Fact(ctx context.Context, bucket, key string, now time.Time) (string, error) {
	return s.core.stores.Bot.Fact(ctx, bucket, key, now)
}

// FactsOf implements bot.Facts.
func (s lateStore) FactsOf(ctx context.Context, bucket, prefix string, now time.Time) ([]bot.Fact, error) {
	return s.core.stores.Bot.FactsOf(ctx, bucket, prefix, now)
}

// Journal implements memory.Journal.
func (s lateStore) Journal(ctx context.Context, session bot.SessionKey, after int64) ([]journal.Entry, error) {
	return s.core.stores.Bot.Journal(ctx, session, after)
}

// Tail implements memory.Journal.
func (s lateStore) Tail(ctx context.Context, session bot.SessionKey, room int) (journal.Tail, error) {
	return s.core.stores.Bot.Tail(ctx, session, room)
}

// memoryTools builds what is remembered between conversations, and returns its tools. They come before others, because
// they are always shown: the list of a turn then begins alike in every process. Where nothing is stored, as on the
// command line, they are there and refuse before they use the store: a call from there comes from no chat.
func (c *Core) memoryTools(*kit) ([]tools.Tool, error) {
	if !c.cfg.Memory.Enabled {
		return nil, nil
	}
	limits := c.cfg.Memory.Limits
	var semantic memory.Semantic
	if c.cfg.Memory.Semantic {
		c.meanings = &meanings{} // the database, which the index may be in, is opened later
		semantic = c.meanings
	}
	c.memory = memory.New(memory.Deps{
		Semantic: semantic, Journal: lateStore{c},
		Store: lateStore{c}, Moves: c.moves, Shared: c.shared(),
		Limits:  memory.Limits{Entries: limits.Entries, Bytes: limits.ContentBytes, Results: limits.SearchResults},
		Secret:  func(text string) bool { return c.redactor.String(text) != text },
		Flagged: c.flags, Record: c.memoryLine, Recorded: func(ctx context.Context) { c.records.Settle(ctx) },
		Zone: c.zone(), Now: c.now, Log: c.log.With().Str("component", "memory").Logger(),
	})
	return c.memory.Tools()
}

// openMemory finds out who has something remembered.
func (c *Core) openMemory(ctx context.Context) error {
	if c.stores == nil {
		return nil
	}
	if err := c.openMeanings(); err != nil {
		return err
	}
	return c.followMemory(ctx)
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

// memories is what /memory and its buttons show.
func (s *service) memories() memory.Handler {
	return memory.Handler{Memory: s.core.memory, Words: s.core.words(), Admins: s.ch.admins}
}
