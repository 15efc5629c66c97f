package telegramtest

import (
	"time"

	"github.com/go-telegram/bot/models"
)

// ephemeral reads who alone is to see a message (Bot API 10.2); 0 = everybody. The bot has to be an admin of the group:
// without that the server wants a press of the last 15 s, which this one does not know.
func (c *chat) ephemeral(r *request) (int64, *apiError) {
	var p models.EphemeralMessageParameters
	given, fail := r.decode("ephemeral_message_parameters", &p)
	switch {
	case fail != nil:
		return 0, badRequest("can't parse ephemeral message parameters JSON object")
	case !given:
		return 0, nil
	case c.private():
		return 0, badRequest("ephemeral messages can be sent only to groups")
	case c.bot != models.ChatMemberTypeAdministrator:
		return 0, badRequest(notEnoughRights + " to send ephemeral messages to the chat")
	case !present(c.members[p.ReceiverUserID]):
		return 0, badRequest("USER_NOT_PARTICIPANT")
	}
	return p.ReceiverUserID, nil
}

// show keeps a message that one person sees. It is none of the chat's messages, and has no id among them.
func (c *chat) show(to int64, body models.Message, now time.Time) models.Message {
	if c.alone == nil {
		c.alone = map[int64][]string{}
	}
	c.alone[to] = append(c.alone[to], body.Text)
	body.Chat, body.Date, body.EphemeralMessageID = c.info, int(now.Unix()), len(c.alone[to])
	return body
}

// Alone lists the texts of the ephemeral messages that a person of a chat was sent.
func (s *Server) Alone(chatID, userID int64) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil {
		return nil
	}
	return append([]string(nil), c.alone[userID]...)
}
