// Package speech speaks answers: each one where somebody has chosen that in /settings, those to questions that were
// spoken, and with /speak any one that was given. The text of an answer never waits for its recording: it is sent as
// always, and the recording follows as a reply to the question.
//
// What is to be spoken is a job (bot/job), which the Change with the answer stores. One that a dead process has begun
// is not repeated, because nobody knows what it has cost.
package speech

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/job"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

const (
	// bucket holds what is to be spoken, by a name of its own: a job.
	bucket = "speech_job"
	// answerKey begins the keys of the answers that are spoken without /speak, before the names of their turns.
	answerKey = "answer/"

	commandName = "speak"

	room      = 512 << 10 // bytes of a conversation in which an answer is looked for
	newest    = 20        // messages among which recordings are looked for that are not sent yet
	excerpt   = 200       // by how many bytes of its beginning an answer is recognised
	speakTime = 2 * time.Minute
)

// Conversations are those in which answers are found.
type Conversations interface {
	// Rows returns the newest messages to a session (bot.Inspector).
	Rows(ctx context.Context, session bot.SessionKey, limit int) ([]bot.Row, error)
	Tail(ctx context.Context, session bot.SessionKey, room int) (journal.Tail, error)
}

// Voice speaks a text. The payer is that of the context (spend.Voice).
type Voice interface {
	Speak(ctx context.Context, text, voice string) (sound llm.Sound, usd float64, err error)
}

// Retry repeats what has failed for a moment (route.Retry).
type Retry interface {
	Do(ctx context.Context, what string, run func(ctx context.Context) error) error
}

// Deps are the dependencies of a Handler. All are required.
type Deps struct {
	job.Deps
	Conversations Conversations
	Blobs         blob.Store // keeps recordings until they are sent
	Voice         Voice
	// VoiceOf returns the voice of a conversation; "" = the configured one. nil = that is everybody's.
	VoiceOf func(session bot.SessionKey) string
	Retry   Retry
	// Open opens what pays for a message (bot/quota).
	Open func(msg *bot.Message, id string) turn.Budget
	// Wanted returns which answers to a person are spoken in a place (bot/preference).
	Wanted func(place bot.Place, caller string) string
	Words  texts.Words
}

// Handler speaks answers. Safe for concurrent use. It works while Run of its jobs runs.
type Handler struct {
	deps Deps
	jobs *job.Runner
}

// New returns a Handler.
func New(deps Deps) *Handler {
	h := &Handler{deps: deps}
	h.jobs = job.NewRunner(deps.Deps, bucket, h.give)
	return h
}

// Off returns /speak where nothing speaks.
func Off(words texts.Words) feature.Feature {
	return feature.Feature{
		Name: commandName, Off: true, Commands: []feature.Command{{Name: commandName, OffText: words.SpeechOff}},
	}
}

// Feature returns /speak, and the recordings that follow answers.
func (h *Handler) Feature() feature.Feature {
	return feature.Feature{
		Name:     commandName,
		Commands: []feature.Command{{Name: commandName, Run: h.speakAgain}},
		Beside:   h.beside,
		Run:      h.jobs.Run,
		Follow:   h.jobs.Follow,
	}
}

// Stopping implements turn.Speech. In a group, a recording that waits to be sent is stopped for anybody only: it does
// not say who has asked.
func (h *Handler) Stopping(
	ctx context.Context, session bot.SessionKey, caller string,
) (n int, ends turn.Effect, err error) {
	jobs, err := h.jobs.Stopping(ctx, session, caller)
	if err != nil {
		return 0, turn.Effect{}, err //nolint:wrapcheck // the runner says what failed
	}
	rows, err := h.deps.Conversations.Rows(ctx, session, newest)
	for i := range rows {
		if r := &rows[i]; r.State == bot.Pending && r.Content.File != nil && strings.HasPrefix(r.Key, bucket+"/") &&
			(caller == "" || !r.Place.Group) {
			update := bot.RowUpdate{ID: r.ID, From: []bot.RowState{bot.Pending}, To: bot.Dead}
			ends.Change.Rows = append(ends.Change.Rows, update)
		}
	}
	ends.Change.Facts = jobs
	ends.Then = func(context.Context, *bot.Applied) (turn.Effect, error) {
		h.jobs.Stopped(jobs)
		return turn.Effect{}, nil
	}
	return len(jobs) + len(ends.Change.Rows), ends, err //nolint:wrapcheck // the store says what failed
}

// newJob returns the job of speaking a text. whole is false if something of it was left out, which is said.
func (h *Handler) newJob(key string, session bot.SessionKey, msg *bot.Message, text string, whole bool) job.Job {
	if !whole {
		text += "\n\n" + h.deps.Words.SpeechRest(msg.Language)
	}
	who := bot.Message{ // without its content
		ID: msg.ID, Kind: msg.Kind, Place: msg.Place, Caller: msg.Caller, Person: msg.Person, Language: msg.Language,
		Message: msg.Message,
	}
	return job.Job{Key: key, Session: session, Message: who, Text: text}
}

// beside notes that an answer is to be spoken, where that is wanted.
func (h *Handler) beside(answer turn.Answer) turn.Beside {
	switch h.deps.Wanted(answer.Place, answer.Caller) {
	case texts.SpeechAlways:
	case texts.SpeechSpoken:
		if !isSpoken(answer.Message) {
			return turn.Beside{}
		}
	default:
		return turn.Beside{}
	}
	text, whole := speakableText(answer.Text)
	if text == "" {
		return turn.Beside{}
	}
	noted, err := h.jobs.Note(h.newJob(answerKey+answer.Turn, answer.Session, answer.Message, text, whole))
	if err != nil {
		h.deps.Log.Error().Err(err).Msg("an answer is not spoken")
	}
	return noted
}

// isSpoken reports whether a person has said what they ask.
func isSpoken(msg *bot.Message) bool {
	if msg.Forwarded {
		return false
	}
	for i := range msg.Files {
		if msg.Files[i].Kind == bot.Voice {
			return true
		}
	}
	return false
}

// speakAgain answers /speak: it speaks the answer that it replies to, or the newest one.
func (h *Handler) speakAgain(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	tail, err := h.deps.Conversations.Tail(ctx, call.Session, room)
	if err != nil {
		return turn.Effect{}, fmt.Errorf("read a conversation: %w", err)
	}
	text, whole := speakableText(answerOf(call.Message, tail.Entries))
	if text == "" {
		return call.ReplyText(h.deps.Words.SpeechNothing(call.Message.Language)), nil
	}
	return h.jobs.Effect(h.newJob("asked/"+call.Message.ID, call.Session, call.Message, text, whole))
}

// answerOf returns the answer that a message is about: the one that it replies to, as the model wrote it if the
// conversation still has it, or else the newest one.
func answerOf(msg *bot.Message, entries []journal.Entry) string {
	quoted := ""
	if msg.Reply != nil && msg.Reply.Own {
		quoted = strings.TrimSpace(msg.Reply.Text)
	}
	begins := strings.ToValidUTF8(quoted[:min(len(quoted), excerpt)], "")
	for i := len(entries) - 1; i >= 0; i-- {
		if e := &entries[i]; e.Kind == journal.AnswerEntry &&
			(begins == "" || strings.Contains(render.Whole(e.Text).Text, begins)) {
			return e.Text
		}
	}
	return quoted
}

// give speaks a text and returns what is sent. A job that was begun before is not repeated.
func (h *Handler) give(ctx context.Context, j *job.Job) []bot.Row {
	if j.Resumed {
		return []bot.Row{h.rowFor(j, bot.Content{Text: h.deps.Words.SpeechInterrupted(j.Message.Language)})}
	}
	content, err := h.speak(ctx, j)
	switch {
	case ctx.Err() != nil: // stopped; or the service ends, and the next one says so
		return nil
	case err != nil:
		return []bot.Row{h.failureRow(j, err)}
	default:
		return []bot.Row{h.rowFor(j, content)}
	}
}

// speak has a text spoken and keeps the recording.
func (h *Handler) speak(ctx context.Context, j *job.Job) (bot.Content, error) {
	id, unasked := strings.CutPrefix(j.Key, answerKey)
	if !unasked {
		id = commandName + "/" + j.Message.ID
	}
	purse := h.deps.Open(&j.Message, id)
	purse.Close() // no turn stores what is spent, so it stores that itself
	bounded, cancel := context.WithTimeout(cost.WithPayer(ctx, purse), speakTime)
	defer cancel()
	var sound llm.Sound
	var unsure error
	voice := ""
	if h.deps.VoiceOf != nil {
		voice = h.deps.VoiceOf(j.Session)
	}
	err := h.deps.Retry.Do(bounded, "speak", func(ctx context.Context) (err error) {
		sound, _, err = h.deps.Voice.Speak(ctx, j.Text, voice)
		if llm.MayHaveCost(err) { // it is paid for already
			unsure, err = err, nil
		}
		return err
	})
	if err = errors.Join(err, unsure); err != nil {
		return bot.Content{}, err
	}
	ref, err := h.deps.Blobs.Put(ctx, string(j.Session), bytes.NewReader(sound.Data))
	if err != nil {
		return bot.Content{}, fmt.Errorf("keep a recording: %w", err)
	}
	name := "answer.ogg"
	if sound.Type == llm.MP3 {
		name = "answer.mp3"
	}
	return bot.Content{
		Instead: h.deps.Words.SpeechFailed(j.Message.Language),
		File: &bot.File{
			Name: name, Type: sound.Type, Hash: ref.Hash, Size: ref.Size, Voice: true,
			Seconds: int(sound.Length.Round(time.Second).Seconds()),
		},
	}, nil
}

// failureRow tells the person that an answer is not spoken. Who has not asked for it is told once a day.
func (h *Handler) failureRow(j *job.Job, err error) bot.Row {
	h.deps.Log.Warn().Err(err).Str("session", string(j.Session)).Msg("an answer is not spoken")
	text := h.deps.Words.SpeechFailed(j.Message.Language)
	if denied, ok := errors.AsType[*cost.Denied](err); ok {
		text = h.deps.Words.SpeechUnpaid(j.Message.Language, denied.Text)
	}
	row := h.rowFor(j, bot.Content{Text: text})
	if row.Turn != "" {
		row.Key = fmt.Sprintf("%s/failed/%s/%s", bucket, j.Session, h.deps.Now().UTC().Format(time.DateOnly))
	}
	return row
}

func (h *Handler) rowFor(j *job.Job, content bot.Content) bot.Row {
	content.Language = j.Message.Language
	row := bot.Row{
		Session: j.Session, Place: j.Message.Place, Purpose: bot.Reply, Content: content,
		ReplyTo: j.Message.Message, Key: bucket + "/" + j.Key,
	}
	if turn, unasked := strings.CutPrefix(j.Key, answerKey); unasked {
		row.Turn, row.Purpose = turn, bot.Notice
	}
	return row
}
