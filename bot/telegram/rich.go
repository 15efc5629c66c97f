package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	tg "github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/zephbot/zephbot/bot"
)

// How long no rich message is tried after a refusal: of one, or of the method, which an older Bot API server lacks.
const (
	poorFor  = 10 * time.Minute
	poorLong = time.Hour
)

// sendRich sends a row as a rich message (Bot API sendRichMessage). It is not done if there is none, or if the server
// refuses it: then the row has to be sent as text, and so have the next ones for a while.
func (c *Client) sendRich(ctx context.Context, row *bot.Row, chat int64) (message string, err error, done bool) { //nolint:revive // done is about both
	if len(row.Content.Rich) == 0 || !c.opts.Rich || time.Now().UnixNano() < c.poor.Load() {
		return "", nil, false
	}
	message, err = c.deliverMessage(ctx, func(ctx context.Context) (*models.Message, error) {
		params := &struct {
			Chat    int64                   `json:"chat_id"`
			Thread  int                     `json:"message_thread_id,omitempty"`
			Rich    json.RawMessage         `json:"rich_message"`
			ReplyTo *models.ReplyParameters `json:"reply_parameters,omitempty"`
			Markup  models.ReplyMarkup      `json:"reply_markup,omitempty"`
		}{chat, sendThread(row.Place), row.Content.Rich, replyTo(row), encodeKeyboard(row.Content.Buttons)}
		var sent struct {
			ID int `json:"message_id"`
		}
		err := c.invokeMethod(ctx, "sendRichMessage", params, &sent)
		return &models.Message{ID: sent.ID}, err
	})
	wait := poorFor
	switch {
	case err == nil:
		return message, nil, true
	case errors.Is(err, tg.ErrorNotFound):
		wait = poorLong
	case bot.OutcomeOf(err) != bot.Refused:
		return "", err, true
	case strings.Contains(strings.ToUpper(err.Error()), "QUOTE"): // the form is not at fault
		return "", nil, false
	}
	c.poor.Store(time.Now().Add(wait).UnixNano())
	return "", nil, false
}
