package telegram

import (
	"context"
	"strconv"
	"strings"

	tg "github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/zephbot/zephbot/bot"
)

// Left reports whether a person has left a group or was removed from it (Bot API getChatMember). A bot that is no
// administrator of the group may be refused an answer; then it does not know, and nobody has left.
func (c *Client) Left(ctx context.Context, chat, person string) (bool, error) {
	id, err := strconv.ParseInt(person, 10, 64)
	if err != nil {
		return false, nil //nolint:nilerr // not a person of Telegram
	}
	var member *models.ChatMember
	err = c.callMethod(ctx, func(ctx context.Context) (err error) {
		member, err = c.api.GetChatMember(ctx, &tg.GetChatMemberParams{ChatID: chat, UserID: id})
		return err
	})
	if err != nil {
		return unknownMember(err)
	}
	switch member.Type {
	case models.ChatMemberTypeLeft, models.ChatMemberTypeBanned:
		return true, nil
	case models.ChatMemberTypeRestricted:
		return member.Restricted != nil && !member.Restricted.IsMember, nil
	case models.ChatMemberTypeOwner, models.ChatMemberTypeAdministrator, models.ChatMemberTypeMember:
	}
	return false, nil
}

// unknownMember says what a failed question means: a person who was never seen there, an answer that was refused, or
// none.
func unknownMember(err error) (bool, error) {
	switch bot.OutcomeOf(err) {
	case bot.Refused, bot.Gone, bot.Moved:
		text := strings.ToLower(err.Error())
		return strings.Contains(text, "participant_id_invalid") || strings.Contains(text, "user not found"), nil
	default:
		return false, err
	}
}
