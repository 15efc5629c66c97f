package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf16"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/tools"
)

// maxCaption is the longest caption of a file in UTF-16 units (Bot API sendDocument, sendPhoto, sendAudio).
const maxCaption = 1024

// Outlet is where send_file puts contents that a channel delivers.
type Outlet struct {
	// Limit returns how many bytes a file may have in the channel of a call; 0 = the channel delivers no files.
	Limit func(tools.Origin) int64
	// Keep stores a content for a session before it is sent, and returns its SHA-256 in lower-case hex and its size in
	// bytes. An error of the reader is returned wrapped, and then nothing is stored.
	Keep func(ctx context.Context, session string, content io.Reader) (hash string, size int64, err error)
}

type sendArgs struct {
	Path    string `json:"path" jsonschema:"file to send, relative to the working directory or absolute"`
	Caption string `json:"caption,omitempty" jsonschema:"text shown with the file, at most 1024 characters"`
}

func (t *toolset) sendFile() (tools.Tool, error) {
	return onPath[sendArgs]{
		def: tools.Definition{
			Name: "send_file", ReadOnly: true,
			Description: "Sends a file of the working directory to the chat, where everybody can open it: pictures as " +
				"photos, MP3 and M4A as audio, everything else as a document. It leaves when this call has ended.",
		},
		path: func(in sendArgs) string { return in.Path }, follow: true,
		show: said[sendArgs]("send"),
		note: func(_ *scope, _ place, in sendArgs) string {
			if in.Caption == "" {
				return ""
			}
			return "with the caption " + quote(in.Caption)
		},
		check: checkSent,
		may: func(s *scope, p place, _ sendArgs) error {
			f, st, err := s.openContent(p)
			if err != nil {
				return err
			}
			_ = f.Close() // opened for reading
			return s.sendable(p, st.Size)
		},
		run: sendFile,
	}.tool(t)
}

// checkSent refuses files outside the working directory, which may belong to others than the people of the chat, and
// long captions.
func checkSent(s *scope, p place, in sendArgs) error {
	if !pathrule.Inside(s.cwd.path, p.abs) {
		return refused("Copy it into the working directory first, if it may be shown.",
			"%s is outside the working directory: only files inside it can be sent", quote(p.given))
	}
	if n := len(utf16.Encode([]rune(in.Caption))); n > maxCaption {
		return wrong("Shorten the caption and say the rest in the answer.",
			"the caption has %d characters (UTF-16 units), at most %d fit", n, maxCaption)
	}
	return nil
}

// sendable refuses a file by its size. In a channel without files every size is fine: the file is only named.
func (s *scope) sendable(p place, size int64) error {
	most := s.Outlet.Limit(s.origin)
	switch {
	case most == 0:
		return nil
	case size == 0:
		return failed("Write something into it first.", "%s is empty: an empty file cannot be sent", quote(p.given))
	case size > most:
		return failed("Make it smaller or split it.",
			"%s has %d bytes, at most %d (%d MB) can be sent here", quote(p.given), size, most, most>>20)
	}
	return nil
}

func sendFile(s *scope, p place, in sendArgs) (*tools.Result, error) {
	f, st, err := s.openContent(p)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading
	if s.Outlet.Limit(s.origin) == 0 {
		return &tools.Result{Text: fmt.Sprintf("This channel shows no files. The file is %s (%s); tell the person where "+
			"it is.", quote(p.abs), count(st.Size, "byte", "bytes"))}, nil
	}
	if err := s.sendable(p, st.Size); err != nil {
		return nil, err
	}
	kind, err := mediaType(f, p.base())
	if err != nil {
		return nil, because(err, "read", p.given)
	}
	hash, size, err := s.Outlet.Keep(s.ctx, s.origin.Session, &steady{f: f, before: st, given: p.given})
	if err != nil {
		if changed, ok := errors.AsType[*tools.Error](err); ok {
			return nil, changed
		}
		return nil, because(err, "store", p.given)
	}
	return &tools.Result{
		Text:  fmt.Sprintf("%s (%s) is on its way to the chat.", quote(p.base()), count(size, "byte", "bytes")),
		Files: []tools.File{{Name: p.base(), MIME: kind, Hash: hash, Size: size, Caption: in.Caption}},
	}, nil
}

// mediaType returns the media type of a file by its first bytes, and of sounds by its name: an M4A and a film begin
// alike.
func mediaType(f io.ReaderAt, name string) (string, error) {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".mp3":
		return "audio/mpeg", nil
	case ".m4a":
		return "audio/mp4", nil
	}
	head := make([]byte, 512) // what http.DetectContentType looks at
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	kind, _, _ := strings.Cut(http.DetectContentType(head[:n]), ";")
	return kind, nil
}

// steady reads a file to its end, and fails instead of ending if the file has changed meanwhile.
type steady struct {
	f      *os.File
	before unix.Stat_t
	given  string
	read   int64
}

// Read implements io.Reader.
func (r *steady) Read(p []byte) (int, error) {
	n, err := r.f.Read(p)
	r.read += int64(n)
	if r.read > r.before.Size {
		return 0, r.changed()
	}
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	var now unix.Stat_t
	if err := unix.Fstat(int(r.f.Fd()), &now); err != nil {
		return 0, err
	}
	if r.read != r.before.Size || now.Size != r.before.Size || now.Mtim != r.before.Mtim {
		return 0, r.changed()
	}
	return n, err
}

func (r *steady) changed() error {
	return failed("Wait until nothing writes to it, then send it again.",
		"%s changed while it was read: nothing was sent", quote(r.given))
}
