package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/source"
	"github.com/zephbot/zephbot/tools/document"
)

// firstPart is how many bytes of a document the model is shown at once; it reads on with its tools.
const firstPart = 6 << 10

// textEnding is added to the name of a document for the file with its text.
const textEnding = ".txt"

// storeDocument stores a document in the workspace, with its text beside it where it is none itself, and shows the
// model how it begins. A picture is shown to a model that sees, too.
func (w *work) storeDocument(ctx context.Context, a *bot.Attachment) error {
	p, err := w.openWorkspace()
	if err != nil {
		return becauseOf(turn.FileNoRoom, err)
	}
	defer p.close()
	name, size, err := w.storeFile(ctx, p, a)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	f, err := p.root.Open(name)
	if err != nil { // a command of the conversation took it away
		return becauseOf(turn.FileAway, err)
	}
	defer func() { _ = f.Close() }() // it is only read
	if a.Part() == llm.ImagePart && w.deps.Accepts().Image {
		return w.storedPicture(ctx, a, f, name, size)
	}
	if a.Part() == llm.AudioPart {
		return w.storedRecording(ctx, a, f, name, size)
	}
	return w.showBeginning(ctx, p, a, stored{f: f, name: name, size: size})
}

// openWorkspace opens the workspace of the conversation.
func (w *work) openWorkspace() (*place, error) {
	dir, err := w.deps.Dir(w.sent.Message.Place.Channel, w.sent.Session, w.sent.Workspace)
	if err != nil {
		return nil, err
	}
	return openPlace(dir)
}

// storeFile fetches a file into the workspace.
func (w *work) storeFile(ctx context.Context, p *place, a *bot.Attachment) (name string, size int64, err error) {
	wanted := safeName(a.Name, fallbackName(a))
	temporary := ".arriving-" + strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' {
			return '_'
		}
		return r
	}, w.sent.Turn)
	err = w.fetchFile(ctx, a.ID, func(ctx context.Context, content io.Reader) (err error) {
		if w.deps.Admit != nil { // asked once it is known that the file is to be had
			if err := w.deps.Admit(ctx, p.dir, a.Size); err != nil {
				return becauseOf(turn.FileNoRoom, err)
			}
		}
		name, size, err = p.writeFile(ctx, wanted, temporary, content)
		if errors.Is(err, errNoName) {
			return becauseOf(turn.FileNoRoom, err)
		}
		return err
	})
	return name, size, err
}

// fallbackName is for a file whose sender gave it none.
func fallbackName(a *bot.Attachment) string {
	endings := map[string]string{
		"application/pdf": ".pdf",
		"image/jpeg":      ".jpg",
		"image/png":       ".png",
		"audio/mpeg":      ".mp3",
		"audio/ogg":       ".ogg",
		"text/plain":      ".txt",
	}
	return strings.ReplaceAll(a.Kind, " ", "-") + endings[a.MIME]
}

// stored is a file in the workspace.
type stored struct {
	f    *os.File
	name string
	size int64
}

// showBeginning shows the model how a stored document begins.
func (w *work) showBeginning(ctx context.Context, p *place, a *bot.Attachment, s stored) error {
	head, err := io.ReadAll(io.NewSectionReader(s.f, 0, max(document.HeadSize, firstPart+1)))
	if err != nil {
		return becauseOf(turn.FileAway, err)
	}
	d := described{what: a, name: s.name, size: s.size}
	kind := document.KindOf(s.name, a.MIME, head[:min(len(head), document.HeadSize)])
	switch kind {
	case document.Plain:
		d.begins, d.more = wholeText(head, firstPart), s.size > firstPart
	case document.Other:
		problem := turn.FileUnread
		if a.Part() == llm.ImagePart {
			problem = turn.FileUnseen
		}
		w.cannotRead(&d, turn.Trouble{Problem: problem})
	default:
		if err := w.extractText(ctx, p, &d, s.f, kind); err != nil {
			return err
		}
	}
	w.describeDocument(&d)
	return nil
}

// problems are what the errors of a document mean for the person.
var problems = map[error]turn.FileProblem{
	document.ErrLocked:   turn.FileLocked,
	document.ErrTooLarge: turn.FileBloated,
	document.ErrDamaged:  turn.FileDamaged,
	document.ErrUnknown:  turn.FileUnread,
}

// extractText reads the text out of a document and stores it beside it. A document without a text that can be
// read is still in the workspace.
func (w *work) extractText(ctx context.Context, p *place, d *described, f *os.File, kind document.Kind) error {
	text, cut, err := w.deps.Documents.Text(ctx, f, kind)
	problem := turn.FileProblem("")
	for known, is := range problems {
		if errors.Is(err, known) {
			w.deps.Log.Info().Err(err).Str("kind", string(kind)).
				Str("turn", w.sent.Turn).Msg("a document cannot be read")
			problem = is
		}
	}
	switch {
	case err != nil && problem == "":
		return becauseOf(turn.FileAway, err)
	case err == nil && strings.TrimSpace(text) == "":
		if kind == document.PDF && w.deps.Accepts().Image {
			return w.showPages(ctx, d, f)
		}
		problem = turn.FileNoText
	}
	if problem != "" {
		w.cannotRead(d, turn.Trouble{Problem: problem})
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	d.begins, d.more, d.cut = wholeText([]byte(text), firstPart), len(text) > firstPart, cut
	d.beside, _, err = p.writeFile(ctx, d.name+textEnding, ".reading-"+path.Base(d.name), strings.NewReader(text))
	if err != nil {
		return becauseOf(turn.FileNoRoom, err)
	}
	return nil
}

// showPages shows the first pages of a document that has no text, as pictures.
func (w *work) showPages(ctx context.Context, d *described, f *os.File) error {
	drawn, pages, err := w.deps.Documents.Pages(ctx, f)
	if err != nil || len(drawn) == 0 {
		w.deps.Log.Info().Err(err).Str("turn", w.sent.Turn).Msg("the pages of a document cannot be drawn")
		w.cannotRead(d, turn.Trouble{Problem: turn.FileNoText})
		return nil
	}
	for i, page := range drawn {
		kept, err := w.keepPicture(ctx, bytes.NewReader(page))
		if err != nil {
			return err
		}
		d.pages = append(d.pages, llm.Part{
			Kind: llm.ImagePart, Type: kept.kind, Name: d.what.Name, Hash: kept.Hash, Size: kept.Size,
			Label: fmt.Sprintf("page %d of the document", i+1),
		})
	}
	if pages > len(drawn) {
		w.cannotRead(d, turn.Trouble{Problem: turn.FileScanned, Size: int64(len(drawn)), Limit: int64(pages)})
		return nil
	}
	d.note = joinWords(d.note, "it has no text; its pages follow as pictures")
	return nil
}

// wholeText is the beginning of a text, cut between two characters.
func wholeText(text []byte, most int) string {
	if len(text) > most {
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most]
	}
	return string(text)
}

// described is what the model is told of a document.
type described struct {
	what   *bot.Attachment
	name   string // in the workspace
	size   int64
	beside string // file with its text; "" = none
	begins string
	more   bool // there is more than begins
	cut    bool // there is more than is in beside
	note   string
	pages  []llm.Part // pictures of its pages
}

// describeDocument tells the model of a document: what we know of it in our words, how it begins between the marks of
// texts of strangers. Its name is the stranger's too.
func (w *work) describeDocument(d *described) {
	about := []string{prompt.Bytes(d.size)}
	if d.what.MIME != "" {
		about = append(about, fmt.Sprintf("%q", d.what.MIME))
	}
	begins := "[the person sent "
	if w.quoted {
		begins = "[the message replied to has "
	}
	line := begins + fmt.Sprintf(
		"%s, stored in the working directory as %q, %s", prompt.A(d.what.Kind), d.name, strings.Join(about, ", "),
	)
	if d.beside != "" {
		line += fmt.Sprintf("; its text is in %q", d.beside)
	}
	if d.cut {
		line += fmt.Sprintf(" up to %s", prompt.Bytes(document.MaxText))
	}
	if d.note != "" {
		line += "; " + d.note
	}
	line += "]"
	if strings.TrimSpace(d.begins) != "" {
		begin := "The whole text:"
		if d.more {
			begin = "It begins (read on with the file tools):"
		}
		from := source.Document(d.name)
		marked, rules := w.deps.Wrap(from, d.begins)
		w.got.Flag(from, rules)
		line += "\n" + begin + "\n" + marked
	}
	w.addPart(llm.Part{Kind: llm.TextPart, Text: line})
	w.got.Parts = append(w.got.Parts, d.pages...)
}

// storedPicture shows a picture that is in the workspace.
func (w *work) storedPicture(ctx context.Context, a *bot.Attachment, f *os.File, name string, size int64) error {
	part := namedFile(a)
	kept, err := w.keepPicture(ctx, io.NewSectionReader(f, 0, size))
	d := &described{what: a, name: name, size: size}
	if t, ok := errors.AsType[*trouble](err); ok {
		w.cannotRead(d, t.Trouble)
		w.describeDocument(d)
		return nil
	}
	if err != nil {
		return err
	}
	part.Hash, part.Size, part.Type = kept.Hash, kept.Size, kept.kind
	w.describeDocument(d)
	w.addPart(part)
	return nil
}
