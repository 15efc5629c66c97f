package app

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/news"
	"github.com/zephbot/zephbot/bot/receipt"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/undo"
)

// receipts builds what tells people what an answer took, and puts back the files that it changed.
func (c *Core) receipts(ch channel, store bot.Store) *receipt.Receipts {
	var files receipt.Files
	if !own(ch.name) { // openUndo keeps none there
		files = c.undo
	}
	return receipt.New(receipt.Deps{
		Store: store, Rights: ch.rights, Called: ch.called, Words: c.words(), Now: c.now,
		Wanted: c.own.Receipts, Redact: c.redactor.String, Plain: chain.StripMarks,
		Putting: receipt.Putting{
			Files: files, Workspace: c.undoOf, Line: c.undoLine,
			Tell: func(session bot.SessionKey, id, text string) bot.Fact {
				return news.Told(session, c.now(), id, text)
			},
			Told: func(ctx context.Context, session bot.SessionKey) {
				c.news.Note(session)
				c.records.Settle(ctx)
			},
			Changed: func(ctx context.Context, session bot.SessionKey, began int64) {
				if c.stages.cache != nil {
					c.stages.cache.Changed(ctx, conversationOf(string(session), began))
				}
			},
		},
	})
}

// undoLine is what the audit says of files that somebody has put back.
func (c *Core) undoLine(e receipt.Event) []bot.Fact {
	args, err := json.Marshal(struct {
		Turn string      `json:"turn"`
		Back []undo.File `json:"files"`
	}{e.Turn, e.Files})
	if err != nil {
		c.log.Error().Err(err).Msg("undo not recorded")
		return nil
	}
	c.log.Info().Str("session", string(e.Session)).Str("by", e.By).
		Int("files", len(e.Files)).Msg("files of an answer put back")
	return c.records.Due(&tools.Call{
		ID: e.ID, Tool: "undo", Args: args, Trail: &tools.Trail{ApprovedBy: e.By, Rule: fmt.Sprint("receipt ", e.Turn)},
		Origin: tools.Origin{
			Channel: e.Place.Channel,
			Session: string(e.Session),
			Chat:    e.Place.ChatKey(),
			Caller:  e.By,
		},
	}, nil)
}
