package telegram_test

import (
	"bytes"
	"image"
	"image/jpeg"
	"image/png"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// picture is a PNG of a size, or a JPEG.
func picture(t *testing.T, width, height int, jpg bool) []byte {
	t.Helper()
	var out bytes.Buffer
	img, err := image.NewGray(image.Rect(0, 0, width, height)), error(nil)
	if jpg {
		err = jpeg.Encode(&out, img, nil)
	} else {
		err = png.Encode(&out, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestFilesGoOutAsWhatTheyAre: pictures within Telegram's limits are photos, sounds audio, and the rest documents; the
// strict server refuses everything else as a photo.
func TestFilesGoOutAsWhatTheyAre(t *testing.T) {
	t.Parallel()
	webp := []byte("RIFF\x24\x00\x00\x00WEBPVP8 \x18\x00\x00\x000\x01\x00\x9d\x01*\x01\x00\x01\x00\x02\x00\x34%\xa4\x00\x03p\x00\xfe\xfb\x94\x00\x00")
	for name, c := range map[string]struct {
		file bot.File
		want string
	}{
		"png":               {bot.File{Type: "image/png", Data: picture(t, 200, 10, false)}, "photo"},
		"jpeg":              {bot.File{Type: "image/JPEG; q=1", Data: picture(t, 9, 9, true)}, "photo"},
		"webp":              {bot.File{Type: "image/webp", Data: webp}, "photo"},
		"as document":       {bot.File{Type: "image/png", Document: true, Data: picture(t, 9, 9, false)}, "document"},
		"too long":          {bot.File{Type: "image/png", Data: picture(t, 210, 10, false)}, "document"},
		"largest":           {bot.File{Type: "image/png", Data: picture(t, 5000, 5000, false)}, "photo"},
		"too large":         {bot.File{Type: "image/png", Data: picture(t, 5000, 5001, false)}, "document"},
		"too heavy":         {bot.File{Type: "image/png", Data: append(picture(t, 9, 9, false), make([]byte, 10<<20)...)}, "document"},
		"no picture":        {bot.File{Type: "image/png", Data: []byte("text")}, "document"},
		"gif":               {bot.File{Type: "image/gif", Data: []byte("GIF89a")}, "document"},
		"mp3":               {bot.File{Type: "audio/mpeg", Data: []byte("ID3")}, "audio"},
		"m4a":               {bot.File{Type: "audio/mp4", Data: []byte("x")}, "audio"},
		"voice":             {bot.File{Type: "audio/ogg", Data: []byte("OggS"), Voice: true, Seconds: 3}, "voice"},
		"voice as document": {bot.File{Type: "audio/ogg", Data: []byte("OggS"), Voice: true, Document: true}, "document"},
		"wave":              {bot.File{Type: "audio/wav", Data: []byte("x")}, "document"},
		"text":              {bot.File{Type: "text/plain", Data: []byte("x")}, "document"},
		"unknown type":      {bot.File{Data: []byte("x")}, "document"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, time.Minute)
			row := hello("11")
			c.file.Name = "a.x"
			row.Content = bot.Content{Text: "see", File: &c.file}
			m := w.send(t, row)
			if m.Attachment == nil || m.Attachment.Kind != c.want || m.Text != "see" {
				t.Fatalf("%+v with %q", m.Attachment, m.Text)
			}
			if data, _ := w.FileData(m.Attachment.FileID); !bytes.Equal(data, c.file.Data) {
				t.Errorf("%d of %d bytes arrived", len(data), len(c.file.Data))
			}
		})
	}
}
