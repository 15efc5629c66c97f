package telegramtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/go-telegram/bot/models"
)

// guestLife is how long a guest query can be answered. Telegram names no time; bots report that an answer after the
// seconds that a model needs comes too late.
const guestLife = 15 * time.Second

// guestQuery is a question in a chat that the bot is not in.
type guestQuery struct {
	chat     *chat
	message  *message
	at       time.Time
	answered bool
}

// away is what the bot does in chats that it is not in itself.
type away struct {
	guests   map[string]*guestQuery // by query id
	inline   map[string]*message    // messages of the bot as a guest, by inline_message_id
	business map[string]*connection // by id
}

// GuestSay makes a person mention the bot in a group that it is not in (Bot API 10.0). The bot gets that message alone.
func (s *Server) GuestSay(userID, chatID int64, m Message) (Said, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, u, err := s.speaker(userID, chatID)
	if err != nil {
		return Said{}, err
	}
	if present(c.bot) {
		return Said{}, misusef("the bot is in chat %d: nobody can ask it there as a guest", chatID)
	}
	if !strings.Contains(strings.ToLower(m.Text), "@"+strings.ToLower(s.me.Username)) {
		return Said{}, misusef("a guest is asked by a mention")
	}
	if err := m.validate(); err != nil {
		return Said{}, err
	}
	body := models.Message{From: &u, Text: m.Text, Entities: detect(m.Text, m.Entities)}
	if err := c.place(&body, m); err != nil {
		return Said{}, err
	}
	sent := c.put(body, s.opt.Now())
	query := fmt.Sprintf("guest-%d-%d", -chatID, sent.body.ID)
	s.away.guests[query] = &guestQuery{chat: c, message: sent, at: s.opt.Now()}
	body = sent.body
	body.GuestQueryID = query
	u2 := &models.Update{GuestMessage: &body}
	return Said{
		MessageID: sent.body.ID,
		UpdateID:  s.push(models.AllowedUpdateGuestMessage, laneOf("chat", chatID), guestLife, u2),
	}, nil
}

// guestResult is the kind of result that can be answered with here: an article with a text.
type guestResult struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Title   string `json:"title"`
	Content struct {
		Text      string                     `json:"message_text"`
		ParseMode string                     `json:"parse_mode"`
		Entities  json.RawMessage            `json:"entities"`
		Preview   *models.LinkPreviewOptions `json:"link_preview_options"`
	} `json:"input_message_content"`
	ReplyMarkup json.RawMessage `json:"reply_markup"`
}

// answerGuestQuery posts the one message of the bot in a chat that it is not in.
func answerGuestQuery(s *Server, r *request) (any, *apiError) {
	q := s.away.guests[r.text("guest_query_id")]
	if q == nil || q.answered || s.opt.Now().Sub(q.at) >= guestLife {
		return nil, badRequest(queryTooOld)
	}
	var result guestResult
	d := json.NewDecoder(bytes.NewReader([]byte(r.text("result"))))
	d.DisallowUnknownFields()
	if err := d.Decode(&result); err != nil {
		return nil, badRequestf("can't parse InlineQueryResult (%v)", err)
	}
	switch {
	case result.Type != "article":
		return nil, badRequestf("can't parse InlineQueryResult: unsupported type %q", result.Type)
	case result.ID == "" || len(result.ID) > 64:
		return nil, badRequest("RESULT_ID_INVALID")
	case result.Title == "":
		return nil, badRequest("RESULT_TITLE_EMPTY")
	}
	content := &request{params: map[string]string{
		"text":         result.Content.Text,
		"parse_mode":   result.Content.ParseMode,
		"entities":     string(result.Content.Entities),
		"reply_markup": string(result.ReplyMarkup),
	}}
	text, entities, fail := content.formatted("text", "entities")
	switch {
	case fail != nil:
		return nil, fail
	case text == "":
		return nil, badRequest("message text is empty")
	case units(text) > maxText:
		return nil, badRequest(textTooLong)
	}
	keyboard, fail := content.keyboard()
	if fail != nil {
		return nil, fail
	}
	q.answered = true
	m := q.chat.put(models.Message{
		From: &s.me, Text: text, Entities: entities, ReplyToMessage: q.message.quoted(), ReplyMarkup: keyboard,
	}, s.opt.Now())
	m.plain = true
	id := "inline-" + r.text("guest_query_id")
	s.away.inline[id] = m
	return map[string]string{"inline_message_id": id}, nil
}
