package terminal

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/source"
)

const (
	// kindNamed is the kind of an attachment that the person named by its path.
	kindNamed = "named"
	// maxAttached is how many files of a message are attached.
	maxAttached = 10
	// maxShown is how many bytes of a text the model is shown; it can read on with its tools.
	maxShown = 32 << 10
	// textHead is in how many bytes at the beginning of a file a NUL or what is not UTF-8 means that it is no text.
	textHead = 8 << 10
)

// attachedFiles returns the files that a text names with an @ before their paths. Only regular files below dir count,
// also behind symbolic links: what somebody pastes must not reach further. Other words with an @ stay what they are.
func attachedFiles(dir, text string) (list []bot.Attachment) {
	if dir == "" {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }() // it is only read
	seen := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		name, ok := strings.CutPrefix(word, "@")
		if !ok || len(list) == maxAttached {
			continue
		}
		for _, name := range []string{name, strings.TrimRight(name, ".,;:!?)\"'")} {
			info, err := root.Stat(filepath.FromSlash(name))
			if name == "" || err != nil || !info.Mode().IsRegular() {
				continue
			}
			if name = filepath.ToSlash(filepath.Clean(name)); !seen[name] {
				seen[name] = true
				list = append(list, attachmentOf(name, info.Size()))
			}
			break
		}
	}
	return list
}

func attachmentOf(name string, size int64) bot.Attachment {
	a := bot.Attachment{
		Kind: kindNamed, ID: name, Name: name, MIME: mime.TypeByExtension(filepath.Ext(name)), Size: size,
	}
	if llm.KindOfType(a.MIME) == llm.ImagePart && a.MIME != "image/svg+xml" {
		a.Kind = bot.Photo
	}
	return a
}

// Attached reads the files that a person attaches by naming them. Safe for concurrent use.
type Attached struct {
	Dir    string                                                                // where paths begin
	Redact func(text string) string                                              // removes credentials
	Wrap   func(from source.Source, text string) (marked string, rules []string) // fences texts (mark.Marker)
}

// FileLimit implements bot.Files.
func (*Attached) FileLimit() int64 { return 0 }

// Fetch implements bot.Files.
func (f *Attached) Fetch(_ context.Context, id string) (io.ReadCloser, error) {
	root, err := os.OpenRoot(f.Dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", bot.ErrFileGone, err)
	}
	defer func() { _ = root.Close() }() // it is only read
	file, err := root.Open(filepath.FromSlash(id))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", bot.ErrFileGone, err)
	}
	return file, nil
}

// Receive returns what reads texts; others does with the rest.
func (f *Attached) Receive(others turn.Attachments) turn.Attachments { return namedReceiver{f, others} }

type namedReceiver struct {
	files *Attached
	next  turn.Attachments
}

// Receive implements turn.Attachments.
func (r namedReceiver) Receive(ctx context.Context, sent *turn.Sent) (turn.Received, error) {
	return turn.ReceiveKind(ctx, sent, r.next, kindNamed, r.readNamed)
}

// readNamed shows the text of a file; of what is none, it says that it is there. Its only error is that of ctx.
func (r namedReceiver) readNamed(ctx context.Context, a *bot.Attachment) (part llm.Part, rules []string, err error) {
	part.Kind = llm.TextPart
	line := fmt.Sprintf("[attached: the file %q, %d bytes]", a.Name, a.Size)
	content, err := r.files.Fetch(ctx, a.ID)
	if err != nil {
		part.Text = line + "\n[it cannot be read any more]"
		return part, nil, ctx.Err()
	}
	defer func() { _ = content.Close() }() // it is only read
	raw, err := io.ReadAll(io.LimitReader(content, maxShown+utf8.UTFMax))
	switch {
	case err != nil:
		part.Text = line + "\n[it could not be read]"
		return part, nil, ctx.Err()
	case !isText(raw):
		part.Text = line + "\n[it is no text in UTF-8; the tools can work with it]"
		return part, nil, ctx.Err()
	}
	if cut := maxShown; len(raw) > cut {
		for cut > 0 && !utf8.RuneStart(raw[cut]) {
			cut--
		}
		raw = raw[:cut]
		line += " It begins (read on with the file tools):"
	}
	marked, rules := r.files.Wrap(source.File(a.Name), r.files.Redact(string(raw)))
	part.Text = line + "\n" + marked
	return part, rules, nil
}

// isText reports whether the beginning of a file looks like text in UTF-8.
func isText(raw []byte) bool {
	head := raw[:min(len(raw), textHead)]
	for n := 0; n < utf8.UTFMax && len(head) < len(raw) && len(head) > 0 && !utf8.RuneStart(raw[len(head)]); n++ {
		head = head[:len(head)-1]
	}
	return utf8.Valid(head) && bytes.IndexByte(head, 0) < 0
}
