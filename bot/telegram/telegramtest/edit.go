package telegramtest

import (
	"time"

	"github.com/go-telegram/bot/models"
)

const deleteWindow = 48 * time.Hour

// editable finds the bot's own message a request wants to edit.
func (s *Server) editable(r *request) (*message, *apiError) {
	if id := r.text("inline_message_id"); id != "" {
		if m := s.away.inline[id]; m != nil {
			return m, nil
		}
		return nil, badRequest("MESSAGE_ID_INVALID")
	}
	c, fail := s.readable(r)
	if fail != nil {
		return nil, fail
	}
	if r.text("message_id") == "" {
		return nil, badRequest("message identifier is not specified")
	}
	m := c.find(r.number("message_id"))
	switch {
	case m == nil:
		return nil, badRequest(editNotFound)
	case m.body.From == nil || m.body.From.ID != s.me.ID || service(m.body) != "":
		return nil, badRequest(cantEdit)
	}
	return m, nil
}

// edited stores a changed body unless nothing changed. An edit without reply_markup takes the keyboard away.
func (s *Server) edited(m *message, r *request, body models.Message) (any, *apiError) {
	keyboard, fail := r.keyboard()
	if fail != nil {
		return nil, fail
	}
	body.ReplyMarkup = keyboard
	old := m.body
	same := old.Text == body.Text && old.Caption == body.Caption && sameContent(old.Entities, body.Entities) &&
		sameContent(old.CaptionEntities, body.CaptionEntities) && sameContent(old.ReplyMarkup, body.ReplyMarkup)
	if same {
		return nil, badRequest(notModified)
	}
	m.body = body
	s.markEdited(m)
	if r.text("inline_message_id") != "" {
		return true, nil
	}
	return m.body, nil
}

func editMessageText(s *Server, r *request) (any, *apiError) {
	m, fail := s.editable(r)
	if fail != nil {
		return nil, fail
	}
	if r.text("text") == "" {
		return nil, badRequest(textEmpty)
	}
	text, entities, fail := r.formatted("text", "entities")
	switch {
	case fail != nil:
		return nil, fail
	case text == "":
		return nil, badRequest("text must be non-empty")
	case units(text) > maxText:
		return nil, badRequest(textTooLong)
	case !m.plain:
		return nil, badRequest("there is no text in the message to edit")
	}
	body := m.body
	body.Text, body.Entities = text, entities
	return s.edited(m, r, body)
}

func editMessageCaption(s *Server, r *request) (any, *apiError) {
	m, fail := s.editable(r)
	if fail != nil {
		return nil, fail
	}
	caption, entities, fail := r.formatted("caption", "caption_entities")
	switch {
	case fail != nil:
		return nil, fail
	case units(caption) > maxCaption:
		return nil, badRequest("message caption is too long")
	case m.plain:
		return nil, badRequest("there is no caption in the message to edit")
	}
	body := m.body
	body.Caption, body.CaptionEntities = caption, entities
	return s.edited(m, r, body)
}

func editMessageReplyMarkup(s *Server, r *request) (any, *apiError) {
	m, fail := s.editable(r)
	if fail != nil {
		return nil, fail
	}
	return s.edited(m, r, m.body)
}

// deletable says why a message cannot be deleted, or nil.
func (s *Server) deletable(c *chat, m *message) *apiError {
	own := m.body.From != nil && m.body.From.ID == s.me.ID
	switch {
	case s.opt.Now().Sub(m.date) >= deleteWindow,
		!own && !c.private() && c.bot != models.ChatMemberTypeAdministrator:
		return badRequest("message can't be deleted")
	}
	return nil
}

func deleteMessage(s *Server, r *request) (any, *apiError) {
	c, fail := s.readable(r)
	if fail != nil {
		return nil, fail
	}
	if r.text("message_id") == "" {
		return nil, badRequest("message identifier is not specified")
	}
	m := c.find(r.number("message_id"))
	if m == nil {
		return nil, badRequest("message to delete not found")
	}
	if fail := s.deletable(c, m); fail != nil {
		return nil, fail
	}
	m.deleted = true
	return true, nil
}

// deleteMessages skips what is not there and what may not be deleted.
func deleteMessages(s *Server, r *request) (any, *apiError) {
	c, fail := s.readable(r)
	if fail != nil {
		return nil, fail
	}
	var ids []int
	set, fail := r.decode("message_ids", &ids)
	switch {
	case fail != nil:
		return nil, fail
	case !set || len(ids) == 0:
		return nil, badRequest("message identifiers are not specified")
	case len(ids) > 100:
		return nil, badRequest("too many message identifiers specified")
	}
	for _, id := range ids {
		if m := c.find(id); m != nil && s.deletable(c, m) == nil {
			m.deleted = true
		}
	}
	return true, nil
}
