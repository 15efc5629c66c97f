package telegramtest

import (
	"slices"
	"strconv"
	"time"

	"github.com/go-telegram/bot/models"
)

const maxAnswer = 200 // characters of answerCallbackQuery

// callback is a pressed button.
type callback struct {
	user     int64
	chat     int64
	message  int
	data     string
	at       time.Time
	answered bool
}

// Press sends a press with any data, also data no button has: a client can forge it. A deleted message is sent as an
// inaccessible one (date 0). PressButton is the honest way.
func (s *Server) Press(userID, chatID int64, messageID int, data string) (callbackID string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, u, err := s.speaker(userID, chatID)
	if err != nil {
		return "", err
	}
	m := c.messages[messageID]
	if m == nil {
		return "", misusef("chat %d has no message %d to press a button of", chatID, messageID)
	}
	return s.press(c, u, m, data), nil
}

// HidePressed makes presses say an inline_message_id instead of the message, as for a bot whose callback_query_mode is set
// so (Bot API 10.5).
func (s *Server) HidePressed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hides = true
}

// PressButton presses the enabled callback button with this label.
func (s *Server) PressButton(userID, chatID int64, messageID int, label string) (callbackID string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, u, err := s.speaker(userID, chatID)
	if err != nil {
		return "", err
	}
	m := c.find(messageID)
	if m == nil {
		return "", misusef("chat %d shows no message %d", chatID, messageID)
	}
	var labels []string
	if m.body.ReplyMarkup != nil {
		for _, b := range slices.Concat(m.body.ReplyMarkup.InlineKeyboard...) {
			if b.CallbackData == "" || b.Disabled != nil {
				continue
			}
			if b.Text == label {
				return s.press(c, u, m, b.CallbackData), nil
			}
			labels = append(labels, b.Text)
		}
	}
	return "", misusef("message %d of chat %d has no button %q to press, only %q", messageID, chatID, label, labels)
}

// press queues the callback query. The lock is held.
func (s *Server) press(c *chat, u models.User, m *message, data string) string {
	id := strconv.FormatInt(4_000_000_000_000_000+int64(len(s.callbacks))*1_000_003+u.ID%1000, 10)
	s.callbacks[id] = &callback{user: u.ID, chat: c.info.ID, message: m.body.ID, data: data, at: s.opt.Now()}
	q := &models.CallbackQuery{ID: id, From: u, ChatInstance: c.instance, Data: data}
	switch {
	case s.hides:
		q.InlineMessageID = "inline" + id
	case m.deleted:
		q.Message.Type = models.MaybeInaccessibleMessageTypeInaccessibleMessage
		q.Message.InaccessibleMessage = &models.InaccessibleMessage{Chat: c.info, MessageID: m.body.ID}
	default:
		body := m.body
		q.Message.Message = &body
	}
	s.push(models.AllowedUpdateCallbackQuery, laneOf("user", u.ID), pressLife, &models.Update{CallbackQuery: q})
	return id
}

func answerCallbackQuery(s *Server, r *request) (any, *apiError) {
	now := s.opt.Now()
	q := s.callbacks[r.text("callback_query_id")]
	text := r.text("text")
	switch {
	case q == nil, q.answered, now.Sub(q.at) >= s.opt.CallbackDeadline:
		return nil, badRequest(queryTooOld)
	case len([]rune(text)) > maxAnswer:
		return nil, badRequest("MESSAGE_TOO_LONG")
	case r.text("url") != "":
		// Only games and the bot's own t.me links may be opened.
		return nil, badRequest("URL_INVALID")
	}
	q.answered = true
	s.answers = append(s.answers, CallbackAnswer{
		ID: r.text("callback_query_id"), User: q.user, Chat: q.chat, Message: q.message, Data: q.data, Text: text,
		ShowAlert: r.flag("show_alert"), At: now,
	})
	return true, nil
}

// CallbackAnswers returns the accepted answers to presses, oldest first.
func (s *Server) CallbackAnswers() []CallbackAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.answers)
}

// CallbackAnswered returns the answer to one press.
func (s *Server) CallbackAnswered(callbackID string) (CallbackAnswer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.answers {
		if a.ID == callbackID {
			return a, true
		}
	}
	return CallbackAnswer{}, false
}
