package telegramtest

import (
	"slices"
	"strings"

	"github.com/go-telegram/bot/models"
)

const (
	maxButtonData = 64 // bytes
	maxButtons    = 100
	maxPerRow     = 8
	maxCopyText   = 256
)

func sendMessage(s *Server, r *request) (any, *apiError) {
	c, fail := s.readable(r)
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
	}
	return s.send(c, r, models.Message{Text: text, Entities: entities})
}

// sender makes the method that sends one kind of media.
func sender(kind string) func(*Server, *request) (any, *apiError) {
	return func(s *Server, r *request) (any, *apiError) {
		c, fail := s.readable(r)
		if fail != nil {
			return nil, fail
		}
		caption, entities, fail := r.formatted("caption", "caption_entities")
		switch {
		case fail != nil:
			return nil, fail
		case units(caption) > maxCaption:
			return nil, badRequest("message caption is too long")
		}
		f, fail := s.inputFile(kind, r)
		if fail != nil {
			return nil, fail
		}
		body := models.Message{Caption: caption, CaptionEntities: entities}
		f.attach(&body, File{Duration: r.number("duration")}, nil)
		return s.send(c, r, body)
	}
}

// inputFile takes an uploaded file, an attach:// reference or a known file id.
func (s *Server) inputFile(kind string, r *request) (*stored, *apiError) {
	ref := r.text(kind)
	part := kind
	if name, ok := strings.CutPrefix(ref, "attach://"); ok {
		part = name
	}
	if up, ok := r.uploads[part]; ok {
		switch {
		case len(up.data) == 0:
			return nil, badRequest("file must be non-empty")
		case len(up.data) > maxUpload:
			return nil, &apiError{code: 413, text: "Request Entity Too Large"}
		}
		if fail := checkPhoto(kind, up.data); fail != nil {
			return nil, fail
		}
		return s.store(kind, File{Name: up.name, Data: up.data}), nil
	}
	switch {
	case ref == "":
		return nil, badRequestf("there is no %s in the request", kind)
	case s.files[ref] != nil:
		return s.files[ref], nil
	case strings.HasPrefix(ref, "http://"), strings.HasPrefix(ref, "https://"):
		return nil, badRequest("failed to get HTTP URL content")
	}
	return nil, badRequest("wrong remote file identifier specified: can't unserialize it")
}

func sendLocation(s *Server, r *request) (any, *apiError) {
	c, fail := s.readable(r)
	if fail != nil {
		return nil, fail
	}
	var at models.Location
	hasLat, failLat := r.decode("latitude", &at.Latitude)
	hasLong, failLong := r.decode("longitude", &at.Longitude)
	if failLat != nil || failLong != nil || !hasLat || !hasLong {
		return nil, badRequest("latitude and longitude must be numbers")
	}
	return s.send(c, r, models.Message{Location: &at})
}

// send does what all send methods share: topic, reply, keyboard, storing, ending draft and typing.
func (s *Server) send(c *chat, r *request, body models.Message) (any, *apiError) {
	thread, fail := c.thread(r)
	if fail != nil {
		return nil, fail
	}
	if thread != 0 {
		body.MessageThreadID, body.IsTopicMessage = thread, true
	}
	if fail := c.reply(r, &body); fail != nil {
		return nil, fail
	}
	keyboard, fail := r.keyboard()
	if fail != nil {
		return nil, fail
	}
	body.From, body.ReplyMarkup = &s.me, keyboard
	if body.BusinessConnectionID = r.text("business_connection_id"); body.BusinessConnectionID != "" {
		body.SenderBusinessBot = &s.me
	}
	to, fail := c.ephemeral(r)
	if fail != nil {
		return nil, fail
	}
	if to != 0 {
		return c.show(s.users[to], body, s.opt.Now()), nil
	}
	m := c.put(body, s.opt.Now())
	m.plain = body.Text != ""
	c.clearFor(thread)
	r.made = m.body.ID
	return m.body, nil
}

// reply resolves reply_parameters, or the old reply_to_message_id.
func (c *chat) reply(r *request, body *models.Message) *apiError {
	p := models.ReplyParameters{
		MessageID: r.number("reply_to_message_id"), AllowSendingWithoutReply: r.flag("allow_sending_without_reply"),
	}
	if _, fail := r.decode("reply_parameters", &p); fail != nil {
		return fail
	}
	if p.MessageID == 0 {
		return nil
	}
	to := c.find(p.MessageID)
	if to == nil {
		if p.AllowSendingWithoutReply {
			return nil
		}
		return badRequest("message to be replied not found")
	}
	if p.Quote != "" {
		text := to.body.Text + to.body.Caption
		at := strings.Index(text, p.Quote)
		if at < 0 || units(p.Quote) > maxCaption {
			return badRequest("QUOTE_TEXT_INVALID")
		}
		body.Quote = &models.TextQuote{
			Text:     p.Quote,
			Entities: p.QuoteEntities,
			Position: units(text[:at]),
			IsManual: true,
		}
	}
	body.ReplyToMessage = to.quoted()
	return nil
}

// keyboard reads reply_markup. Only inline keyboards stay with a message; the other kinds are accepted and forgotten.
func (r *request) keyboard() (*models.InlineKeyboardMarkup, *apiError) {
	var markup struct {
		Inline *[][]Button `json:"inline_keyboard"`
	}
	if _, fail := r.decode("reply_markup", &markup); fail != nil {
		return nil, fail
	}
	if markup.Inline == nil {
		return nil, nil
	}
	rows := slices.DeleteFunc(*markup.Inline, func(row []Button) bool { return len(row) == 0 })
	if len(rows) == 0 {
		return nil, nil
	}
	total := 0
	for _, row := range rows {
		total += len(row)
		if len(row) > maxPerRow {
			return nil, badRequest("reply markup is too long")
		}
		for _, b := range row {
			if fail := checkButton(b); fail != nil {
				return nil, fail
			}
		}
	}
	if total > maxButtons {
		return nil, badRequest("reply markup is too long")
	}
	return &models.InlineKeyboardMarkup{InlineKeyboard: rows}, nil
}

func checkButton(b Button) *apiError {
	actions := 0
	for _, has := range []bool{
		b.CallbackData != "", b.URL != "", b.WebApp != nil, b.LoginURL != nil, b.SwitchInlineQuery != nil,
		b.SwitchInlineQueryCurrentChat != nil, b.SwitchInlineQueryChosenChat != nil, b.CopyText != nil,
		b.CallbackGame != nil, b.Pay, b.Disabled != nil,
	} {
		if has {
			actions++
		}
	}
	switch {
	case strings.TrimSpace(b.Text) == "":
		return badRequest("can't parse inline keyboard button: Field \"text\" must be of type String")
	case actions == 0:
		return badRequest("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
	case actions > 1:
		return badRequest("can't parse inline keyboard button: exactly one optional field must be used")
	case len(b.CallbackData) > maxButtonData:
		return badRequest("BUTTON_DATA_INVALID")
	case b.CopyText != nil && (b.CopyText.Text == "" || units(b.CopyText.Text) > maxCopyText):
		return badRequest("BUTTON_COPY_TEXT_INVALID")
	case !slices.Contains([]string{"", "danger", "success", "primary"}, b.Style):
		return badRequest("can't parse inline keyboard button: invalid button style specified")
	}
	return nil
}
