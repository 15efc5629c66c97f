package telegramtest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot/models"
)

// AddUser makes a person known. It opens no chat: until AddPrivate or a first Say the bot cannot write to them.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[u.ID] = models.User{
		ID: u.ID, IsBot: u.Bot, FirstName: u.FirstName, LastName: u.LastName, Username: u.Username, LanguageCode: u.Language,
	}
	if c := s.chats[u.ID]; c != nil {
		c.info.FirstName, c.info.LastName, c.info.Username = u.FirstName, u.LastName, u.Username
	}
	s.touch()
}

// AddPrivate opens the private chat of a known person, as if /start had been pressed long ago.
func (s *Server) AddPrivate(userID int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.privateChat(userID); err != nil {
		s.problems = append(s.problems, err.Error())
	}
	s.touch()
}

// privateChat opens the private chat of a known person if it is not open yet. The lock is held.
func (s *Server) privateChat(userID int64) (*chat, error) {
	if c := s.chats[userID]; c != nil {
		return c, nil
	}
	u, ok := s.users[userID]
	if !ok {
		return nil, misusef("private chat: no user %d; call AddUser first", userID)
	}
	c := newChat(models.Chat{
		ID: userID, Type: models.ChatTypePrivate, FirstName: u.FirstName, LastName: u.LastName, Username: u.Username,
	})
	c.members[userID] = models.ChatMemberTypeMember
	s.chats[userID] = c
	return c, nil
}

// AddGroup makes a group with its people. The bot is a member, an admin when Admins names it, absent with NoBot.
func (s *Server) AddGroup(g Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := models.Chat{ID: g.ID, Type: models.ChatTypeGroup, Title: g.Title, Username: g.Username, IsForum: g.Forum}
	if g.Forum || strings.HasPrefix(strconv.FormatInt(g.ID, 10), "-100") {
		info.Type = models.ChatTypeSupergroup
	}
	if g.ID >= 0 {
		s.problems = append(s.problems, misusef("add group: id %d is not negative", g.ID).Error())
		return
	}
	c := newChat(info)
	for _, id := range g.Members {
		c.members[id] = models.ChatMemberTypeMember
	}
	for _, id := range g.Admins {
		c.members[id] = models.ChatMemberTypeAdministrator
	}
	switch {
	case g.NoBot:
		c.bot = models.ChatMemberTypeLeft
	case slices.Contains(g.Admins, s.me.ID):
		c.bot = models.ChatMemberTypeAdministrator
	}
	delete(c.members, s.me.ID)
	if g.Forum {
		c.addTopic(Topic{ID: generalTopic, Name: "General"})
		c.lastID = generalTopic
		for _, t := range g.Topics {
			if t.ID > generalTopic && c.topics[t.ID] == nil {
				c.addTopic(t)
				// A topic's id is the id of the service message that made it.
				c.lastID = max(c.lastID, t.ID)
			}
		}
	}
	s.chats[g.ID] = c
	s.touch()
}

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
	return s.sayAs(AnonymousAdminID, chatID, func(c *chat) *models.Chat { return &c.info }, m)
}

// ChannelSay makes somebody write in a group in the name of a channel: from is the fake user 136817688.
func (s *Server) ChannelSay(chatID int64, channel Group, m Message) (messageID int, updateID int64) {
	info := models.Chat{ID: channel.ID, Type: models.ChatTypeChannel, Title: channel.Title, Username: channel.Username}
	return s.sayAs(ChannelSenderID, chatID, func(*chat) *models.Chat { return &info }, m)
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
		Location: m.Location, Contact: m.Contact,
	}
	if m.ViaBot != nil {
		body.ViaBot = &models.User{ID: m.ViaBot.ID, IsBot: true, FirstName: m.ViaBot.FirstName, Username: m.ViaBot.Username}
	}
	if err := m.validate(); err != nil {
		return Said{}, err
	}
	if err := c.place(&body, m); err != nil {
		return Said{}, err
	}
	media := s.addMedia(&body, m)
	entities := detect(m.Text, m.Entities)
	switch {
	case media:
		body.Caption, body.CaptionEntities = m.Text, entities
	case m.Location != nil || m.Contact != nil:
	default:
		body.Text, body.Entities = m.Text, entities
	}
	sent := c.put(body, s.opt.Now())
	sent.plain = !media
	return Said{MessageID: sent.body.ID, UpdateID: s.announce(c, sent, models.AllowedUpdateMessage)}, nil
}

// validate refuses what no client could send.
func (m *Message) validate() error {
	media := m.Photo != nil || m.Document != nil || m.Voice != nil || m.Audio != nil || m.Video != nil || m.Sticker != nil
	limit := maxText
	if media {
		limit = maxCaption
	}
	if n := units(m.Text); n > limit {
		return misusef("a message of %d UTF-16 units: a client sends at most %d", n, limit)
	}
	if m.Text == "" && !media && m.Location == nil && m.Contact == nil {
		return misusef("a message needs text, a file, a location or a contact")
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

// quoted is a message as it stands inside reply_to_message: one level deep.
func (m *message) quoted() *models.Message {
	out := m.body
	out.ReplyToMessage = nil
	return &out
}

func (s *Server) addMedia(body *models.Message, m Message) bool {
	for kind, f := range map[string]*File{
		"photo": m.Photo, "document": m.Document, "voice": m.Voice, "audio": m.Audio, "video": m.Video, "sticker": m.Sticker,
	} {
		if f != nil {
			s.store(kind, *f).attach(body, *f)
			return true
		}
	}
	return false
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
	if s.opt.PrivacyOff || c.bot == models.ChatMemberTypeAdministrator || service(*b) != "" {
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

// EditText makes a person edit their own message, text or caption.
func (s *Server) EditText(userID, chatID int64, messageID int, text string) (updateID int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, _, err := s.speaker(userID, chatID)
	if err != nil {
		return 0, err
	}
	m := c.find(messageID)
	if m == nil || m.body.From == nil || m.body.From.ID != userID {
		return 0, misusef("user %d has no message %d in chat %d", userID, messageID, chatID)
	}
	entities := detect(text, nil)
	if m.plain {
		m.body.Text, m.body.Entities = text, entities
	} else {
		m.body.Caption, m.body.CaptionEntities = text, entities
	}
	s.markEdited(m)
	return s.announce(c, m, models.AllowedUpdateEditedMessage), nil
}

func (s *Server) markEdited(m *message) {
	m.edits++
	m.editedAt = s.opt.Now()
	m.body.EditDate = int(m.editedAt.Unix())
}

// DeleteMessage makes a person delete a message. Telegram tells bots nothing about it.
func (s *Server) DeleteMessage(chatID int64, messageID int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil || c.find(messageID) == nil {
		return misusef("chat %d has no message %d", chatID, messageID)
	}
	c.messages[messageID].deleted = true
	s.touch()
	return nil
}

// Stop presses the Stop button of a draft (Bot API 10.3). The draft disappears unless the bot asked to keep it.
func (s *Server) Stop(userID, chatID int64, draftID int) (updateID int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, _, err := s.speaker(userID, chatID)
	if err != nil {
		return 0, err
	}
	d := c.liveDraft(s.opt.Now())
	if d == nil || d.ID != draftID {
		return 0, misusef("chat %d shows no draft %d", chatID, draftID)
	}
	if !d.CanStop {
		return 0, misusef("draft %d of chat %d has no Stop button", draftID, chatID)
	}
	thread := d.Thread
	if !d.KeepOnStop {
		c.draft = nil
	}
	return s.push(models.AllowedUpdateStoppedMessageGeneration, laneOf("chat", chatID), updateLife, &models.Update{
		StoppedMessageGeneration: &models.MessageGenerationStopped{Chat: c.info, MessageThreadID: thread, DraftID: draftID},
	}), nil
}

// React makes a person react to a message. In groups the bot hears of it only as an admin that asked for the kind.
func (s *Server) React(userID, chatID int64, messageID int, emoji ...string) (updateID int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, u, err := s.speaker(userID, chatID)
	if err != nil {
		return 0, err
	}
	if c.find(messageID) == nil {
		return 0, misusef("chat %d has no message %d", chatID, messageID)
	}
	if !c.private() && c.bot != models.ChatMemberTypeAdministrator {
		return 0, nil
	}
	now := []models.ReactionType{}
	for _, e := range emoji {
		now = append(now, models.ReactionType{
			Type: models.ReactionTypeTypeEmoji, ReactionTypeEmoji: &models.ReactionTypeEmoji{Emoji: e},
		})
	}
	return s.push(models.AllowedUpdateMessageReaction, laneOf("chat", chatID), updateLife, &models.Update{
		MessageReaction: &models.MessageReactionUpdated{
			Chat: c.info, MessageID: messageID, User: &u, Date: int(s.opt.Now().Unix()),
			OldReaction: []models.ReactionType{}, NewReaction: now,
		},
	}), nil
}

// pressLife is how long an undelivered callback query is kept.
const pressLife = defaultPressLife

// unix is a date as Telegram writes it.
func unix(t time.Time) int { return int(t.Unix()) }
