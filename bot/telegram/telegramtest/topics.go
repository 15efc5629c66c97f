package telegramtest

import (
	"slices"

	"github.com/go-telegram/bot/models"
)

const (
	maxTopicName = 128
	topicColor   = 7322096
)

// topicChat finds a chat whose topics the bot may manage: a private chat with topic mode, or a forum it is admin of.
func (s *Server) topicChat(r *request) (*chat, *apiError) {
	c, fail := s.readable(r)
	switch {
	case fail != nil:
		return nil, fail
	case c.private() && !s.opt.PrivateTopics, !c.private() && !c.info.IsForum:
		return nil, badRequest("the chat is not a forum")
	case !c.private() && c.bot != models.ChatMemberTypeAdministrator:
		return nil, badRequest(notEnoughRights + " to create a topic")
	}
	return c, nil
}

func createForumTopic(s *Server, r *request) (any, *apiError) {
	c, fail := s.topicChat(r)
	if fail != nil {
		return nil, fail
	}
	name := r.text("name")
	if n := len([]rune(name)); n == 0 || n > maxTopicName {
		return nil, badRequest("TOPIC_TITLE_EMPTY")
	}
	m := c.put(models.Message{
		From:              &s.me,
		IsTopicMessage:    true,
		ForumTopicCreated: &models.ForumTopicCreated{Name: name, IconColor: topicColor},
	}, s.opt.Now())
	m.body.MessageThreadID = m.body.ID
	c.addTopic(Topic{ID: m.body.ID, Name: name})
	r.made = m.body.ID
	return models.ForumTopic{MessageThreadID: m.body.ID, Name: name, IconColor: topicColor}, nil
}

func editForumTopic(s *Server, r *request) (any, *apiError) {
	c, fail := s.topicChat(r)
	if fail != nil {
		return nil, fail
	}
	t := c.topics[r.number("message_thread_id")]
	name := r.text("name")
	switch {
	case t == nil || c.general(t.ID):
		return nil, badRequest("TOPIC_ID_INVALID")
	case len([]rune(name)) > maxTopicName:
		return nil, badRequest("TOPIC_TITLE_EMPTY")
	case name == "" || name == t.Name:
		return nil, badRequest("TOPIC_NOT_MODIFIED")
	}
	t.Name = name
	c.put(models.Message{
		From:             &s.me,
		MessageThreadID:  t.ID,
		IsTopicMessage:   true,
		ForumTopicEdited: &models.ForumTopicEdited{Name: name},
	}, s.opt.Now())
	return true, nil
}

// StartTopic makes a person open a topic: in a forum, or in a private chat with Options.PrivateTopics. The bot gets the
// service message; the topic's id is the message's.
func (s *Server) StartTopic(userID, chatID int64, name string) (topicID int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, u, err := s.speaker(userID, chatID)
	if err != nil {
		return 0, err
	}
	if !c.info.IsForum && !(c.private() && s.opt.PrivateTopics) {
		return 0, misusef("chat %d has no topics", chatID)
	}
	m := c.put(models.Message{
		From: &u, IsTopicMessage: true, ForumTopicCreated: &models.ForumTopicCreated{Name: name, IconColor: topicColor},
	}, s.opt.Now())
	m.body.MessageThreadID = m.body.ID
	c.addTopic(Topic{ID: m.body.ID, Name: name})
	s.announce(c, m, models.AllowedUpdateMessage)
	return m.body.ID, nil
}

// DeleteTopic makes an admin delete a topic of a forum, with all that was written in it. The bot hears nothing of it.
func (s *Server) DeleteTopic(chatID int64, topicID int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil || c.topics[topicID] == nil || c.general(topicID) {
		return misusef("chat %d has no topic %d to delete", chatID, topicID)
	}
	delete(c.topics, topicID)
	c.topicOrder = slices.DeleteFunc(c.topicOrder, func(id int) bool { return id == topicID })
	for _, m := range c.order {
		if m.body.IsTopicMessage && m.body.MessageThreadID == topicID {
			m.deleted = true
		}
	}
	s.touch()
	return nil
}
