package telegramtest

import (
	"time"

	"github.com/go-telegram/bot/models"
)

// businessLife is how long after a person's last message a business account's bot may write to them.
const businessLife = 24 * time.Hour

// firstBusinessChat is the number under which the first chat of a business account is kept here. To the bot such a chat
// has the id of the other person, like the bot's own chat with them.
const firstBusinessChat int64 = 9_000_000_000_000

// connection is a business account that is connected with the bot.
type connection struct {
	id    string
	owner models.User
	state models.BusinessConnection
	chats map[int64]*businessChat // by person
}

type businessChat struct {
	*chat
	number int64
	spoke  time.Time // when the person last wrote
}

// Connect connects a person's business account with the bot, or changes the connection: whether it is enabled, and
// whether the bot may answer. It returns the id of the update.
func (s *Server) Connect(userID int64, id string, enabled, replies bool) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.users[userID]
	if !ok {
		return 0, misusef("no user %d; call AddUser first", userID)
	}
	c := s.away.business[id]
	if c == nil {
		c = &connection{id: id, owner: u, chats: map[int64]*businessChat{}}
		s.away.business[id] = c
	}
	c.state = models.BusinessConnection{
		ID: id, User: u, UserChatID: userID, Date: s.opt.Now().Unix(), IsEnabled: enabled,
		Rights: &models.BusinessBotRights{CanReply: replies},
	}
	state := c.state
	return s.push(models.AllowedUpdateBusinessConnection, laneOf("user", userID), updateLife, &models.Update{
		BusinessConnection: &state,
	}), nil
}

// BusinessSay makes somebody write to the owner of a connected account, or the owner to them (asOwner). It returns the
// number of that chat, for Chat and Message.
func (s *Server) BusinessSay(
	id string, userID int64, asOwner bool, m Message,
) (chatNumber int64, said Said, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, u := s.away.business[id], s.users[userID]
	if c == nil || u.ID == 0 {
		return 0, said, misusef("no connection %q or no user %d", id, userID)
	}
	if err := m.validate(); err != nil {
		return 0, said, err
	}
	b := c.chats[userID]
	if b == nil {
		number := firstBusinessChat
		for s.chats[number] != nil {
			number++
		}
		b = &businessChat{
			number: number,
			chat:   newChat(models.Chat{ID: userID, Type: models.ChatTypePrivate, FirstName: u.FirstName}),
		}
		c.chats[userID], s.chats[number] = b, b.chat
	}
	body := models.Message{From: &u, Text: m.Text, Entities: detect(m.Text, m.Entities), BusinessConnectionID: id}
	if asOwner {
		owner := c.owner
		body.From = &owner
	} else {
		b.spoke = s.opt.Now()
	}
	sent := b.put(body, s.opt.Now())
	said.MessageID = sent.body.ID
	if c.state.IsEnabled {
		out := sent.body
		said.UpdateID = s.push(
			models.AllowedUpdateBusinessMessage,
			laneOf("business", userID),
			updateLife,
			&models.Update{
				BusinessMessage: &out,
			},
		)
	}
	return b.number, said, nil
}

// getBusinessConnection tells about a connection.
func getBusinessConnection(s *Server, r *request) (any, *apiError) {
	c := s.away.business[r.text("business_connection_id")]
	if c == nil {
		return nil, badRequest("BUSINESS_CONNECTION_INVALID")
	}
	return c.state, nil
}

// businessChat resolves the chat of a request in the name of a business account.
func (s *Server) businessChat(r *request) (*chat, *apiError) {
	c := s.away.business[r.text("business_connection_id")]
	switch {
	case c == nil || !c.state.IsEnabled:
		return nil, badRequest("BUSINESS_CONNECTION_INVALID")
	case c.state.Rights == nil || !c.state.Rights.CanReply:
		return nil, badRequest("BUSINESS_CONNECTION_NOT_ALLOWED")
	}
	id, err := r.integer("chat_id")
	if err != nil {
		return nil, badRequest(chatNotFound)
	}
	b := c.chats[id]
	if b == nil || s.opt.Now().Sub(b.spoke) >= businessLife {
		return nil, badRequest("BUSINESS_PEER_USAGE_MISSING")
	}
	return b.chat, nil
}
