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
		ID:           u.ID,
		IsBot:        u.Bot,
		FirstName:    u.FirstName,
		LastName:     u.LastName,
		Username:     u.Username,
		LanguageCode: u.Language,
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
		StoppedMessageGeneration: &models.MessageGenerationStopped{
			Chat:            c.info,
			MessageThreadID: thread,
			DraftID:         draftID,
		},
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
