package telegramtest

import (
	"github.com/go-telegram/bot/models"
)

// Limits of what clients send (Bot API, sendPhoto).
const (
	maxPhoto      = 10 << 20
	maxPhotoSides = 10_000
)

// media are the files of a message by kind.
func (m *Message) media() map[string]*File {
	all := map[string]*File{
		"photo":      m.Photo,
		"document":   m.Document,
		"voice":      m.Voice,
		"audio":      m.Audio,
		"video":      m.Video,
		"sticker":    m.Sticker,
		"video_note": m.VideoNote,
		"animation":  m.Animation,
	}
	for kind, f := range all {
		if f == nil {
			delete(all, kind)
		}
	}
	return all
}

// wordless says whether a message is of a kind that has neither text nor caption.
func (m *Message) wordless() bool {
	return m.Location != nil || m.Contact != nil || m.Venue != nil || m.Poll != nil || m.Dice != nil
}

// album refuses what no client sends as an album: kinds that do not go together, or too many. The lock is held.
func (c *chat) album(m *Message) error {
	if m.MediaGroup == "" {
		return nil
	}
	own := ""
	for kind := range m.media() {
		own = kind
	}
	groups := albumGroups()
	if groups[own] == "" {
		return misusef("an album of kind %q: only photos and videos, documents, or audio files go into one", own)
	}
	n := 1
	for _, other := range c.messages {
		if other.body.MediaGroupID != m.MediaGroup {
			continue
		}
		if n++; n > maxAlbum {
			return misusef("an album has at most %d files", maxAlbum)
		}
		if a := attachment(other.body); a == nil || groups[a.Kind] != groups[own] {
			return misusef("an album with %s and other kinds", own)
		}
	}
	return nil
}

// addMedia stores the file of a message and puts it into the body. The lock is held.
func (s *Server) addMedia(body *models.Message, m Message) bool {
	for kind, f := range m.media() {
		var still *stored
		if f.Still != nil {
			still = s.store("thumbnail", File{Name: "still.jpg", MIME: "image/jpeg", Data: f.Still})
		}
		s.store(kind, *f).attach(body, *f, still)
		return true
	}
	return false
}

// thumbnail is a still as messages tell of it; nil = there is none.
func (f *stored) thumbnail() *models.PhotoSize {
	if f == nil {
		return nil
	}
	return &models.PhotoSize{FileID: f.id, FileUniqueID: f.unique, Width: 320, Height: 180, FileSize: int(f.size)}
}

// sizes are those in which Telegram offers a photo, the smallest first: the file itself, and one that is scaled down.
func (f *stored) sizes(width, height int) []models.PhotoSize {
	small := models.PhotoSize{
		FileID:       f.id + "-s",
		FileUniqueID: f.unique + "s",
		Width:        width / 4,
		Height:       height / 4,
		FileSize:     int(f.size / 8),
	}
	return []models.PhotoSize{
		small,
		{FileID: f.id, FileUniqueID: f.unique, Width: width, Height: height, FileSize: int(f.size)},
	}
}
