package deliver

import (
	"fmt"

	"github.com/zephbot/zephbot/bot"
)

// apart returns the consequence of an album that the server refuses: its files are sent one by one. The same Change
// ends the row and writes those of the files, so that none is lost and none is sent twice. Each of them
// then has its own simpler forms.
func (o *Outbox) apart(row *bot.Row, err error) verdict {
	o.log(row).Warn().Err(err).Msg("album refused; its files are sent one by one")
	v := verdict{outcome: "apart", update: bot.RowUpdate{
		ID: row.ID, From: []bot.RowState{bot.Sending}, To: bot.Dead, Attempts: 1,
		Problem: "refused as an album, so its files are sent one by one: " + problem(err),
	}}
	for i, content := range row.Content.Apart() {
		one := bot.Row{
			Session: row.Session, Turn: row.Turn, Place: row.Place, Purpose: row.Purpose, Content: content,
			Key: fmt.Sprintf("apart/%d/%d", row.ID, i), Doubt: row.Doubt,
			Unconfirmed: row.Unconfirmed,
		}
		if i == 0 {
			one.ReplyTo = row.ReplyTo
		}
		v.more.Send = append(v.more.Send, one)
	}
	return v
}
