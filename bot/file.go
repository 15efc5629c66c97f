package bot

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/zephbot/zephbot/agent/blob"
)

// File is a file that goes out. Its content is kept for the row's session, and Hash names it; or it is in Data: in
// rows of versions before there was a place for contents, in those that must go out though nothing could be kept, and
// in what is made while a row is sent.
type File struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"` // media type, as its source says
	Hash string `json:"hash,omitempty"` // SHA-256 in lower-case hex
	Size int64  `json:"size,omitempty"` // bytes behind Hash
	Data []byte `json:"data,omitempty"`
	// Document: it is sent as a document, also if it is a picture or a sound.
	Document bool `json:"document,omitempty"`
	// Voice: it is a voice message, which lasts so many Seconds; 0 = unknown.
	Voice   bool `json:"voice,omitempty"`
	Seconds int  `json:"seconds,omitempty"`
}

// Limits of an album: how many files it has, and how many bytes all of them have, since they are one request (Bot API
// sendMediaGroup).
const (
	MaxAlbum      = 10
	MaxAlbumBytes = 50 << 20
)

// Files returns the files of a content in their order.
func (c *Content) Files() []*File {
	if c.File == nil {
		return nil
	}
	list := []*File{c.File}
	for i := range c.More {
		list = append(list, &c.More[i])
	}
	return list
}

// Apart returns the contents that show the files of an album one by one. The text stays with the first one.
func (c *Content) Apart() []Content {
	var list []Content
	for i, f := range c.Files() {
		one := Content{File: f, Language: c.Language, Only: c.Only}
		if i == 0 {
			one.Text, one.Entities = c.Text, c.Entities
		}
		list = append(list, one)
	}
	return list
}

// Media is what a file is to a channel that shows pictures and plays sounds.
type Media int

// Kinds of files.
const (
	Plain   Media = iota
	Picture       // JPEG, PNG or WebP
	Sound         // MP3 or M4A
	Speech        // a voice message: Opus in Ogg, MP3 or M4A
)

// Media returns what the file is, by its media type.
func (f *File) Media() Media {
	kind, _, _ := strings.Cut(f.Type, ";")
	switch kind = strings.ToLower(strings.TrimSpace(kind)); {
	case f.Document:
		return Plain
	case f.Voice:
		return Speech
	case kind == "image/jpeg", kind == "image/png", kind == "image/webp":
		return Picture
	case kind == "audio/mpeg", kind == "audio/mp3", kind == "audio/mp4", kind == "audio/m4a", kind == "audio/x-m4a":
		return Sound
	}
	return Plain
}

// Open gives the content, and how many bytes it has. The errors are those of blob.Opener. Close it.
func (f *File) Open(ctx context.Context, session SessionKey, from blob.Opener) (io.ReadCloser, int64, error) {
	if f.Hash == "" {
		return io.NopCloser(bytes.NewReader(f.Data)), int64(len(f.Data)), nil
	}
	if from == nil {
		return nil, 0, blob.ErrNotFound
	}
	content, err := from.Open(ctx, string(session), f.Hash)
	return content, f.Size, err
}
