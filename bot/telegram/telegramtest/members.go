package telegramtest

import (
	"github.com/go-telegram/bot/models"
)

// Block makes a person block the bot: my_chat_member "kicked", then 403 on every send.
func (s *Server) Block(userID int64) (updateID int64, err error) {
	return s.block(userID, true)
}

// Unblock undoes Block: my_chat_member "member".
func (s *Server) Unblock(userID int64) (updateID int64, err error) {
	return s.block(userID, false)
}

func (s *Server) block(userID int64, blocked bool) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.privateChat(userID)
	if err != nil {
		return 0, err
	}
	if c.blocked == blocked {
		return 0, misusef("user %d: blocked is already %t", userID, blocked)
	}
	c.blocked = blocked
	now := models.ChatMemberTypeMember
	if blocked {
		now = models.ChatMemberTypeBanned
	}
	return s.changeBot(c, s.users[userID], now), nil
}

// Join makes a person add the bot to a group: my_chat_member and the service message.
func (s *Server) Join(userID, chatID int64) (updateID int64, err error) {
	return s.move(userID, chatID, models.ChatMemberTypeMember)
}

// Promote makes the bot an admin of a group; from then on it sees everything.
func (s *Server) Promote(userID, chatID int64) (updateID int64, err error) {
	return s.move(userID, chatID, models.ChatMemberTypeAdministrator)
}

// Leave makes a person remove the bot from a group: my_chat_member "kicked", then 403.
func (s *Server) Leave(userID, chatID int64) (updateID int64, err error) {
	return s.move(userID, chatID, models.ChatMemberTypeBanned)
}

func (s *Server) move(userID, chatID int64, to models.ChatMemberType) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, u, err := s.speaker(userID, chatID)
	if err != nil {
		return 0, err
	}
	if c.private() {
		return 0, misusef("chat %d is private; use Block and Unblock", chatID)
	}
	if c.bot == to {
		return 0, misusef("the bot is already %s in chat %d", to, chatID)
	}
	was := present(c.bot)
	id := s.changeBot(c, u, to)
	switch {
	case !was && present(to):
		m := c.put(models.Message{From: &u, NewChatMembers: []models.User{s.me}}, s.opt.Now())
		s.announce(c, m, models.AllowedUpdateMessage)
	case was && !present(to):
		c.put(models.Message{From: &u, LeftChatMember: &s.me}, s.opt.Now())
	}
	return id, nil
}

// changeBot changes what the bot is in a chat and queues my_chat_member. The lock is held.
func (s *Server) changeBot(c *chat, by models.User, to models.ChatMemberType) int64 {
	was := c.bot
	c.bot = to
	if c.private() {
		// In a private chat the state is kept in blocked; the bot stays what it is.
		c.bot = models.ChatMemberTypeMember
		if was = models.ChatMemberTypeMember; to == was {
			was = models.ChatMemberTypeBanned
		}
	}
	return s.push(models.AllowedUpdateMyChatMember, laneOf("chat", c.info.ID), updateLife, &models.Update{
		MyChatMember: &models.ChatMemberUpdated{
			Chat: c.info, From: by, Date: unix(s.opt.Now()),
			OldChatMember: chatMember(s.me, was), NewChatMember: chatMember(s.me, to),
		},
	})
}

// Enter makes a person a member of a group, Exit takes them out. The bot gets the service message.
func (s *Server) Enter(userID, chatID int64) error { return s.walk(userID, chatID, true) }

// Exit takes a person out of a group.
func (s *Server) Exit(userID, chatID int64) error { return s.walk(userID, chatID, false) }

func (s *Server) walk(userID, chatID int64, in bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, u := s.chats[chatID], s.users[userID]
	if c == nil || c.private() || u.ID == 0 {
		return misusef("no group %d or no user %d", chatID, userID)
	}
	body := models.Message{From: &u, NewChatMembers: []models.User{u}}
	if in {
		c.members[userID] = models.ChatMemberTypeMember
	} else {
		delete(c.members, userID)
		body = models.Message{From: &u, LeftChatMember: &u}
	}
	s.announce(c, c.put(body, s.opt.Now()), models.AllowedUpdateMessage)
	return nil
}

// Migrate turns a basic group into a supergroup: service messages on both sides, and from then on 400 with
// migrate_to_chat_id on the old id.
func (s *Server) Migrate(groupID int64) (newID int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[groupID]
	if c == nil || c.info.Type != models.ChatTypeGroup || c.migratedTo != 0 {
		return 0, misusef("chat %d is no basic group", groupID)
	}
	s.groupIDs--
	for s.chats[s.groupIDs] != nil {
		s.groupIDs--
	}
	info := c.info
	info.ID, info.Type = s.groupIDs, models.ChatTypeSupergroup
	next := newChat(info)
	next.members, next.bot = c.members, c.bot
	s.chats[info.ID] = next
	from := s.users[anonymousAdminID]
	old := c.put(models.Message{From: &from, SenderChat: &c.info, MigrateToChatID: info.ID}, s.opt.Now())
	s.announce(c, old, models.AllowedUpdateMessage)
	c.migratedTo = info.ID
	born := next.put(models.Message{From: &from, SenderChat: &next.info, MigrateFromChatID: groupID}, s.opt.Now())
	s.announce(next, born, models.AllowedUpdateMessage)
	return info.ID, nil
}
