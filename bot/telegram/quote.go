package telegram

import (
	"strconv"
	"strings"

	"github.com/go-telegram/bot/models"

	"github.com/zephbot/zephbot/bot"
)

// setReply sets the message that was replied to as a quotation, with what came with it, and reports whether it was
// written by this bot in this chat.
func (d Decoder) setReply(m *bot.Message, msg *models.Message) (own bool) {
	var q *bot.Quote
	switch r := msg.ReplyToMessage; {
	case r != nil && r.ForumTopicCreated == nil: // each message of a topic replies to its beginning
		q = d.quoteMessage(r)
	case msg.ExternalReply != nil:
		q = d.quoteExternal(msg.ExternalReply)
	case msg.ReplyToStory != nil:
		chat := &msg.ReplyToStory.Chat
		q = &bot.Quote{Author: nameOfChat(chat), Files: listQuoted(&models.Message{Story: msg.ReplyToStory})}
	default:
		return false
	}
	if msg.Quote != nil && msg.Quote.Text != "" {
		q.Text = msg.Quote.Text
	}
	if q.Text != "" || len(q.Files) > 0 {
		m.Reply = q
	}
	return q.Own
}

// quoteMessage quotes a message of the same chat.
func (d Decoder) quoteMessage(r *models.Message) *bot.Quote {
	q := &bot.Quote{ID: strconv.Itoa(r.ID), Text: r.Text, Files: listQuoted(r)}
	if q.Text == "" {
		q.Text = r.Caption
	}
	switch {
	case r.SenderChat != nil: // From is a stand-in
		q.Author = nameOfChat(r.SenderChat)
	case r.From != nil:
		d.setAuthor(q, r.From)
		q.Own = strconv.FormatInt(r.From.ID, 10) == d.ID
	}
	return q
}

// quoteExternal quotes a message of another chat or topic (Bot API ExternalReplyInfo): its text is not told, only the
// part that was quoted. It has no id that means anything in this chat. What this bot has written elsewhere is quoted
// like the words of others, because another conversation may have led to it.
func (d Decoder) quoteExternal(r *models.ExternalReplyInfo) *bot.Quote {
	q := &bot.Quote{Elsewhere: true, Files: listQuoted(&models.Message{
		Animation: r.Animation, Audio: r.Audio, Document: r.Document, PaidMedia: r.PaidMedia, Photo: r.Photo,
		Sticker: r.Sticker, Story: r.Story, Video: r.Video, VideoNote: r.VideoNote, Voice: r.Voice,
		Checklist: r.Checklist, Contact: r.Contact, Dice: r.Dice, Game: r.Game, Giveaway: r.Giveaway,
		GiveawayWinners: r.GiveawayWinners, Invoice: r.Invoice, Location: r.Location, Poll: r.Poll, Venue: r.Venue,
		LivePhoto: r.LivePhoto,
	})}
	if r.Chat != nil {
		q.Chat = nameOfChat(r.Chat)
	}
	switch o := &r.Origin; {
	case o.MessageOriginUser != nil:
		d.setAuthor(q, &o.MessageOriginUser.SenderUser)
	case o.MessageOriginHiddenUser != nil:
		q.Author = o.MessageOriginHiddenUser.SenderUserName
	case o.MessageOriginChat != nil:
		q.Author = nameOfChat(&o.MessageOriginChat.SenderChat)
	case o.MessageOriginChannel != nil:
		q.Author = nameOfChat(&o.MessageOriginChannel.Chat)
	}
	return q
}

// setAuthor sets the person who wrote what is quoted.
func (d Decoder) setAuthor(q *bot.Quote, u *models.User) {
	q.Author = strings.TrimSpace(u.FirstName + " " + u.LastName)
	q.Caller = Name + ":" + strconv.FormatInt(u.ID, 10)
}

// nameOfChat is what people call a chat.
func nameOfChat(c *models.Chat) string {
	if c.Title != "" {
		return c.Title
	}
	return strings.TrimSpace(c.FirstName + " " + c.LastName)
}

// listQuoted lists what came with a message that was replied to. There a sticker has a picture: who replies to it asks
// about it. That a message is formatted matters only if nothing else is told of it.
func listQuoted(msg *models.Message) []bot.Attachment {
	told := *msg
	if told.Text != "" {
		told.RichMessage = nil
	}
	list := listFiles(&told)
	if f := msg.Sticker; f != nil {
		for i := range list {
			if list[i].Kind == sticker {
				list[i].Still = stillPicture(f.Thumbnail, nil)
				if !f.IsAnimated && !f.IsVideo {
					list[i].Still = f.FileID
				}
			}
		}
	}
	return list
}
