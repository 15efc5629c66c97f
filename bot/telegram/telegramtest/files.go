package telegramtest

import (
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-telegram/bot/models"
)

const (
	maxDownload = 20 << 20
	maxUpload   = 50 << 20
)

// linkLife is how long the link of a getFile is good: at least an hour, says the Bot API; here no longer.
const linkLife = time.Hour

// stored is a file Telegram keeps.
type stored struct {
	id, unique, path, name, mime string
	data                         []byte
	size                         int64
	kind                         string
	linked                       time.Time // when getFile gave its link; zero = never
}

// store keeps a file and gives it its ids. The lock is held.
func (s *Server) store(kind string, f File) *stored {
	s.fileCount++
	folder := map[string]string{
		"photo":      "photos",
		"voice":      "voice",
		"audio":      "music",
		"video":      "videos",
		"sticker":    "stickers",
		"thumbnail":  "thumbnails",
		"video_note": "video_notes",
		"animation":  "animations",
	}[kind]
	if folder == "" {
		folder = "documents"
	}
	out := &stored{
		id:     fmt.Sprintf("FID-%s-%06d", kind, s.fileCount),
		unique: fmt.Sprintf("U%06d", s.fileCount),
		path:   fmt.Sprintf("%s/file_%d%s", folder, s.fileCount, path.Ext(f.Name)),
		name:   f.Name, mime: f.MIME, data: f.Data, kind: kind,
		size: max(f.Size, int64(len(f.Data))),
	}
	s.files[out.id] = out
	return out
}

// fileAt finds a file by its file_path, as long as its link is good. The lock is held.
func (s *Server) fileAt(filePath string) *stored {
	for _, f := range s.files {
		if f.path == filePath && !f.linked.IsZero() && s.opt.Now().Before(f.linked.Add(linkLife)) {
			return f
		}
	}
	return nil
}

// getFile gives a link, or with Options.Local the path of the file on this machine (Bot API getFile).
func getFile(s *Server, r *request) (any, *apiError) {
	f := s.files[r.text("file_id")]
	switch {
	case f == nil:
		return nil, badRequest("invalid file_id")
	case f.size > maxDownload && !s.opt.Local:
		return nil, badRequest("file is too big")
	}
	out := models.File{FileID: f.id, FileUniqueID: f.unique, FileSize: f.size, FilePath: f.path}
	if s.opt.FilesDir != "" {
		out.FilePath = filepath.Join(s.opt.FilesDir, filepath.FromSlash(f.path))
		err := os.MkdirAll(filepath.Dir(out.FilePath), 0o700)
		if err == nil {
			err = os.WriteFile(out.FilePath, f.data, 0o600)
		}
		if err != nil {
			return nil, &apiError{code: http.StatusInternalServerError, text: "Internal Server Error"}
		}
		return out, nil
	}
	f.linked = s.opt.Now()
	return out, nil
}

// FileData returns the bytes behind a file id, for looking at what the bot sent.
func (s *Server) FileData(fileID string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[fileID]
	if f == nil {
		return nil, false
	}
	return f.data, true
}

// attach puts a file into a message body. The lock is held.
func (f *stored) attach(b *models.Message, m File, still *stored) {
	switch f.kind {
	case "photo":
		b.Photo = f.sizes(m.Width, m.Height)
	case "voice":
		b.Voice = &models.Voice{
			FileID:       f.id,
			FileUniqueID: f.unique,
			Duration:     m.Duration,
			MimeType:     f.mime,
			FileSize:     f.size,
		}
	case "audio":
		b.Audio = &models.Audio{
			FileID:       f.id,
			FileUniqueID: f.unique,
			Duration:     m.Duration,
			FileName:     f.name,
			MimeType:     f.mime,
			FileSize:     f.size,
		}
	case "video":
		b.Video = &models.Video{
			FileID:       f.id,
			FileUniqueID: f.unique,
			Width:        m.Width,
			Height:       m.Height,
			Duration:     m.Duration,
			FileName:     f.name,
			MimeType:     f.mime,
			FileSize:     f.size,
			Thumbnail:    still.thumbnail(),
		}
	case "video_note":
		b.VideoNote = &models.VideoNote{
			FileID:       f.id,
			FileUniqueID: f.unique,
			Length:       m.Width,
			Duration:     m.Duration,
			FileSize:     int(f.size),
			Thumbnail:    still.thumbnail(),
		}
	case "animation": // told as a document too
		b.Animation = &models.Animation{
			FileID:       f.id,
			FileUniqueID: f.unique,
			Width:        m.Width,
			Height:       m.Height,
			Duration:     m.Duration,
			FileName:     f.name,
			MimeType:     f.mime,
			FileSize:     f.size,
			Thumbnail:    still.thumbnail(),
		}
		b.Document = &models.Document{
			FileID:       f.id,
			FileUniqueID: f.unique,
			FileName:     f.name,
			MimeType:     f.mime,
			FileSize:     f.size,
		}
	case "sticker":
		b.Sticker = &models.Sticker{
			FileID:       f.id,
			FileUniqueID: f.unique,
			Type:         "regular",
			Width:        m.Width,
			Height:       m.Height,
			Emoji:        m.Emoji,
			FileSize:     int(f.size),
		}
	default:
		b.Document = &models.Document{
			FileID:       f.id,
			FileUniqueID: f.unique,
			FileName:     f.name,
			MimeType:     f.mime,
			FileSize:     f.size,
		}
	}
}

func attachment(b models.Message) *Attachment {
	switch {
	case len(b.Photo) > 0:
		best := b.Photo[len(b.Photo)-1]
		return &Attachment{
			Kind: "photo", FileID: best.FileID, Size: int64(best.FileSize), Width: best.Width, Height: best.Height,
		}
	case b.Animation != nil:
		return &Attachment{
			Kind:   "animation",
			Name:   b.Animation.FileName,
			MIME:   b.Animation.MimeType,
			FileID: b.Animation.FileID,
			Size:   b.Animation.FileSize,
		}
	case b.VideoNote != nil:
		return &Attachment{
			Kind:     "video_note",
			FileID:   b.VideoNote.FileID,
			Size:     int64(b.VideoNote.FileSize),
			Duration: b.VideoNote.Duration,
		}
	case b.Document != nil:
		return &Attachment{
			Kind:   "document",
			Name:   b.Document.FileName,
			MIME:   b.Document.MimeType,
			FileID: b.Document.FileID,
			Size:   b.Document.FileSize,
		}
	case b.Voice != nil:
		return &Attachment{
			Kind:     "voice",
			MIME:     b.Voice.MimeType,
			FileID:   b.Voice.FileID,
			Size:     b.Voice.FileSize,
			Duration: b.Voice.Duration,
		}
	case b.Audio != nil:
		return &Attachment{
			Kind:     "audio",
			Name:     b.Audio.FileName,
			MIME:     b.Audio.MimeType,
			FileID:   b.Audio.FileID,
			Size:     b.Audio.FileSize,
			Duration: b.Audio.Duration,
		}
	case b.Video != nil:
		return &Attachment{
			Kind:     "video",
			Name:     b.Video.FileName,
			MIME:     b.Video.MimeType,
			FileID:   b.Video.FileID,
			Size:     b.Video.FileSize,
			Width:    b.Video.Width,
			Height:   b.Video.Height,
			Duration: b.Video.Duration,
		}
	case b.Sticker != nil:
		return &Attachment{
			Kind:   "sticker",
			Name:   b.Sticker.Emoji,
			FileID: b.Sticker.FileID,
			Size:   int64(b.Sticker.FileSize),
		}
	case b.Venue != nil:
		return &Attachment{Kind: "venue", Name: b.Venue.Title}
	case b.Poll != nil:
		return &Attachment{Kind: "poll", Name: b.Poll.Question}
	case b.Dice != nil:
		return &Attachment{Kind: "dice", Name: fmt.Sprintf("%s %d", b.Dice.Emoji, b.Dice.Value)}
	case b.Location != nil:
		return &Attachment{Kind: "location", Name: fmt.Sprintf("%.6f, %.6f", b.Location.Latitude, b.Location.Longitude)}
	case b.Contact != nil:
		return &Attachment{Kind: "contact", Name: strings.TrimSpace(b.Contact.FirstName + " " + b.Contact.LastName)}
	}
	return nil
}
