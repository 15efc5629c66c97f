package telegram

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/go-telegram/bot/models"

	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/bot"
)

// Name is the channel's name.
const Name = "telegram"

// Identities that do not represent a person: they have no rights, no quota and no approvals.
const (
	anonymousAdmin  = 1087968824
	channelIdentity = 136817688
	serviceAccount  = 777000
)

// Decoder decodes updates to messages. It knows the bot, so that it can tell what is meant for it. Pure and safe for
// concurrent use.
type Decoder struct {
	ID       string // numeric id of the bot
	Username string // without @
	Bots     bool   // other bots in groups are callers too (Bot API 10.0, bot-to-bot)
}

// AllowedUpdates returns the kinds of updates that the bot requests. They have to be named: the server remembers the
// list, and its default omits some kinds.
func AllowedUpdates() []string {
	return []string{
		models.AllowedUpdateMessage, models.AllowedUpdateEditedMessage, models.AllowedUpdateCallbackQuery,
		models.AllowedUpdateMyChatMember,
		models.AllowedUpdateStoppedMessageGeneration, models.AllowedUpdateGuestMessage,
		models.AllowedUpdateBusinessConnection, models.AllowedUpdateBusinessMessage,
	}
}

// PersonLink returns the address that makes a name in a message a mention of that person.
func PersonLink(person string) string { return "tg://user?id=" + person }

// MessageLink returns the address of a message for those who are in its chat; "" = it has none, because the chat is no
// supergroup.
func MessageLink(place bot.Place, message string) string {
	id, ok := strings.CutPrefix(place.Chat, "-100")
	if _, err := strconv.Atoi(message); err != nil || !ok || place.Channel != Name || !place.Ordinary() {
		return ""
	}
	if place.Thread != "" {
		id += "/" + place.Thread
	}
	return "https://t.me/c/" + id + "/" + message
}

// Private returns the chat of a bot with one person; its id is that of the person.
func Private(botID, person string) bot.Place {
	return bot.Place{Channel: Name, Bot: botID, Surface: bot.SurfaceBot, Chat: person}
}

// Decode implements bot.Decoder.
func (d Decoder) Decode(raw []byte) (bot.Message, error) {
	var u models.Update
	if err := json.Unmarshal(raw, &u); err != nil {
		return bot.Message{}, fmt.Errorf("update: %w", err)
	}
	m := bot.Message{
		ID: strconv.FormatInt(u.ID, 10), Kind: bot.Ignored,
		Place: bot.Place{Channel: Name, Bot: d.ID, Surface: bot.SurfaceBot},
	}
	switch {
	case u.Message != nil:
		d.decodeMessage(&m, u.Message)
	case u.EditedMessage != nil:
		d.decodeMessage(&m, u.EditedMessage)
		m.Kind = bot.Edited
	case u.BusinessConnection != nil:
		d.decodeConnection(&m, u.BusinessConnection)
	case u.BusinessMessage != nil:
		d.decodeBusiness(&m, u.BusinessMessage)
	case u.GuestMessage != nil:
		d.decodeGuest(&m, u.GuestMessage)
	case u.CallbackQuery != nil:
		d.decodePress(&m, u.CallbackQuery)
	case u.StoppedMessageGeneration != nil:
		m.Kind = bot.StopTap
		d.setPlace(&m, u.StoppedMessageGeneration.Chat, u.StoppedMessageGeneration.MessageThreadID, true)
		d.setPerson(&m, &models.User{ID: u.StoppedMessageGeneration.Chat.ID})
	case u.MyChatMember != nil:
		d.decodeMember(&m, u.MyChatMember)
	}
	return m, nil
}

// setPlace sets the place of a message. The thread is only set if it is a topic: replies in ordinary groups have thread
// ids too.
func (d Decoder) setPlace(m *bot.Message, chat models.Chat, threadID int, topic bool) {
	m.Place.Chat = strconv.FormatInt(chat.ID, 10)
	m.Place.Group = chat.Type != models.ChatTypePrivate && chat.ID < 0
	m.Title = chat.Title
	if topic && threadID != 0 {
		m.Place.Thread = strconv.Itoa(threadID)
	}
}

// setPerson sets the sender. Caller remains empty for channels and anonymous identities.
func (d Decoder) setPerson(m *bot.Message, u *models.User) {
	if u == nil || u.IsBot || u.ID == anonymousAdmin || u.ID == channelIdentity || u.ID == serviceAccount || u.ID <= 0 {
		return
	}
	m.Person = strconv.FormatInt(u.ID, 10)
	m.Caller = Name + ":" + m.Person
	m.Username, m.Language = u.Username, u.LanguageCode
	m.Name = strings.TrimSpace(u.FirstName + " " + u.LastName)
	if m.Name == "" {
		m.Name = u.Username
	}
}

// otherBot fills in another bot that writes in a group, where such are callers.
func (d Decoder) otherBot(m *bot.Message, u *models.User) {
	if !d.Bots || !m.Place.Group || u == nil || !u.IsBot || u.ID <= 0 || strconv.FormatInt(u.ID, 10) == d.ID {
		return
	}
	switch u.ID {
	case anonymousAdmin, channelIdentity, serviceAccount:
		return
	}
	person := *u
	person.IsBot = false
	d.setPerson(m, &person)
	m.FromBot = true
}

func (d Decoder) decodeMessage(m *bot.Message, msg *models.Message) {
	d.setPlace(m, msg.Chat, msg.MessageThreadID, msg.IsTopicMessage)
	m.Message, m.At = strconv.Itoa(msg.ID), time.Unix(int64(msg.Date), 0).UTC()
	if msg.MigrateToChatID != 0 {
		m.Kind, m.Target = bot.Migrated, strconv.FormatInt(msg.MigrateToChatID, 10)
		return
	}
	if msg.MigrateFromChatID != 0 { // the same from the other side: updates of two chats come in any order
		m.Kind, m.Target = bot.Migrated, m.Place.Chat
		m.Place.Chat = strconv.FormatInt(msg.MigrateFromChatID, 10)
		return
	}
	if msg.ViaBot != nil || msg.IsAutomaticForward {
		return
	}
	if msg.SenderChat == nil {
		d.setPerson(m, msg.From)
		d.otherBot(m, msg.From)
	}
	m.Kind, m.Unnamed = bot.Text, msg.SenderChat != nil
	entities := msg.Entities
	if m.Text = msg.Text; m.Text == "" {
		m.Text, entities = msg.Caption, msg.CaptionEntities
	}
	m.Files, m.Forwarded = listFiles(msg), msg.ForwardOrigin != nil
	if m.Text == "" && len(m.Files) == 0 { // a service message: it only reports something
		m.Kind = bot.Ignored
		return
	}
	if msg.ForwardOrigin != nil && m.Text != "" {
		m.Text = prompt.Forwarded(m.Text)
		entities = nil
	}
	own := d.setReply(m, msg)
	text, mentioned, foreign := d.readCommand(m, entities)
	m.Text = text
	m.Addressed = !m.Place.Group || m.Command != "" || mentioned || (own && !foreign)
}

// readCommand finds a leading command, which a mention of the bot may precede or follow, and mentions of the bot, by
// entities with UTF-16 offsets. It returns the text without a leading mention. A command for another bot (foreign) is never meant for this
// one, even if it replies to one of its messages.
func (d Decoder) readCommand(m *bot.Message, list []models.MessageEntity) (text string, mentioned, foreign bool) {
	units := utf16.Encode([]rune(m.Text))
	text = m.Text
	begin := 0 // of what follows a leading mention
	for _, e := range list {
		if !isWithin(e, len(units)) {
			continue
		}
		word := string(utf16.Decode(units[e.Offset : e.Offset+e.Length]))
		switch e.Type {
		case models.MessageEntityTypeBotCommand:
			if e.Offset != begin {
				continue
			}
			name, target, _ := strings.Cut(strings.TrimPrefix(word, "/"), "@")
			if target != "" && !strings.EqualFold(target, d.Username) {
				foreign = true
				continue
			}
			m.Command = strings.ToLower(name)
			m.Args = d.withoutMention(strings.TrimSpace(string(utf16.Decode(units[e.Offset+e.Length:]))))
		case models.MessageEntityTypeMention:
			if strings.EqualFold(strings.TrimPrefix(word, "@"), d.Username) && d.Username != "" {
				mentioned = true
				if e.Offset == 0 {
					text = strings.TrimLeft(string(utf16.Decode(units[e.Length:])), afterMention)
					begin = len(units) - len(utf16.Encode([]rune(text)))
				}
			}
		case models.MessageEntityTypeTextMention:
			mentioned = mentioned || (e.User != nil && strconv.FormatInt(e.User.ID, 10) == d.ID)
		}
	}
	return text, mentioned, foreign
}

// afterMention is what stands between a leading mention and what is said.
const afterMention = " ,:\n"

// withoutMention returns what follows a command without a mention of the bot at its beginning.
func (d Decoder) withoutMention(args string) string {
	word, rest, _ := strings.Cut(args, " ")
	if d.Username != "" && strings.EqualFold(word, "@"+d.Username) {
		return strings.TrimSpace(rest)
	}
	return args
}

// isWithin reports whether an entity lies within a text of the given number of UTF-16 units.
func isWithin(e models.MessageEntity, units int) bool {
	return e.Offset >= 0 && e.Length > 0 && e.Offset <= units && e.Length <= units-e.Offset
}

func (d Decoder) decodePress(m *bot.Message, q *models.CallbackQuery) {
	m.Kind, m.Data, m.Query, m.Addressed = bot.Press, q.Data, q.ID, true
	inline := q.InlineMessageID != "" // the bot is set to get nothing else (Bot API 10.5, callback_query_mode)
	switch {
	case q.Message.Message != nil && !inline:
		msg := q.Message.Message
		d.setPlace(m, msg.Chat, msg.MessageThreadID, msg.IsTopicMessage)
		m.Message = strconv.Itoa(msg.ID)
		m.Shown = msg.ReplyMarkup != nil && slices.ContainsFunc(
			slices.Concat(msg.ReplyMarkup.InlineKeyboard...),
			func(b models.InlineKeyboardButton) bool { return b.CallbackData == q.Data },
		)
	case q.Message.InaccessibleMessage != nil && !inline:
		d.setPlace(m, q.Message.InaccessibleMessage.Chat, 0, false)
		m.Message = strconv.Itoa(q.Message.InaccessibleMessage.MessageID)
	default:
		m.Unplaced = true
		d.setPlace(m, models.Chat{ID: q.From.ID, Type: models.ChatTypePrivate}, 0, false)
	}
	d.setPerson(m, &q.From)
}

func (d Decoder) decodeMember(m *bot.Message, u *models.ChatMemberUpdated) {
	m.Kind = bot.Member
	d.setPlace(m, u.Chat, 0, false)
	d.setPerson(m, &u.From)
	out := isOutside(&u.NewChatMember)
	switch {
	case out == isOutside(&u.OldChatMember): // only rights changed
	case m.Place.Group && out:
		m.Status = "left"
	case m.Place.Group:
		m.Status = "joined"
	case out:
		m.Status = "blocked"
	default:
		m.Status = "unblocked"
	}
}

// isOutside reports whether a member is not in the chat.
func isOutside(m *models.ChatMember) bool {
	switch m.Type {
	case models.ChatMemberTypeLeft, models.ChatMemberTypeBanned:
		return true
	case models.ChatMemberTypeRestricted:
		return m.Restricted != nil && !m.Restricted.IsMember
	}
	return false
}

var _ bot.Decoder = Decoder{}
