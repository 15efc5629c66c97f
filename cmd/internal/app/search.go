package app

import (
	"context"
	"fmt"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/search"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/tools"
)

// InChat implements search.Store.
func (s lateStore) InChat(ctx context.Context, chat string, limit int) ([]bot.Lane, error) {
	return s.core.stores.Bot.InChat(ctx, chat, limit)
}

// Past implements search.Store.
func (s lateStore) Past(ctx context.Context, session bot.SessionKey, from, before int64) ([]journal.Entry, error) {
	return s.core.stores.Bot.Past(ctx, session, from, before)
}

// searchTools builds what finds past conversations, and returns its tool.
func (c *Core) searchTools(*kit) ([]tools.Tool, error) {
	c.searcher = search.New(search.Deps{
		Store: lateStore{c}, Link: telegram.MessageLink, Words: c.words(), Zone: c.zoneOf, Meaning: c.compareSaid,
		Log:   c.log.With().Str("component", "search").Logger(),
		Moved: func(session bot.SessionKey) bool { return len(c.moves.Names(session)) > 1 },
	})
	list, err := c.searcher.Tools()
	if err != nil {
		return nil, fmt.Errorf("tool that searches conversations: %w", err)
	}
	return list, nil
}
