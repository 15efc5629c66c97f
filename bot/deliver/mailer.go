package deliver

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
)

// Mailer sends what no turn says: ends of commands, news for operators. All fields are needed. Safe for concurrent use.
type Mailer struct {
	Keeper facts.Keeper
	Wake   func(place bot.Place) // a row is stored (Outbox.Wake)
	Log    zerolog.Logger
}

// Send stores a row, and facts in the same commit, and has it delivered. It returns once that is stored, or ctx has
// ended. The row has a key, so that it can be stored again.
func (m Mailer) Send(ctx context.Context, row bot.Row, with ...bot.Fact) {
	if err := m.Keeper.Keep(ctx, &bot.Change{Send: []bot.Row{row}, Facts: with}); err != nil {
		m.Log.Error().Err(err).Str("chat", row.Place.Chat).Msg("message not stored")
		return
	}
	m.Wake(row.Place)
}
