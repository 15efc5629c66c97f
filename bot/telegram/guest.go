package telegram

import (
	"context"
	"errors"
	"strconv"
	"strings"

	tg "github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/zephbot/zephbot/bot"
)

// decodeGuest decodes a question in a chat that the bot is not in (Bot API 10.0). It knows nothing of that chat but
// this message and those that it refers to, and answers the question instead of replying to the message. Commands mean
// nothing there: most of them show buttons or several messages.
func (d Decoder) decodeGuest(m *bot.Message, msg *models.Message) {
	d.decodeMessage(m, msg)
	m.Place.Surface, m.Place.Group = bot.SurfaceGuest, true // others read what is said
	m.Message, m.Command, m.Args, m.Target, m.Addressed = msg.GuestQueryID, "", "", "", true
	if msg.GuestQueryID == "" || m.FromBot || m.Caller == "" || m.Kind != bot.Text {
		m.Kind = bot.Ignored
	}
}

// guestAnswer is the result of answerGuestQuery as text; the other kinds of results are not needed.
type guestAnswer struct {
	Type    string       `json:"type"` // article
	ID      string       `json:"id"`
	Title   string       `json:"title"` // nobody sees it, but it must not be empty
	Content guestContent `json:"input_message_content"`
}

// guestContent is an InputTextMessageContent.
type guestContent struct {
	Text               string                     `json:"message_text"`
	Entities           []models.MessageEntity     `json:"entities,omitempty"`
	LinkPreviewOptions *models.LinkPreviewOptions `json:"link_preview_options,omitempty"`
}

// answerGuest answers a question in a chat that the bot is not in (Bot API answerGuestQuery), which the row replies to.
// The server accepts one answer within a short time; what else is to be said is an edit of it.
func (c *Client) answerGuest(ctx context.Context, row *bot.Row) (string, error) {
	if row.ReplyTo == "" || row.Content.Text == "" {
		return "", &bot.SendError{
			Outcome: bot.Refused,
			Err:     errors.New("a guest only sends text that answers a question"),
		}
	}
	message, err := c.deliverAs(ctx, func(ctx context.Context) (string, error) {
		var sent struct {
			ID string `json:"inline_message_id"`
		}
		err := c.invokeMethod(ctx, "answerGuestQuery", map[string]any{
			"guest_query_id": row.ReplyTo,
			"result": guestAnswer{
				Type: "article", ID: "1", Title: "Answer",
				Content: guestContent{row.Content.Text, encodeEntities(row.Content.Entities), noPreview()},
			},
		}, &sent)
		return sent.ID, err
	})
	var e *bot.SendError
	if errors.As(err, &e) && e.Outcome == bot.Refused && tooLate(e.Err) {
		e.Outcome = bot.Gone // no other form of it would be taken
	}
	return message, err
}

// tooLate reports whether the server no longer takes an answer to a query.
func tooLate(err error) bool {
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "query is too old") || strings.Contains(text, "query_id_invalid")
}

// editGuest changes the message of a guest (Bot API editMessageText with inline_message_id). It has no
// buttons that could be taken away.
func (c *Client) editGuest(ctx context.Context, message string, content bot.Content) error {
	if content.Text == "" {
		return nil
	}
	return unlessSame(c.callMethod(ctx, func(ctx context.Context) error {
		var changed bool
		return c.invokeMethod(ctx, "editMessageText", &tg.EditMessageTextParams{
			InlineMessageID: message, Text: content.Text, Entities: encodeEntities(content.Entities),
			LinkPreviewOptions: noPreview(),
		}, &changed)
	}))
}

// deliverMessage runs a library method that creates a message with a number.
func (c *Client) deliverMessage(
	ctx context.Context, method func(ctx context.Context) (*models.Message, error),
) (string, error) {
	return c.deliverAs(ctx, func(ctx context.Context) (string, error) {
		sent, err := method(ctx)
		if err != nil {
			return "", err
		}
		return strconv.Itoa(sent.ID), nil
	})
}
