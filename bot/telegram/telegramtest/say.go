package telegramtest

import (
	"strconv"
	"strings"

	"github.com/go-telegram/bot/models"
)

// Said is where a message of a person went.
type Said struct {
	MessageID int
	UpdateID  int64 // 0: the bot does not get to see it (privacy mode, allowed_updates, not in the group)
}

// Say makes a person write a message. updateID is 0 when the bot does not get to see it. Misuse, such as an unknown
// user or a group they are not in, gives 0, 0 and a line in Problems; Post returns it as an error.
func (s *Server) Say(userID, chatID int64, m Message) (messageID int, updateID int64) {
	said, err := s.Post(userID, chatID, m)
	if err != nil {
		s.misuse(err)
	}
	return said.MessageID, said.UpdateID
}

// Post is Say with an error. A private chat opens by itself.
func (s *Server) Post(userID, chatID int64, m Message) (Said, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, u, err := s.speaker(userID, chatID)
	if err != nil {
		return Said{}, err
	}
	return s.say(c, u, nil, m)
}

// AnonymousSay makes an admin of the group write as the group itself: from is the fake user 1087968824.
func (s *Server) AnonymousSay(chatID int64, m Message) (messageID int, updateID int64) {
	return s.sayAs(anonymousAdminID, chatID, func(c *chat) *models.Chat { return &c.info }, m)
}

// ChannelSay makes somebody write in a group in the name of a channel: from is the fake user 136817688.
func (s *Server) ChannelSay(chatID int64, channel Group, m Message) (messageID int, updateID int64) {
	info := models.Chat{ID: channel.ID, Type: models.ChatTypeChannel, Title: channel.Title, Username: channel.Username}
	return s.sayAs(channelSenderID, chatID, func(*chat) *models.Chat { return &info }, m)
}

func (s *Server) sayAs(fake, chatID int64, sender func(*chat) *models.Chat, m Message) (int, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil || c.private() {
		s.problems = append(s.problems, misusef("say as a chat: no group %d", chatID).Error())
		return 0, 0
	}
	said, err := s.say(c, s.users[fake], sender(c), m)
	if err != nil {
		s.problems = append(s.problems, err.Error())
	}
	return said.MessageID, said.UpdateID
}

// speaker finds who speaks where. The lock is held.
func (s *Server) speaker(userID, chatID int64) (*chat, models.User, error) {
	u, ok := s.users[userID]
	if !ok {
		return nil, u, misusef("no user %d; call AddUser first", userID)
	}
	if chatID == userID {
		c, err := s.privateChat(userID)
		return c, u, err
	}
	c := s.chats[chatID]
	if c == nil {
		return nil, u, misusef("no chat %d; call AddGroup first", chatID)
	}
	if c.migratedTo != 0 {
		return nil, u, misusef("chat %d became supergroup %d", chatID, c.migratedTo)
	}
	if !present(c.members[userID]) {
		return nil, u, misusef("user %d is not in chat %d", userID, chatID)
	}
	return c, u, nil
}

// say stores a person's message and queues the update. The lock is held.
func (s *Server) say(c *chat, u models.User, sender *models.Chat, m Message) (Said, error) {
	body := models.Message{
		From: &u, SenderChat: sender, MediaGroupID: m.MediaGroup, ForwardOrigin: m.ForwardOrigin,
		Location: m.Location, Contact: m.Contact, Poll: m.Poll, Dice: m.Dice,
	}
	if m.Venue != nil { // told as a location too, for bots that do not know venues
		body.Venue, body.Location = m.Venue, &m.Venue.Location
	}
	if m.ViaBot != nil {
		body.ViaBot = &models.User{
			ID:        m.ViaBot.ID,
			IsBot:     true,
			FirstName: m.ViaBot.FirstName,
			Username:  m.ViaBot.Username,
		}
	}
	if err := m.validate(); err != nil {
		return Said{}, err
	}
	if err := c.place(&body, m); err != nil {
		return Said{}, err
	}
	if err := c.album(&m); err != nil {
		return Said{}, err
	}
	media := s.addMedia(&body, m)
	entities := detect(m.Text, m.Entities)
	switch {
	case media:
		body.Caption, body.CaptionEntities = m.Text, entities
	case m.wordless():
	default:
		body.Text, body.Entities = m.Text, entities
	}
	sent := c.put(body, s.opt.Now())
	sent.plain = !media
	return Said{MessageID: sent.body.ID, UpdateID: s.announce(c, sent, models.AllowedUpdateMessage)}, nil
}

// validate refuses what no client could send.
func (m *Message) validate() error {
	media := len(m.media()) > 0
	limit := maxText
	if media {
		limit = maxCaption
	}
	if n := units(m.Text); n > limit {
		return misusef("a message of %d UTF-16 units: a client sends at most %d", n, limit)
	}
	if m.Text == "" && !media && !m.wordless() {
		return misusef("a message needs text, a file, a location or the like")
	}
	if len(m.media()) > 1 {
		return misusef("a message has one file; several are an album")
	}
	if f := m.Photo; f != nil && (max(f.Size, int64(len(f.Data))) > maxPhoto || f.Width+f.Height > maxPhotoSides) {
		return misusef("a photo has at most %d bytes and width and height of %d together: a client sends what is "+
			"larger as a document", maxPhoto, maxPhotoSides)
	}
	if fail := checkEntities(m.Text, m.Entities); fail != nil {
		return misusef("entities of a message: %w", fail)
	}
	return nil
}

// place sets topic and reply of a message.
func (c *chat) place(body *models.Message, m Message) error {
	if m.Thread != 0 && !c.general(m.Thread) {
		if c.topics[m.Thread] == nil {
			return misusef("chat %d has no topic %d", c.info.ID, m.Thread)
		}
		body.MessageThreadID, body.IsTopicMessage = m.Thread, true
	}
	if m.ReplyTo == 0 {
		return nil
	}
	to := c.messages[m.ReplyTo]
	if to == nil {
		return misusef("chat %d has no message %d to reply to", c.info.ID, m.ReplyTo)
	}
	body.ReplyToMessage = to.quoted()
	if m.Quote != "" {
		body.Quote = &models.TextQuote{Text: m.Quote, IsManual: true}
	}
	return nil
}

// quoted is a message as it is inside reply_to_message: one level deep.
func (m *message) quoted() *models.Message {
	out := m.body
	out.ReplyToMessage = nil
	return &out
}

// announce queues a message update if the bot gets to see it. The lock is held.
func (s *Server) announce(c *chat, m *message, kind string) int64 {
	if !s.sees(c, &m.body) {
		s.touch()
		return 0
	}
	body := m.body
	u := &models.Update{Message: &body}
	if kind == models.AllowedUpdateEditedMessage {
		u = &models.Update{EditedMessage: &body}
	}
	return s.push(kind, laneOf("chat", c.info.ID), updateLife, u)
}

func laneOf(kind string, id int64) string { return kind + ":" + strconv.FormatInt(id, 10) }

// ReadAll makes the bot see every group message from now on, as after /setprivacy Disable.
func (s *Server) ReadAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.me.CanReadAllGroupMessages = true
}

// sees applies membership and privacy mode: commands, mentions, replies to the bot, messages via it and service
// messages pass; everything else only for admins and with privacy off. Other bots are never seen.
func (s *Server) sees(c *chat, b *models.Message) bool {
	if c.private() {
		return !c.blocked
	}
	if !present(c.bot) {
		return false
	}
	if b.From != nil && b.From.IsBot && b.SenderChat == nil {
		return false
	}
	if s.me.CanReadAllGroupMessages || c.bot == models.ChatMemberTypeAdministrator || service(*b) != "" {
		return true
	}
	if b.ReplyToMessage != nil && b.ReplyToMessage.From != nil && b.ReplyToMessage.From.ID == s.me.ID {
		return true
	}
	if b.ViaBot != nil && b.ViaBot.ID == s.me.ID {
		return true
	}
	return s.addressed(b.Text, b.Entities) || s.addressed(b.Caption, b.CaptionEntities)
}

// addressed says whether a command without another bot's name, or a mention of the bot, is in the text.
func (s *Server) addressed(text string, entities []models.MessageEntity) bool {
	starts := runeStarts(text)
	for _, e := range entities {
		switch e.Type {
		case models.MessageEntityTypeBotCommand:
			_, to, named := strings.Cut(text[starts[e.Offset]:starts[e.Offset+e.Length]], "@")
			if !named || strings.EqualFold(to, s.me.Username) {
				return true
			}
		case models.MessageEntityTypeMention:
			if strings.EqualFold(text[starts[e.Offset]:starts[e.Offset+e.Length]], "@"+s.me.Username) {
				return true
			}
		case models.MessageEntityTypeTextMention:
			if e.User != nil && e.User.ID == s.me.ID {
				return true
			}
		}
	}
	return false
}
