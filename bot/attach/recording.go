package attach

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/source"
)

// maxRecording is how many bytes of a recording are sent to be written down (OpenAI's limit of audio/transcriptions).
const maxRecording = 25 << 20

// transcribeTime bounds one transcription, besides the download that it reads from.
const transcribeTime = 2 * time.Minute

// readRecording writes down what is said. A voice message is the person's own words; an audio file is somebody's, and
// is stored in the workspace too.
func (w *work) readRecording(ctx context.Context, a *bot.Attachment) error {
	if a.Kind == bot.Audio {
		return w.storeDocument(ctx, a)
	}
	if problem := w.unheard(); problem != "" {
		w.nameWithReason(a, turn.Trouble{Problem: problem})
		return nil
	}
	if a.Size > maxRecording {
		w.nameWithReason(a, turn.Trouble{Problem: turn.FileTooLarge, Size: a.Size, Limit: maxRecording})
		return nil
	}
	var text string
	err := w.retryTranscription(ctx, func(ctx context.Context) error {
		return w.fetchFile(ctx, a.ID, func(ctx context.Context, content io.Reader) (err error) {
			text, err = w.transcribeFile(ctx, a, content, a.Size)
			return err
		})
	})
	if failed, ok := errors.AsType[*trouble](err); ok && failed.Problem == turn.FileNotWritten {
		return w.keepUnwritten(ctx, a, failed)
	}
	if err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" {
		w.nameWithReason(a, turn.Trouble{Problem: turn.FileNoWords})
		return nil
	}
	w.tellHeard(a, text, "")
	return nil
}

// storedRecording writes down what is said in a file of the workspace, where that can be done.
func (w *work) storedRecording(ctx context.Context, a *bot.Attachment, f *os.File, name string, size int64) error {
	d := &described{what: a, name: name, size: size, note: a.Note}
	problem := turn.Trouble{Problem: w.unheard()}
	text := ""
	switch {
	case problem.Problem != "":
	case size > maxRecording:
		problem.Problem = turn.FileLong
	default:
		err := w.retryTranscription(ctx, func(ctx context.Context) (err error) {
			text, err = w.transcribeFile(ctx, a, io.NewSectionReader(f, 0, size), size)
			return err
		})
		if t, ok := errors.AsType[*trouble](err); ok {
			problem.Problem, problem.Note = t.Problem, t.Note
		} else if err != nil {
			return err
		}
	}
	if problem.Problem != "" {
		w.cannotRead(d, problem)
	}
	w.describeDocument(d)
	if strings.TrimSpace(text) != "" {
		w.tellHeard(a, text, name)
	}
	return nil
}

// unheard says why nothing is written down of any recording; "" = it is.
func (w *work) unheard() turn.FileProblem {
	switch {
	case w.deps.Transcriber == nil:
		return turn.FileUnheard
	case w.deps.Hears != nil && !w.deps.Hears(w.sent.Message.Caller):
		return turn.FileMuted
	default:
		return ""
	}
}

// retryTranscription repeats a transcription that failed for a moment, as a call of a model: a
// server of speech may be loading.
func (w *work) retryTranscription(ctx context.Context, run func(ctx context.Context) error) error {
	if w.deps.Retry == nil {
		return run(ctx)
	}
	return w.deps.Retry.Do(ctx, "transcribe", run) //nolint:wrapcheck // the error of run
}

// keepUnwritten keeps a voice message that could not be written down in the workspace, so
// that what was said is not lost.
func (w *work) keepUnwritten(ctx context.Context, a *bot.Attachment, failed *trouble) error {
	p, err := w.openWorkspace()
	if err != nil {
		return failed
	}
	defer p.close()
	named := *a
	if named.Name == "" {
		named.Name = fallbackName(a) + ".ogg" // what the clients record
	}
	name, size, err := w.storeFile(ctx, p, &named)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.deps.Log.Warn().Err(err).Msg("a recording that was not written down is not kept either")
		return failed
	}
	w.deps.Log.Warn().Err(failed).Msg("recording not written down")
	t := failed.Trouble
	t.Kind, t.Name = a.Kind, a.Name
	w.describeDocument(&described{what: a, name: name, size: size, note: joinWords(a.Note, reasonOf(&t))})
	w.tellPerson(t)
	return nil
}

// transcribeFile has a recording written down.
func (w *work) transcribeFile(ctx context.Context, a *bot.Attachment, content io.Reader, size int64) (string, error) {
	sound := bufio.NewReader(content)
	head, err := sound.Peek(16)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	ending := soundEnding(head)
	if ending == "" {
		return "", becauseOf(turn.FileNoSound, errors.New("its first bytes are those of no format of sounds"))
	}
	ctx, cancel := context.WithTimeout(ctx, transcribeTime)
	defer cancel()
	text, usd, err := w.deps.Transcriber.Transcribe(
		ctx, "recording"+ending, io.LimitReader(sound, maxRecording), size, time.Duration(a.Seconds)*time.Second,
	)
	w.got.USD += usd
	if err == nil {
		return text, nil
	}
	if denied, ok := errors.AsType[*cost.Denied](err); ok {
		return "", &trouble{Trouble: turn.Trouble{Problem: turn.FileNotWritten, Note: denied.Text}, err: err}
	}
	if llm.KindOf(err) == llm.Invalid { // asking again does not help
		return "", becauseOf(turn.FileNoSound, err)
	}
	return "", becauseOf(turn.FileNotWritten, err)
}

// tellHeard tells the model what was said, and shows it to the person above the answer. name is a file of the
// workspace, "" for what the person said themselves.
func (w *work) tellHeard(a *bot.Attachment, text, name string) {
	text = strings.TrimSpace(text)
	if name == "" && !w.sent.Message.Forwarded && !w.quoted {
		w.addPart(llm.Part{
			Kind: llm.TextPart,
			Own:  true,
			Text: fmt.Sprintf("[transcript of %s of the person%s]\n%s", prompt.A(a.Kind), after(a.Note), text),
		})
	} else {
		from := source.Recording(name)
		marked, rules := w.deps.Wrap(from, text)
		w.got.Flag(from, rules)
		w.addPart(llm.Part{
			Kind: llm.TextPart,
			Text: fmt.Sprintf("[transcript of %s%s%s]\n%s", prompt.A(a.Kind), w.whose(), after(a.Note), marked),
		})
	}
	w.got.Notices = append(w.got.Notices, w.deps.Words.Heard(w.sent.Message.Language, text))
}

// whose says with which message it came, where that is not the person's own.
func (w *work) whose() string {
	if w.quoted {
		return " in the message replied to"
	}
	return ""
}

func after(note string) string {
	if note = strings.Join(strings.Fields(note), " "); note != "" {
		return ", " + note
	}
	return ""
}

// joinWords are the words that are there.
func joinWords(words ...string) string { return joinedBy("; ", words...) }

func joinedBy(between string, words ...string) string {
	var list []string
	for _, word := range words {
		if word != "" {
			list = append(list, word)
		}
	}
	return strings.Join(list, between)
}

// soundEnding is the ending of a file's name that says its format, by its first bytes; "" = it is no sound. Whoever
// writes down speech goes by that ending.
func soundEnding(head []byte) string {
	has := func(at int, magic string) bool {
		return len(head) >= at+len(magic) && bytes.Equal(head[at:at+len(magic)], []byte(magic))
	}
	switch {
	case has(0, "OggS"):
		return ".ogg"
	case has(0, "ID3"), len(head) > 1 && head[0] == 0xFF && head[1]&0xE6 == 0xE2: // MPEG audio, layer 1 to 3
		return ".mp3"
	case has(0, "RIFF") && has(8, "WAVE"):
		return ".wav"
	case has(0, "fLaC"):
		return ".flac"
	case has(4, "ftyp"):
		return ".m4a"
	case has(0, "\x1aE\xdf\xa3"):
		return ".webm"
	}
	return ""
}
