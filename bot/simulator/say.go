package simulator

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"image"
	"net/http"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

const (
	maxFile     = 20 << 20 // what a bot can download, Bot API getFile
	maxAlbum    = 10
	maxName     = 255     // bytes of a file's name
	maxDuration = 4 << 10 // seconds of a recording
)

// Kinds of files, as a person sends them.
const (
	kindDocument = "document"
	kindPhoto    = "photo"
	kindVideo    = "video"
	kindVoice    = "voice"
	kindAudio    = "audio"
)

// sayRequest is a message that a person wants to write. Several files are an album, the text is its caption.
type sayRequest struct {
	Me      int64      `json:"me"`
	Chat    int64      `json:"chat"`
	Thread  int        `json:"thread"`
	Text    string     `json:"text"`
	ReplyTo int        `json:"reply_to"`
	Quote   string     `json:"quote"` // the part of reply_to that is quoted
	Files   []sentFile `json:"files"`
}

// sentFile is a file of a message.
type sentFile struct {
	Name     string `json:"name"`
	MIME     string `json:"mime"`
	Data     []byte `json:"data"` // base64 in JSON
	As       string `json:"as"`   // photo, voice, audio, video; "" = document
	Duration int    `json:"duration"`
}

// writeMessages writes the messages and returns their ids, several for an album.
func (w *world) writeMessages(in sayRequest) ([]int, error) {
	if strings.TrimSpace(in.Text) == "" && len(in.Files) == 0 {
		return nil, errors.New("there is nothing to send: write something or attach a file")
	}
	list, err := messagesOf(in)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if in.Quote != "" {
		if m, ok := w.fake.Message(in.Chat, in.ReplyTo); !ok || !strings.Contains(m.Text, in.Quote) {
			return nil, fmt.Errorf("message %d does not say %q: it cannot be quoted", in.ReplyTo, in.Quote)
		}
	}
	var ids []int
	for _, m := range list {
		out, err := w.fake.Post(in.Me, in.Chat, m)
		if err != nil {
			return nil, plainError(err)
		}
		w.recordPush(out.UpdateID, true)
		w.reads[readKey(in.Me, in.Chat, w.threadOf(in.Chat, out.MessageID))] = out.MessageID
		ids = append(ids, out.MessageID)
	}
	return ids, nil
}

// messagesOf returns what a client sends: one message, or one for each file of an album.
func messagesOf(in sayRequest) ([]telegramtest.Message, error) {
	first := telegramtest.Message{Text: in.Text, Thread: in.Thread, ReplyTo: in.ReplyTo, Quote: in.Quote}
	if len(in.Files) == 0 {
		return []telegramtest.Message{first}, nil
	}
	if err := checkAlbum(in.Files); err != nil {
		return nil, err
	}
	if len(in.Files) > 1 {
		first.MediaGroup = rand.Text()
	}
	var out []telegramtest.Message
	for i := range in.Files {
		m := first
		if i > 0 {
			m.Text = ""
		}
		if err := in.Files[i].attachTo(&m); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// checkAlbum refuses files that do not go into one album.
func checkAlbum(files []sentFile) error {
	if len(files) > maxAlbum {
		return fmt.Errorf("%d files: an album has at most %d", len(files), maxAlbum)
	}
	class := func(f sentFile) string {
		switch f.As {
		case kindPhoto, kindVideo:
			return "photos and videos"
		case "", kindDocument:
			return "documents"
		}
		return f.As
	}
	for _, f := range files[1:] {
		if a, b := class(files[0]), class(f); a != b {
			return fmt.Errorf("an album holds files of one kind: %s and %s do not go together", a, b)
		}
	}
	if len(files) > 1 && files[0].As == kindVoice {
		return errors.New("voice messages do not form an album: send them one by one")
	}
	return nil
}

// attachTo puts a file into a message, in the way in which the person sends it.
func (f *sentFile) attachTo(m *telegramtest.Message) error {
	switch {
	case len(f.Data) == 0 || len(f.Data) > maxFile:
		return fmt.Errorf("file %q has %d bytes: a bot gets files of 1 byte to 20 MB", f.Name, len(f.Data))
	case len(f.Name) > maxName:
		return fmt.Errorf("the name of a file has %d bytes: at most %d are possible", len(f.Name), maxName)
	case f.Duration < 0 || f.Duration > maxDuration:
		return fmt.Errorf("a recording of %d seconds: want 0 to %d", f.Duration, maxDuration)
	}
	file := &telegramtest.File{Name: f.Name, MIME: f.MIME, Data: f.Data, Duration: f.Duration}
	switch f.As {
	case "", kindDocument:
		m.Document = file
	case kindPhoto:
		head, err := photoConfig(f)
		if err != nil {
			return err
		}
		file.Width, file.Height = head.Width, head.Height
		m.Photo = file
	case kindVoice:
		m.Voice = file
	case kindAudio:
		m.Audio = file
	case kindVideo:
		m.Video = file
	default:
		return fmt.Errorf("a file cannot be sent as %q: use photo, voice, audio, video or document", f.As)
	}
	return nil
}

// photoConfig returns the size of a picture that clients send as a photo. They would change the format of
// others; here those are sent as files.
func photoConfig(f *sentFile) (image.Config, error) {
	kinds := []string{"image/jpeg", "image/png", "image/webp"}
	head, _, err := image.DecodeConfig(bytes.NewReader(f.Data))
	if err != nil || !slices.Contains(kinds, http.DetectContentType(f.Data)) {
		return head, fmt.Errorf("%q is no JPEG, PNG or WebP picture: send it as a file", f.Name)
	}
	return head, nil
}
