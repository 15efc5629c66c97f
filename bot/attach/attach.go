// Package attach reads the files of messages before their turns begin: pictures become contents that a model
// sees, documents become files in the workspace of the conversation with their text beside them, what is spoken becomes
// text. What cannot be read is said to the model and to the person, each in a sentence, and never loses the message.
package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/source"
	"github.com/zephbot/zephbot/tools/document"
)

// Bounds of the fetching of one file. A slow channel costs a person their own time only: each message is read by the
// worker of its own session.
const (
	fetchTime = 90 * time.Second // of all tries together
	readTime  = 3 * time.Minute  // of what is done with the file then, besides its transcription
	tries     = 3
)

// pauseBase is the wait before the second try; the next ones take twice as long each.
const pauseBase = 500 * time.Millisecond

// Documents read the text of documents (document.Reader).
type Documents interface {
	Text(ctx context.Context, f *os.File, kind document.Kind) (text string, cut bool, err error)
	// Pages draws the first pages of a PDF as pictures; pages is how many it has.
	Pages(ctx context.Context, f *os.File) (drawn [][]byte, pages int, err error)
}

// Deps are what a Receiver works with.
type Deps struct {
	Files bot.Files
	Blobs blob.Store
	// Dir is the directory of a workspace, where the file tools of the conversation begin; it exists.
	Dir func(channel string, session bot.SessionKey, workspace string) (string, error)
	// Admit says whether so many bytes more may be written at a path; may be nil.
	Admit       func(ctx context.Context, path string, bytes int64) error
	Documents   Documents
	Transcriber *spend.Transcriber // nil = nothing is written down
	// Hears reports whether a person wants recordings to be written down; nil = everybody does
	Hears func(caller string) bool
	// of transcriptions that failed for a moment; nil = none
	Retry   *route.Retry
	Accepts func() llm.Accepts // what the model takes
	// fences texts of strangers (mark.Marker)
	Wrap  func(from source.Source, text string) (marked string, rules []string)
	Words texts.Words
	Log   zerolog.Logger
}

// Receiver implements turn.Attachments. Safe for concurrent use; it keeps nothing between calls.
type Receiver struct{ deps Deps }

// New makes a Receiver.
func New(deps Deps) *Receiver { return &Receiver{deps: deps} }

var _ turn.Attachments = (*Receiver)(nil)

// Receive implements turn.Attachments.
func (r *Receiver) Receive(ctx context.Context, sent *turn.Sent) (turn.Received, error) {
	w := &work{Receiver: r, sent: sent, said: map[turn.FileProblem]bool{}}
	if sent.Message.Reply != nil {
		if err := w.readQuoted(ctx, sent.Message.Reply); err != nil {
			return turn.Received{}, err
		}
	}
	for i := range sent.Message.Files {
		if err := w.readFile(ctx, &sent.Message.Files[i]); err != nil {
			return turn.Received{}, err
		}
	}
	return w.got, nil
}

// work is a Receiver at work on one message.
type work struct {
	*Receiver
	sent *turn.Sent
	got  turn.Received
	said map[turn.FileProblem]bool // problems that are no file's own, told once a message
	// quoted: what is read came with the message that was replied to
	quoted bool
}

// readQuoted reads what came with the message that was replied to. A bot's own recording is not written down: what it
// says is text that the bot has written.
func (w *work) readQuoted(ctx context.Context, q *bot.Quote) error {
	w.quoted = true
	defer func() { w.quoted = false }()
	album := false
	for i := range q.Files {
		a := &q.Files[i]
		album = album || a.Album != ""
		if q.Own && (a.Kind == bot.Voice || a.Kind == bot.Audio) {
			w.addPart(namedFile(a))
			continue
		}
		if err := w.readFile(ctx, a); err != nil {
			return err
		}
	}
	if album {
		w.addPart(llm.Part{Kind: llm.TextPart, Text: "[the message replied to is one item of an album; the others are not here]"})
	}
	return nil
}

// readFile reads one file. Its only error is that of ctx.
func (w *work) readFile(ctx context.Context, a *bot.Attachment) error {
	if a.ID == "" && a.Still == "" {
		w.addPart(namedFile(a))
		return nil
	}
	if limit := w.deps.Files.FileLimit(); limit > 0 && a.Size > limit {
		w.nameWithReason(a, turn.Trouble{Problem: turn.FileTooLarge, Size: a.Size, Limit: limit})
		return nil
	}
	var err error
	switch a.Kind {
	case bot.Photo:
		err = w.picture(ctx, a)
	case bot.Document:
		err = w.storeDocument(ctx, a)
	case bot.Voice, bot.Audio:
		err = w.readRecording(ctx, a)
	default:
		err = w.showVideo(ctx, a)
	}
	if err == nil {
		return nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return fmt.Errorf("read what came along: %w", ctxErr)
	}
	w.failureText(a, err)
	return nil
}

// failureText says what an error means for the person.
func (w *work) failureText(a *bot.Attachment, err error) {
	t, ok := errors.AsType[*trouble](err)
	if !ok {
		t = &trouble{Trouble: turn.Trouble{Problem: turn.FileAway}, err: err}
		switch {
		case errors.Is(err, bot.ErrFileTooLarge):
			t.Problem, t.Size, t.Limit = turn.FileTooLarge, a.Size, cmp.Or(w.deps.Files.FileLimit(), usualLimit)
		case errors.Is(err, bot.ErrFileGone):
			t.Problem = turn.FileGone
		case errors.Is(err, blob.ErrFull):
			t.Problem = turn.FileNoRoom
		}
	}
	w.deps.Log.Info().Err(t.err).Str("problem", string(t.Problem)).Str("kind", a.Kind).
		Int64("size", a.Size).Str("turn", w.sent.Turn).Msg("an attachment cannot be read")
	w.nameWithReason(a, t.Trouble)
}

// usualLimit is what a Bot API server that does not run with --local gives (Bot API getFile).
const usualLimit = 20 << 20

// trouble is an error that has a sentence of its own.
type trouble struct {
	turn.Trouble
	err error
}

// Error implements error.
func (t *trouble) Error() string { return fmt.Sprintf("%s: %v", t.Problem, t.err) }

// Unwrap gives the cause.
func (t *trouble) Unwrap() error { return t.err }

func becauseOf(problem turn.FileProblem, err error) error {
	return &trouble{Trouble: turn.Trouble{Problem: problem}, err: err}
}

// nameWithReason names the file to the model by what is known of it, with the reason, and tells the person.
func (w *work) nameWithReason(a *bot.Attachment, t turn.Trouble) {
	t.Kind, t.Name = a.Kind, a.Name
	p := namedFile(a)
	p.Text = joinWords(p.Text, reasonOf(&t))
	w.addPart(p)
	w.tellPerson(t)
}

// cannotRead says the same to the model, in what it is told of a document, and to the person.
func (w *work) cannotRead(d *described, t turn.Trouble) {
	t.Kind, t.Name = d.what.Kind, d.what.Name
	d.note = joinWords(d.note, reasonOf(&t))
	w.tellPerson(t)
}

// tellPerson tells the person of a problem. What is not about the one file is told once.
func (w *work) tellPerson(t turn.Trouble) {
	if t.Problem == turn.FileUnseen || t.Problem == turn.FileUnheard || t.Problem == turn.FileMuted {
		if w.said[t.Problem] {
			return
		}
		w.said[t.Problem] = true
	}
	w.got.Notices = append(w.got.Notices, joinedBy(" ", w.deps.Words.FileTrouble(w.sent.Message.Language, t), t.Note))
}

// reasons are what the model is told of the problems.
var reasons = map[turn.FileProblem]string{
	turn.FileTooLarge:    "it is too large to be downloaded",
	turn.FileGone:        "it is not available any more",
	turn.FileAway:        "it could not be downloaded",
	turn.FileNoRoom:      "there was no room to keep it",
	turn.FileUnseen:      "this model does not take pictures",
	turn.FileNoPicture:   "it is no picture that can be read",
	turn.FileTooManyDots: "it has too many pixels",
	turn.FileDamaged:     "it is damaged",
	turn.FileLocked:      "it needs a password",
	turn.FileBloated:     "it unpacks to more than can be read",
	turn.FileUnheard:     "nothing is set up to write down speech",
	turn.FileMuted:       "its sender has chosen that recordings are not written down",
	turn.FileNoSound:     "it is no recording that can be read",
	turn.FileNotWritten:  "what is said in it could not be written down",
	turn.FileNoWords:     "no words were heard in it",
	turn.FileLong:        "it is too large to be written down",
	turn.FileUnread:      "its format is not one that can be read",
	turn.FileScanned:     "it has no text; only its first pages are shown, as pictures",
	turn.FileNoText:      "no text was found in it; it may consist of scanned pages",
}

// reasonOf is what the model is told of a problem.
func reasonOf(t *turn.Trouble) string {
	if t.Problem == turn.FileNotWritten && t.Note != "" {
		return "it was not written down, because a quota is used up"
	}
	return reasons[t.Problem]
}

func (w *work) addPart(p llm.Part) {
	p.Quoted = w.quoted
	w.got.Parts = append(w.got.Parts, p)
}

// namedFile is a file that is known by name only.
func namedFile(a *bot.Attachment) llm.Part {
	return llm.Part{Kind: a.Part(), Type: a.MIME, Name: a.Name, Size: a.Size, Label: a.Kind, Text: a.Note}
}

// fetchFile gives a file to use, from its beginning each time, as often as it takes: what fails may pass.
func (w *work) fetchFile(ctx context.Context, id string, use func(ctx context.Context, content io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	for n := 0; ; n++ {
		err := w.fetchOnce(ctx, id, use)
		var own *trouble
		if err == nil || n+1 == tries || errors.As(err, &own) || errors.Is(err, bot.ErrFileGone) ||
			errors.Is(err, bot.ErrFileTooLarge) || errors.Is(err, blob.ErrFull) {
			return err
		}
		wait := pauseBase << n
		if refused, ok := errors.AsType[*bot.SendError](err); ok {
			wait = max(wait, refused.RetryAfter)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

func (w *work) fetchOnce(ctx context.Context, id string, use func(ctx context.Context, content io.Reader) error) error {
	content, err := w.deps.Files.Fetch(ctx, id)
	if err != nil {
		return err
	}
	return errors.Join(use(ctx, content), content.Close())
}
