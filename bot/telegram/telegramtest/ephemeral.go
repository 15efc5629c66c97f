package telegramtest

import (
	"slices"
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
func (c *chat) show(to models.User, body models.Message, now time.Time) models.Message {
	body.Chat, body.Date, body.EphemeralMessageID, body.ReceiverUser = c.info, int(now.Unix()), len(c.alone)+1, &to
	c.alone = append(c.alone, &message{body: body, date: now, plain: body.Text != "", after: c.lastID})
	return body
}

// Alone lists the texts of the ephemeral messages that a person of a chat was sent.
func (s *Server) Alone(chatID, userID int64) []string {
	var out []string
	for _, m := range s.Ephemeral(chatID, userID) {
		out = append(out, m.Text)
	}
	return out
}

// Ephemeral returns the ephemeral messages that a person of a chat was sent, as that person sees them.
func (s *Server) Ephemeral(chatID, userID int64) []Shown {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil {
		return nil
	}
	var out []Shown
	for _, m := range c.alone {
		if m.body.ReceiverUser != nil && m.body.ReceiverUser.ID == userID {
			out = append(out, s.shown(m))
		}
	}
	return out
}

// PressAlone presses a button of an ephemeral message, with the data of one of its buttons.
func (s *Server) PressAlone(userID, chatID int64, ephemeralID int, data string) (callbackID string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, u, err := s.speaker(userID, chatID)
	if err != nil {
		return "", err
	}
	for _, m := range c.alone {
		if m.body.EphemeralMessageID != ephemeralID || m.body.ReceiverUser == nil || m.body.ReceiverUser.ID != userID {
			continue
		}
		if m.body.ReplyMarkup != nil &&
			slices.ContainsFunc(slices.Concat(m.body.ReplyMarkup.InlineKeyboard...), func(b Button) bool {
				return b.CallbackData == data && data != "" && b.Disabled == nil
			}) {
			return s.press(c, u, m, data), nil
		}
	}
	return "", misusef(
		"user %d sees no ephemeral message %d with a button of %q in chat %d", userID, ephemeralID, data, chatID,
	)
}
