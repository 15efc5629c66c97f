package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/policy/reason"
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
	// Output returns a long output that was put aside for a session, by its reference; ok is false for one that is not
	// there, has expired or belongs to another session. nil = there are none.
	Output func(ctx context.Context, session, id string) (text string, ok bool, err error)
}

// maxSent is how many files one call sends: as many as one album has (Bot API sendMediaGroup).
const maxSent = 10

type sendArgs struct {
	Path    string   `json:"path,omitempty" jsonschema:"file to send, relative to the working directory or absolute"`
	Paths   []string `json:"paths,omitempty" jsonschema:"several files to send together as one album, at most 10"`
	Output  string   `json:"output,omitempty" jsonschema:"instead of a file: the reference of a long output (overflow:<uuid>) to send whole as a text file"`
	Caption string   `json:"caption,omitempty" jsonschema:"text shown with the file or the album, at most 1024 characters"`
}

func (t *toolset) sendFile() (tools.Tool, error) {
	return tools.New(tools.Typed[sendArgs]{
		Definition: tools.Definition{
			Name: "send_file", ReadOnly: true,
			Description: "Sends a file of the working directory to the chat, where everybody can open it: " +
				"pictures as " +
				"photos, MP3 and M4A as audio, everything else as a document. Several files of one kind " +
				"become an album: " +
				"give them as paths. A long output that was put aside goes out whole if you give its reference as " +
				"output, for " +
				"people who ask for it as a document. It leaves when this call has ended.",
		},
		Describe: func(ctx context.Context, call *tools.Call, in sendArgs) (subject tools.Subject, err error) {
			if in.Output != "" {
				return in.describeOutput()
			}
			err = t.withSent(ctx, call, in, false, func(s *scope, list []place) error {
				subject = s.describeSent(list, in)
				return nil
			})
			return subject, err
		},
		Check: func(ctx context.Context, call *tools.Call, in sendArgs) error {
			if in.Output != "" {
				_, err := t.storedOutput(ctx, call, in)
				return err
			}
			return t.withSent(ctx, call, in, false, func(s *scope, list []place) error {
				for _, p := range list {
					if err := s.maySend(p); err != nil {
						return err
					}
				}
				return nil
			})
		},
		Run: func(ctx context.Context, call *tools.Call, in sendArgs) (res *tools.Result, err error) {
			if in.Output != "" {
				return t.sendOutput(ctx, call, in)
			}
			err = t.withSent(ctx, call, in, true, func(s *scope, list []place) error {
				res, err = s.sendAll(list, in)
				return err
			})
			return res, err
		},
	})
}

// withSent calls do with the places of the files, each once and in their order. create says whether missing directories
// of the conversation are created.
func (t *toolset) withSent(
	ctx context.Context, call *tools.Call, in sendArgs, create bool, do func(s *scope, list []place) error,
) error {
	given := in.Paths
	if in.Path != "" {
		given = append([]string{in.Path}, given...)
	}
	if len(given) == 0 {
		return argumentError("Give path, or paths for several files.", "no file is named")
	}
	s, err := t.enterScope(ctx, call.Origin, create)
	if err != nil {
		return err
	}
	defer s.close()
	var list []place
	for _, path := range given {
		p, err := s.resolvePlace(path, true)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(list, func(q place) bool { return q.abs == p.abs }) {
			continue
		}
		if list = append(list, p); len(list) > maxSent {
			return argumentError("Send the others with another call.", "at most %d files can be sent at once", maxSent)
		}
		if err := checkSent(s, p, in); err != nil {
			return err
		}
	}
	return do(s, list)
}

// describeSent returns what the policy and a person check.
func (s *scope) describeSent(list []place, in sendArgs) tools.Subject {
	var paths, shown []string
	for _, p := range list {
		paths, shown = append(paths, p.abs), append(shown, showName(s.displayPath(p.abs)))
	}
	note := s.locationNote(list[0])
	if in.Caption != "" {
		note = note.And(reason.New(reason.WithCaption, quoteName(in.Caption)))
	}
	return tools.Subject{Inputs: paths, Paths: paths, Show: strings.Join(shown, ", "), Note: note}
}

// maySend refuses what cannot be sent at present.
func (s *scope) maySend(p place) error {
	f, st, err := s.openContent(p)
	if err != nil {
		return err
	}
	_ = f.Close() // opened for reading
	return s.checkSendable(p, st.Size)
}

// checkSent refuses files outside the working directory, which may belong to others than the people of the chat, and
// long captions.
func checkSent(s *scope, p place, in sendArgs) error {
	if !pathrule.Inside(s.cwd.path, p.abs) {
		return refusedError("Copy it into the working directory first, if it may be shown.",
			reason.OutsideDirectory, quoteName(p.given))
	}
	return in.checkCaption()
}

func (in *sendArgs) checkCaption() error {
	if n := len(utf16.Encode([]rune(in.Caption))); n > maxCaption {
		return argumentError("Shorten the caption and say the rest in the answer.",
			"the caption has %d characters (UTF-16 units), at most %d fit", n, maxCaption)
	}
	return nil
}

// checkSendable refuses a file by its size. In a channel without files every size is fine: the file is only named.
func (s *scope) checkSendable(p place, size int64) error {
	most := s.Outlet.Limit(s.origin)
	switch {
	case most == 0:
		return nil
	case size == 0:
		return failedError(
			"Write something into it first.", "%s is empty: an empty file cannot be sent", quoteName(p.given),
		)
	case size > most:
		return failedError("Make it smaller or split it.",
			"%s has %d bytes, at most %d (%d MB) can be sent here", quoteName(p.given), size, most, most>>20)
	}
	return nil
}

// sendAll stores the contents of the files. If one of them cannot be sent, none is.
func (s *scope) sendAll(list []place, in sendArgs) (*tools.Result, error) {
	if len(list) == 1 {
		return sendFile(s, list[0], in)
	}
	out := &tools.Result{}
	var lines []string
	for _, p := range list {
		one, err := sendFile(s, p, in)
		if err != nil {
			return nil, err
		}
		in.Caption = "" // the first file has the one of the album
		lines = append(lines, one.Text)
		out.Files = append(out.Files, one.Files...)
	}
	out.Text = strings.Join(lines, "\n")
	return out, nil
}

func sendFile(s *scope, p place, in sendArgs) (*tools.Result, error) {
	f, st, err := s.openContent(p)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading
	if s.Outlet.Limit(s.origin) == 0 {
		return &tools.Result{
			Text: fmt.Sprintf("This channel shows no files. The file is %s (%s); tell the person where "+
				"it is.", quoteName(p.abs), countNoun(st.Size, "byte", "bytes")),
		}, nil
	}
	if err := s.checkSendable(p, st.Size); err != nil {
		return nil, err
	}
	kind, err := mediaType(f, p.base())
	if err != nil {
		return nil, systemError(err, "read", p.given)
	}
	hash, size, err := s.Outlet.Keep(s.ctx, s.origin.Session, &steady{f: f, before: st, given: p.given})
	if err != nil {
		if changed, ok := errors.AsType[*tools.Error](err); ok {
			return nil, changed
		}
		return nil, systemError(err, "store", p.given)
	}
	return &tools.Result{
		Text:  fmt.Sprintf("%s (%s) is on its way to the chat.", quoteName(p.base()), countNoun(size, "byte", "bytes")),
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
		return 0, r.checkSteady()
	}
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	var now unix.Stat_t
	if err := unix.Fstat(int(r.f.Fd()), &now); err != nil {
		return 0, err
	}
	if r.read != r.before.Size || now.Size != r.before.Size || now.Mtim != r.before.Mtim {
		return 0, r.checkSteady()
	}
	return n, err
}

func (r *steady) checkSteady() error {
	return failedError("Wait until nothing writes to it, then send it again.",
		"%s changed while it was read: nothing was sent", quoteName(r.given))
}
