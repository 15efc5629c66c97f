package telegram

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	tg "github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
)

// toastLength is the limit of a toast (Bot API answerCallbackQuery).
const toastLength = 200

// captionLength is the limit of a caption in UTF-16 units (Bot API sendDocument).
const captionLength = 1024

// generalTopic is the id of a forum's General topic: sendMessage refuses it, sendChatAction requires it.
const generalTopic = 1

// Send implements bot.Sender.
func (c *Client) Send(ctx context.Context, row *bot.Row) (string, error) {
	switch {
	case row.Purpose == bot.Toast:
		return "", c.answerPress(ctx, row)
	case row.Edit != "":
		return row.Edit, c.editMessage(ctx, row.Place, row.Edit, row.Content)
	case row.Place.Guest():
		return c.answerGuest(ctx, row)
	case len(row.Content.More) > 0:
		return c.sendAlbum(ctx, row)
	case row.Content.File != nil:
		return c.sendFile(ctx, row)
	default:
		return c.sendMessage(ctx, row)
	}
}

func chatID(place bot.Place) (int64, error) {
	id, err := strconv.ParseInt(place.Chat, 10, 64)
	if err != nil {
		return 0, &bot.SendError{Outcome: bot.Refused, Err: fmt.Errorf("chat id %q is not a number", place.Chat)}
	}
	return id, nil
}

func threadOf(place bot.Place) int {
	n, err := strconv.Atoi(place.Thread)
	if err != nil {
		return 0
	}
	return n
}

// sendThread returns the topic for sending: none for General.
func sendThread(place bot.Place) int {
	if n := threadOf(place); n != generalTopic {
		return n
	}
	return 0
}

func messageID(id string) (int, error) {
	n, err := strconv.Atoi(id)
	if err != nil {
		return 0, &bot.SendError{Outcome: bot.Missing, Err: fmt.Errorf("message id %q is not a number", id)}
	}
	return n, nil
}

func encodeEntities(list []render.Entity) []models.MessageEntity {
	out := make([]models.MessageEntity, len(list))
	for i, e := range list {
		out[i] = models.MessageEntity{
			Type: models.MessageEntityType(e.Type), Offset: e.Offset, Length: e.Length, URL: e.URL,
			Language: e.Language,
		}
	}
	return out
}

func encodeKeyboard(rows [][]bot.Button) models.ReplyMarkup {
	if len(rows) == 0 {
		return nil
	}
	markup := &models.InlineKeyboardMarkup{}
	for _, row := range rows {
		var keys []models.InlineKeyboardButton
		for _, b := range row {
			key := models.InlineKeyboardButton{Text: b.Label, CallbackData: b.Data, Style: b.Style}
			if b.Gray { // a key has one purpose
				key.CallbackData, key.Disabled = "", &models.DisabledButton{}
			}
			keys = append(keys, key)
		}
		markup.InlineKeyboard = append(markup.InlineKeyboard, keys)
	}
	return markup
}

func replyTo(row *bot.Row) *models.ReplyParameters {
	n, err := strconv.Atoi(row.ReplyTo)
	if err != nil {
		return nil
	}
	return &models.ReplyParameters{MessageID: n, AllowSendingWithoutReply: true, Quote: row.Content.Quote}
}

// noPreview disables link previews.
func noPreview() *models.LinkPreviewOptions { return &models.LinkPreviewOptions{IsDisabled: tg.True()} }

// sendMessage sends a new message (Bot API sendMessage). One that concerns a single person of a group is shown to them
// alone where the server does that: it wants the bot to be an admin of the group. Where it refuses, everybody sees the
// message, and the next ones of that group.
func (c *Client) sendMessage(ctx context.Context, row *bot.Row) (string, error) {
	chat, err := chatID(row.Place)
	if err != nil {
		return "", err
	}
	to := c.receiverOf(row)
	if to == nil {
		return c.sendQuoting(ctx, row, chat)
	}
	message, err := c.sendText(ctx, row, chat, to)
	if err == nil || bot.OutcomeOf(err) != bot.Refused {
		return message, err
	}
	if message, err = c.sendText(ctx, row, chat, nil); err == nil {
		c.open.Store(row.Place.Chat, true)
	}
	return message, err
}

// sendQuoting sends a text, without its quotation if the server does not find that in the message replied to: it
// compares formatting too, and the message may have been edited.
func (c *Client) sendQuoting(ctx context.Context, row *bot.Row, chat int64) (string, error) {
	if message, err, done := c.sendRich(ctx, row, chat); done {
		return message, err
	}
	message, err := c.sendText(ctx, row, chat, nil)
	if row.Content.Quote == "" || err == nil || bot.OutcomeOf(err) != bot.Refused {
		return message, err
	}
	plain := *row
	plain.Content.Quote = ""
	return c.sendText(ctx, &plain, chat, nil)
}

// receiverOf is the one person who is to see a row (Bot API 10.2, ephemeral messages); nil = everybody.
func (c *Client) receiverOf(row *bot.Row) *models.EphemeralMessageParameters {
	if _, open := c.open.Load(row.Place.Chat); open || !row.Place.Group {
		return nil
	}
	id, err := strconv.ParseInt(row.Content.Only, 10, 64)
	if err != nil {
		return nil
	}
	return &models.EphemeralMessageParameters{ReceiverUserID: id}
}

// sendText sends a text to everybody in a chat, or to one person of it.
func (c *Client) sendText(
	ctx context.Context, row *bot.Row, chat int64, to *models.EphemeralMessageParameters,
) (string, error) {
	return c.deliverMessage(ctx, func(ctx context.Context) (*models.Message, error) {
		params := &tg.SendMessageParams{
			BusinessConnectionID:       row.Place.Business(),
			ChatID:                     chat,
			MessageThreadID:            sendThread(row.Place),
			Text:                       row.Content.Text,
			Entities:                   encodeEntities(row.Content.Entities),
			LinkPreviewOptions:         noPreview(),
			ReplyMarkup:                encodeKeyboard(row.Content.Buttons),
			EphemeralMessageParameters: to,
		}
		if r := replyTo(row); r != nil {
			params.ReplyParameters = r
		}
		var sent struct {
			ID int `json:"message_id"`
		}
		err := c.invokeMethod(ctx, "sendMessage", params, &sent)
		return &models.Message{ID: sent.ID}, err
	})
}

// editMessage changes a message; empty text takes only the keyboard away. An edit that changes nothing has succeeded.
func (c *Client) editMessage(ctx context.Context, place bot.Place, message string, content bot.Content) error {
	if place.Guest() {
		return c.editGuest(ctx, message, content)
	}
	chat, err := chatID(place)
	if err != nil {
		return err
	}
	id, err := messageID(message)
	if err != nil {
		return err
	}
	err = c.callMethod(ctx, func(ctx context.Context) error {
		if content.Text == "" {
			_, err := c.api.EditMessageReplyMarkup(ctx, &tg.EditMessageReplyMarkupParams{
				BusinessConnectionID: place.Business(), ChatID: chat, MessageID: id,
			})
			return err
		}
		_, err := c.api.EditMessageText(ctx, &tg.EditMessageTextParams{
			BusinessConnectionID: place.Business(),
			ChatID:               chat, MessageID: id, Text: content.Text, Entities: encodeEntities(content.Entities),
			LinkPreviewOptions: noPreview(),
			ReplyMarkup:        encodeKeyboard(content.Buttons),
		})
		return err
	})
	return unlessSame(err)
}

// unlessSame drops the refusal of an edit that changes nothing.
func unlessSame(err error) error {
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "message is not modified") {
		return nil
	}
	return err
}

// answerPress answers a button press (Bot API answerCallbackQuery). If it is too late, that is no
// failure: the press has had its effect.
func (c *Client) answerPress(ctx context.Context, row *bot.Row) error {
	err := c.callMethod(ctx, func(ctx context.Context) error {
		_, err := c.api.AnswerCallbackQuery(ctx, &tg.AnswerCallbackQueryParams{
			CallbackQueryID: row.Query, Text: render.Cut(row.Content.Text, toastLength), ShowAlert: row.Alert,
		})
		return err
	})
	var e *bot.SendError
	if errors.As(err, &e) && e.Outcome == bot.Refused {
		return nil
	}
	return err
}

// Drafts implements bot.Live: drafts exist only in private chats.
func (c *Client) Drafts(place bot.Place) bool { return !place.Group && place.Surface == bot.SurfaceBot }

// Draft implements bot.Live (Bot API sendMessageDraft, with a Stop button).
func (c *Client) Draft(ctx context.Context, place bot.Place, id int64, content bot.Content) error {
	chat, err := chatID(place)
	if err != nil {
		return err
	}
	return c.callMethod(ctx, func(ctx context.Context) error {
		_, err := c.api.SendMessageDraft(ctx, &tg.SendMessageDraftParams{
			ChatID: chat, MessageThreadID: sendThread(place), DraftID: strconv.FormatInt(id, 10), Text: content.Text,
			Entities: encodeEntities(content.Entities),
			CanStop:  true,
		})
		return err
	})
}

// Revise implements bot.Live.
func (c *Client) Revise(ctx context.Context, place bot.Place, message string, content bot.Content) error {
	return c.editMessage(ctx, place, message, content)
}

// Typing implements bot.Live (Bot API sendChatAction). A guest can show nothing but its message.
func (c *Client) Typing(ctx context.Context, place bot.Place) error {
	if place.Guest() {
		return nil
	}
	chat, err := chatID(place)
	if err != nil {
		return err
	}
	return c.callMethod(ctx, func(ctx context.Context) error {
		_, err := c.api.SendChatAction(ctx, &tg.SendChatActionParams{
			BusinessConnectionID: place.Business(),
			ChatID:               chat, MessageThreadID: threadOf(place), Action: models.ChatActionTyping,
		})
		return err
	})
}

// React implements bot.Reactor (Bot API setMessageReaction). There are no reactions in chats of business accounts and
// where the bot is a guest.
func (c *Client) React(ctx context.Context, place bot.Place, message, emoji string) error {
	chat, err := chatID(place)
	if err != nil {
		return err
	}
	id, err := messageID(message)
	switch {
	case err != nil:
		return err
	case place.Surface != bot.SurfaceBot:
		return &bot.SendError{Outcome: bot.Refused, Err: errors.New("no reactions on this surface")}
	}
	reactions := []models.ReactionType{} // an empty list removes
	if emoji != "" {
		reactions = append(reactions, models.ReactionType{
			Type: models.ReactionTypeTypeEmoji, ReactionTypeEmoji: &models.ReactionTypeEmoji{Emoji: emoji},
		})
	}
	return c.callMethod(ctx, func(ctx context.Context) error {
		var done bool
		return c.invokeMethod(ctx, "setMessageReaction", struct {
			Chat     int64                 `json:"chat_id"`
			Message  int                   `json:"message_id"`
			Reaction []models.ReactionType `json:"reaction"`
		}{chat, id, reactions}, &done)
	})
}

var (
	_ bot.Sender   = (*Client)(nil)
	_ bot.Live     = (*Client)(nil)
	_ bot.Composer = (*Client)(nil)
	_ bot.Reactor  = (*Client)(nil)
)
