package app

import (
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/receipt"
	"github.com/zephbot/zephbot/bot/turn"
)

// receipts builds what tells people what an answer took.
func (c *Core) receipts(ch channel, store bot.Store) *receipt.Desk {
	return receipt.New(receipt.Deps{Store: store, Rights: ch.rights, Words: c.words()})
}

// below puts the buttons of all parts on one row.
func below(parts ...func(turn.Answer) []bot.Button) func(turn.Answer) [][]bot.Button {
	return func(a turn.Answer) [][]bot.Button {
		var row []bot.Button
		for _, part := range parts {
			row = append(row, part(a)...)
		}
		if len(row) == 0 {
			return nil
		}
		return [][]bot.Button{row}
	}
}
