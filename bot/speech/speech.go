// Package speech speaks answers: each one where somebody has chosen that in /settings, those to questions that were
// spoken, and with /speak any one that was given. The text of an answer never waits for its recording: it is sent as
// always, and the recording follows as a reply to the question.
//
// What is to be spoken is a job, which the Change with the answer stores. Before a server is asked, the job is marked
// as begun: whoever finds one that a dead process has begun does not repeat it, because nobody knows what it has cost.
// The Change that sends the recording deletes the job, and is refused if somebody has deleted it meanwhile with /stop.
package speech

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

const (
	// bucket holds what is to be spoken, by a name of its own: a job.
	bucket = "speech_job"
	jobFor = time.Hour // after that, nobody waits for it any more

	commandName = "speak"

	room      = 512 << 10 // bytes of a conversation in which an answer is looked for
	excerpt   = 200       // by how many bytes of its beginning an answer is recognised
	atOnce    = 8         // answers that are being spoken
	speakTime = 2 * time.Minute
	storeTime = 10 * time.Second
)

// Store is what a Handler needs of a store.
type Store interface {
	facts.Store
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
	Store  Store
	Keeper facts.Keeper
	Blobs  blob.Store // keeps recordings until they are sent
	Voice  Voice
	// VoiceOf returns the voice of a conversation; "" = the configured one. nil = that is everybody's.
	VoiceOf func(session bot.SessionKey) string
	Retry   Retry
	// Open opens what pays for a message (bot/quota).
	Open func(msg *bot.Message, id string) turn.Budget
	// Wanted returns which answers to a person are spoken in a place (bot/preference).
	Wanted  func(place bot.Place, caller string) string
	Words   texts.Words
	Wake    func(place bot.Place)
	Current func(session bot.SessionKey) bot.SessionKey // the name of a session whose chat may have moved
	Owner   string                                      // this process
	Lives   func(owner string) bool
	Now     func() time.Time
	Log     zerolog.Logger
}

// Handler speaks answers. Safe for concurrent use. It works while Run runs.
type Handler struct {
	deps Deps

	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // bounds the goroutines of the Handler; nil = Run does not run
	working sync.WaitGroup
	begun   map[string]*speaking // by key of the job
	slots   chan struct{}
}

// speaking is a job that this process works on.
type speaking struct {
	session bot.SessionKey
	cancel  context.CancelFunc
}

// New returns a Handler.
func New(deps Deps) *Handler {
	return &Handler{deps: deps, begun: map[string]*speaking{}, slots: make(chan struct{}, atOnce)}
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
		Run:      h.run,
		Follow:   h.follow,
	}
}

// job is a text that is to be spoken.
type job struct {
	Session bot.SessionKey `json:"session"`
	Turn    string         `json:"turn,omitempty"`
	Message bot.Message    `json:"message"` // who asked, where; without its content
	Text    string         `json:"text"`
	Asked   bool           `json:"asked,omitempty"` // with /speak
	Owner   string         `json:"owner"`           // the process that works on it
	Begun   bool           `json:"begun,omitempty"` // a server may have been asked
}

// newJob returns the job of speaking a text. left: something of it was left out, which is said.
func (h *Handler) newJob(session bot.SessionKey, msg *bot.Message, text string, whole bool) job {
	if !whole {
		text += "\n\n" + h.deps.Words.SpeechRest(msg.Language)
	}
	who := bot.Message{
		ID: msg.ID, Kind: msg.Kind, Place: msg.Place, Caller: msg.Caller, Person: msg.Person, Language: msg.Language,
		Message: msg.Message,
	}
	return job{Session: session, Message: who, Text: text, Owner: h.deps.Owner}
}

func (h *Handler) fact(key string, j *job) (bot.Fact, error) {
	raw, err := json.Marshal(j)
	if err != nil {
		return bot.Fact{}, fmt.Errorf("note what is to be spoken: %w", err)
	}
	return bot.Fact{Bucket: bucket, Key: key, Value: string(raw), Expires: h.deps.Now().Add(jobFor)}, nil
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
	text, whole := speakable(answer.Text)
	if text == "" {
		return turn.Beside{}
	}
	j := h.newJob(answer.Session, answer.Message, text, whole)
	j.Turn = answer.Turn
	return h.noted("answer/"+answer.Turn, &j)
}

// noted returns a job that is stored with something else, and then begun.
func (h *Handler) noted(key string, j *job) turn.Beside {
	note, err := h.fact(key, j)
	if err != nil {
		h.deps.Log.Error().Err(err).Msg("an answer is not spoken")
		return turn.Beside{}
	}
	return turn.Beside{Facts: []bot.Fact{note}, Then: func() { h.start(key, note.Value, *j) }}
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
	tail, err := h.deps.Store.Tail(ctx, call.Session, room)
	if err != nil {
		return turn.Effect{}, fmt.Errorf("read a conversation: %w", err)
	}
	text, whole := speakable(answerOf(call.Message, tail.Entries))
	if text == "" {
		return call.ReplyText(h.deps.Words.SpeechNothing(call.Message.Language)), nil
	}
	j := h.newJob(call.Session, call.Message, text, whole)
	j.Asked = true
	noted := h.noted("asked/"+call.Message.ID, &j)
	return turn.Effect{
		Change: bot.Change{Facts: noted.Facts},
		Then: func(context.Context, *bot.Applied) (turn.Effect, error) {
			if noted.Then != nil {
				noted.Then()
			}
			return turn.Effect{}, nil
		},
	}, nil
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

// run speaks until ctx ends, beginning with what a dead process has left.
func (h *Handler) run(ctx context.Context) error {
	h.mu.Lock()
	h.ctx = ctx
	h.mu.Unlock()
	if err := h.takeUp(ctx, func(owner string) bool {
		return owner == h.deps.Owner || !h.deps.Lives(owner)
	}); err != nil && ctx.Err() == nil {
		h.deps.Log.Error().Err(err).Msg("answers that wait since before the start not spoken")
	}
	<-ctx.Done()
	h.mu.Lock()
	h.ctx = nil
	h.mu.Unlock()
	h.working.Wait()
	return nil
}

// follow takes up what dead processes have left, and ends what somebody has stopped in another process.
func (h *Handler) follow(ctx context.Context) error {
	return h.takeUp(ctx, func(owner string) bool { return owner != h.deps.Owner && !h.deps.Lives(owner) })
}

func (h *Handler) takeUp(ctx context.Context, of func(owner string) bool) error {
	h.mu.Lock()
	gone := maps.Clone(h.begun)
	h.mu.Unlock()
	list, err := h.deps.Store.FactsOf(ctx, bucket, "", h.deps.Now())
	if err != nil {
		return fmt.Errorf("read what is to be spoken: %w", err)
	}
	for _, f := range list {
		delete(gone, f.Key)
		if j, ok := h.readJob(f); ok && of(j.Owner) {
			h.start(f.Key, f.Value, j)
		}
	}
	for _, s := range gone {
		s.cancel()
	}
	return nil
}

func (h *Handler) readJob(f bot.Fact) (j job, ok bool) {
	if err := json.Unmarshal([]byte(f.Value), &j); err != nil {
		h.deps.Log.Error().Err(err).Str("job", f.Key).Msg("what is to be spoken is not readable")
		return j, false
	}
	return j, true
}

// Stopping returns the facts that end the recordings that are being made for a session, in whichever process, and how
// many these are. Stopped follows once they are stored.
func (h *Handler) Stopping(ctx context.Context, session bot.SessionKey) (int, []bot.Fact, error) {
	list, err := h.deps.Store.FactsOf(ctx, bucket, "", h.deps.Now())
	if err != nil {
		return 0, nil, fmt.Errorf("read what is to be spoken: %w", err)
	}
	var ends []bot.Fact
	for _, f := range list {
		if j, ok := h.readJob(f); ok && h.deps.Current(j.Session) == session {
			ends = append(ends, bot.Fact{Bucket: bucket, Key: f.Key})
		}
	}
	return len(ends), ends, nil
}

// Stopped ends the recordings that this process makes for a session.
func (h *Handler) Stopped(session bot.SessionKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.begun {
		if s.session == session {
			s.cancel()
		}
	}
}

// start works on a job in the background, once at a time. stored is the job as the store has it. What is not begun
// because the service ends is found by the next start.
func (h *Handler) start(key, stored string, j job) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil || h.begun[key] != nil {
		return
	}
	j.Session = h.deps.Current(j.Session)
	if chat := j.Session.Chat(); chat != "" && chat != j.Message.Place.Chat {
		j.Message.Place.Chat, j.Message.Message = chat, ""
	}
	ctx, cancel := context.WithCancel(h.ctx)
	h.begun[key] = &speaking{session: j.Session, cancel: cancel}
	h.working.Go(func() {
		defer func() {
			cancel()
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.begun, key)
		}()
		select {
		case h.slots <- struct{}{}:
			defer func() { <-h.slots }()
			h.give(ctx, key, stored, &j)
		case <-ctx.Done():
		}
	})
}

// give speaks a text and sends the recording. A job that was begun before is not repeated.
func (h *Handler) give(ctx context.Context, key, stored string, j *job) {
	if j.Begun {
		h.end(ctx, key, stored, j, []bot.Row{h.rowFor(key, j, bot.Content{
			Text: h.deps.Words.SpeechInterrupted(j.Message.Language),
		})})
		return
	}
	j.Begun, j.Owner = true, h.deps.Owner
	mark, err := h.fact(key, j)
	if err != nil {
		return
	}
	mark.Was = &stored
	if _, err := h.deps.Store.Apply(ctx, &bot.Change{Facts: []bot.Fact{mark}}); err != nil {
		if ctx.Err() == nil && !errors.Is(err, bot.ErrConflict) { // else another process has it, or somebody stopped it
			h.deps.Log.Warn().Err(err).Msg("an answer is not spoken")
		}
		return
	}
	content, err := h.speak(ctx, j)
	if ctx.Err() != nil { // stopped; or the service ends, and the next one says so
		return
	}
	var rows []bot.Row
	if err == nil {
		rows = append(rows, h.rowFor(key, j, content))
	} else {
		rows = append(rows, h.failureRow(key, j, err))
	}
	h.end(ctx, key, mark.Value, j, rows)
}

// speak has a text spoken and keeps the recording.
func (h *Handler) speak(ctx context.Context, j *job) (bot.Content, error) {
	id := j.Turn
	if id == "" {
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
func (h *Handler) failureRow(key string, j *job, err error) bot.Row {
	h.deps.Log.Warn().Err(err).Str("session", string(j.Session)).Msg("an answer is not spoken")
	text := h.deps.Words.SpeechFailed(j.Message.Language)
	if denied, ok := errors.AsType[*cost.Denied](err); ok {
		text = h.deps.Words.SpeechUnpaid(j.Message.Language, denied.Text)
	}
	row := h.rowFor(key, j, bot.Content{Text: text})
	if !j.Asked {
		row.Key = fmt.Sprintf("%s/failed/%s/%s", bucket, j.Session, h.deps.Now().UTC().Format(time.DateOnly))
	}
	return row
}

// end deletes a job and sends what has become of it, unless somebody has deleted it before.
func (h *Handler) end(ctx context.Context, key, stored string, j *job, rows []bot.Row) {
	kept, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	err := h.deps.Keeper.Keep(kept, &bot.Change{
		Facts: []bot.Fact{{Bucket: bucket, Key: key, Was: &stored}}, Send: rows,
	})
	switch {
	case errors.Is(err, bot.ErrConflict): // stopped, or erased; or it was stored, and the reply was lost
	case err != nil:
		h.deps.Log.Error().Err(err).Msg("a recording is not stored")
		return
	}
	h.deps.Wake(j.Message.Place)
}

func (h *Handler) rowFor(key string, j *job, content bot.Content) bot.Row {
	content.Language = j.Message.Language
	row := bot.Row{
		Session: j.Session, Turn: j.Turn, Place: j.Message.Place, Purpose: bot.Notice, Content: content,
		ReplyTo: j.Message.Message, Key: bucket + "/" + key,
	}
	if j.Asked {
		row.Purpose = bot.Reply
	}
	return row
}
