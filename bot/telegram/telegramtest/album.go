package telegramtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-telegram/bot/models"
)

// Limits of sendMediaGroup (Bot API).
const (
	minAlbum = 2
	maxAlbum = 10
)

// albumItem is a file of an album as the bot names it. Other fields are refused: Telegram would ignore them, and the
// bot would never learn that it misspelt one.
type albumItem struct {
	Type                        string                 `json:"type"`
	Media                       string                 `json:"media"`
	Caption                     string                 `json:"caption"`
	ParseMode                   string                 `json:"parse_mode"`
	Entities                    []models.MessageEntity `json:"caption_entities"`
	ShowCaptionAboveMedia       bool                   `json:"show_caption_above_media"`
	HasSpoiler                  bool                   `json:"has_spoiler"`
	DisableContentTypeDetection bool                   `json:"disable_content_type_detection"`
	Width, Height, Duration     int
	Performer, Title            string
}

// albumGroups says which kinds go into one album.
func albumGroups() map[string]string {
	return map[string]string{"photo": "seen", "video": "seen", "document": "document", "audio": "audio"}
}

// sendMediaGroup sends an album, whole or not at all: each file becomes a message of its own, with one media_group_id.
func sendMediaGroup(s *Server, r *request) (any, *apiError) {
	c, fail := s.readable(r)
	if fail != nil {
		return nil, fail
	}
	items, fail := r.albumItems()
	if fail != nil {
		return nil, fail
	}
	thread, fail := c.thread(r)
	if fail != nil {
		return nil, fail
	}
	if r.text("reply_markup") != "" {
		s.problems = append(s.problems, "sendMediaGroup: an album has no reply_markup")
	}
	bodies, fail := s.albumBodies(r, items)
	if fail != nil {
		return nil, fail
	}
	group := fmt.Sprintf("album-%d", s.callCount)
	sent := make([]models.Message, len(bodies))
	for i := range bodies {
		body := &bodies[i]
		body.MediaGroupID, body.From = group, &s.me
		if thread != 0 {
			body.MessageThreadID, body.IsTopicMessage = thread, true
		}
		if fail := c.reply(r, body); fail != nil {
			return nil, fail
		}
	}
	for i := range bodies {
		sent[i] = c.put(bodies[i], s.opt.Now()).body
	}
	c.clearFor(thread)
	r.made = sent[0].ID
	return sent, nil
}

// albumItems reads the parameter media.
func (r *request) albumItems() ([]albumItem, *apiError) {
	var items []albumItem
	d := json.NewDecoder(bytes.NewReader([]byte(r.text("media"))))
	d.DisallowUnknownFields()
	if err := d.Decode(&items); err != nil {
		return nil, badRequestf("can't parse media JSON object (%v)", err)
	}
	if len(items) < minAlbum || len(items) > maxAlbum {
		return nil, badRequest("there must be 2-10 messages in the album")
	}
	groups := albumGroups()
	own := groups[items[0].Type]
	for i := range items {
		it := &items[i]
		switch {
		case groups[it.Type] == "":
			return nil, badRequestf("can't parse InputMedia: type %q is not supported in an album", it.Type)
		case groups[it.Type] != own:
			return nil, badRequest("document and audio files can't be mixed with other media types in an album")
		case units(it.Caption) > maxCaption:
			return nil, badRequest("message caption is too long")
		}
		if fail := checkEntities(it.Caption, it.Entities); fail != nil {
			return nil, fail
		}
	}
	return items, nil
}

// albumBodies stores the files of an album. The lock is held.
func (s *Server) albumBodies(r *request, items []albumItem) ([]models.Message, *apiError) {
	total := 0
	for _, up := range r.uploads {
		total += len(up.data)
	}
	if total > maxUpload {
		return nil, &apiError{code: 413, text: "Request Entity Too Large"}
	}
	used := map[string]bool{}
	bodies := make([]models.Message, len(items))
	for i := range items {
		it := &items[i]
		if part, upload := strings.CutPrefix(it.Media, "attach://"); upload {
			used[part] = true
		}
		one := &request{params: map[string]string{it.Type: it.Media}, uploads: r.uploads}
		f, fail := s.inputFile(it.Type, one)
		if fail != nil {
			return nil, fail
		}
		bodies[i] = models.Message{Caption: it.Caption, CaptionEntities: it.Entities}
		f.attach(&bodies[i], File{Duration: it.Duration, Width: it.Width, Height: it.Height}, nil)
	}
	for part := range r.uploads {
		if !used[part] {
			s.problems = append(s.problems, "sendMediaGroup: no file of the album refers to the upload "+part)
		}
	}
	return bodies, nil
}
