package telegram

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	tg "github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/zephbot/zephbot/bot"
)

// States of a connection to a business account (bot.Message.Status).
const (
	connected    = "connected"
	mute         = "mute" // the bot reads messages, but may not answer them
	disconnected = "disconnected"
)

// decodeConnection decodes that a person has connected the bot to their business account, or disconnected it. The place
// is that person's chat with the bot.
func (d Decoder) decodeConnection(m *bot.Message, c *models.BusinessConnection) {
	d.setPlace(m, models.Chat{ID: c.UserChatID, Type: models.ChatTypePrivate}, 0, false)
	d.setPerson(m, &c.User)
	if _, ok := bot.SurfaceBusiness(c.ID); ok && m.Caller != "" {
		m.Kind, m.Target, m.Status = bot.Connection, c.ID, connectionState(c)
	}
}

func connectionState(c *models.BusinessConnection) string {
	switch {
	case !c.IsEnabled:
		return disconnected
	case c.Rights == nil || !c.Rights.CanReply:
		return mute
	default:
		return connected
	}
}

// decodeBusiness decodes a message in a chat of a connected business account. Only what the other person writes is
// a message for the bot: what the owner writes there is not, nor what this or another bot sends in the owner's
// name. A customer gives no commands.
func (d Decoder) decodeBusiness(m *bot.Message, msg *models.Message) {
	surface, ok := bot.SurfaceBusiness(msg.BusinessConnectionID)
	d.decodeMessage(m, msg)
	m.Place.Surface, m.Place.Thread = surface, ""
	m.Command, m.Args, m.Target = "", "", ""
	private := msg.Chat.Type == models.ChatTypePrivate && msg.From != nil && msg.From.ID == msg.Chat.ID
	if !ok || !private || msg.SenderBusinessBot != nil || m.Caller == "" || m.Kind != bot.Text {
		m.Kind = bot.Ignored
	}
}

// Connection returns who has connected the bot by a connection, and its state (Bot API getBusinessConnection). The id
// of the person is "" if the server does not know the connection.
func (c *Client) Connection(ctx context.Context, id string) (person, state string, err error) {
	var found *models.BusinessConnection
	err = c.callMethod(ctx, func(ctx context.Context) (err error) {
		found, err = c.api.GetBusinessConnection(ctx, &tg.GetBusinessConnectionParams{BusinessConnectionID: id})
		return err
	})
	var refused *bot.SendError
	switch {
	case errors.As(err, &refused) && refused.Outcome == bot.Refused:
		return "", disconnected, nil
	case err != nil:
		return "", "", fmt.Errorf("read a business connection: %w", err)
	}
	return strconv.FormatInt(found.User.ID, 10), connectionState(found), nil
}
