package speech_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/blob/blobtest"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/job"
	"github.com/zephbot/zephbot/bot/speech"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

var place = bot.Place{Channel: "telegram", Bot: "1", Surface: bot.SurfaceBot, Chat: "42"}

const session = bot.SessionKey("telegram/1/bot/42/0/0")

func asked() *bot.Message {
	return &bot.Message{
		ID: "7", Kind: bot.Text, Place: place, Caller: "telegram:42", Person: "42", Language: "en", Message: "5", Text: "secret words",
		Files: []bot.Attachment{{Kind: bot.Voice, ID: "f"}},
	}
}

// voice answers what it is asked for, once it is released.
type voice struct {
	release chan struct{} // nil = at once
	err     error

	mu    sync.Mutex
	texts []string
	named string
}

func (v *voice) Speak(ctx context.Context, text, named string) (llm.Sound, float64, error) {
	v.mu.Lock()
	v.texts, v.named = append(v.texts, text), named
	v.mu.Unlock()
	if v.release != nil {
		select {
		case <-v.release:
		case <-ctx.Done():
			return llm.Sound{}, 0, ctx.Err()
		}
	}
	return llm.Sound{Data: []byte("OggS"), Type: llm.OggOpus, Length: 1600 * time.Millisecond}, 0.01, v.err
}

// budget is free.
type budget struct{ turn.Budget }

func (budget) Close() {}

// once does not repeat anything.
type once struct{}

func (once) Do(ctx context.Context, _ string, run func(ctx context.Context) error) error {
	return run(ctx)
}

// world is a process that speaks, and the store that it shares.
type world struct {
	*speech.Handler
	feature.Feature
	store  *bottest.Store
	voice  *voice
	wanted string
	dead   map[string]bool
	end    func()
}

func setup(t *testing.T, store *bottest.Store, owner string) *world {
	t.Helper()
	w := &world{store: store, voice: &voice{}, wanted: texts.SpeechSpoken, dead: map[string]bool{}}
	w.Handler = speech.New(speech.Deps{
		Deps: job.Deps{
			Store: store, Keeper: facts.Keeper{Store: store, Log: zerolog.Nop()}, Wake: func(bot.Place) {},
			Current: func(s bot.SessionKey) bot.SessionKey { return s }, Owner: owner,
			Lives: func(owner string) bool { return !w.dead[owner] }, Now: time.Now, Log: zerolog.Nop(),
		},
		Conversations: store, Blobs: &blobtest.Store{}, Voice: w.voice, Retry: once{},
		Open:    func(*bot.Message, string) turn.Budget { return budget{} },
		VoiceOf: func(s bot.SessionKey) string { return "voice of " + s.ChatKey() },
		Wanted:  func(bot.Place, string) string { return w.wanted }, Words: texts.Words{},
	})
	w.Feature = w.Handler.Feature()
	return w
}

// run lets the process work until end.
func (w *world) run(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	w.end = func() { cancel(); <-done }
	synctest.Wait()
}

// answer stores an answer as a turn does.
func (w *world) answer(t *testing.T, text string) {
	t.Helper()
	beside := w.Beside(turn.Answer{Place: place, Caller: "telegram:42", Session: session, Turn: "t1", Message: asked(), Text: text})
	if _, err := w.store.Apply(t.Context(), &bot.Change{Facts: beside.Facts}); err != nil {
		t.Fatal(err)
	}
	if beside.Then != nil {
		beside.Then()
	}
	synctest.Wait()
}

func (w *world) rows(t *testing.T) []bot.Row {
	t.Helper()
	rows, err := w.store.Rows(t.Context(), session, 10)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func (w *world) jobs(t *testing.T) int {
	t.Helper()
	list, err := w.store.FactsOf(t.Context(), "speech_job", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestSpeaks: an answer to a spoken question becomes a voice message that answers it, and nothing of it is left.
func TestSpeaks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, bottest.New(), "a")
		w.run(t)
		w.answer(t, "Hello **you**.")
		rows := w.rows(t)
		if len(rows) != 1 || w.jobs(t) != 0 || len(w.voice.texts) != 1 || w.voice.texts[0] != "Hello you." || !strings.HasPrefix(w.voice.named, "voice of telegram/") {
			t.Fatalf("%d rows, %d jobs, %q", len(rows), w.jobs(t), w.voice.texts)
		}
		f := rows[0].Content.File
		if f == nil || !f.Voice || f.Seconds != 2 || f.Hash == "" || f.Type != llm.OggOpus || rows[0].ReplyTo != "5" || rows[0].Turn != "t1" || !rows[0].Vital() {
			t.Errorf("%+v, %+v", rows[0], f)
		}
		w.wanted = texts.SpeechAsked
		w.answer(t, "Not this one.")
		w.wanted = texts.SpeechAlways
		w.answer(t, "```\nonly code\n```")
		if len(w.voice.texts) != 1 {
			t.Errorf("spoken: %q", w.voice.texts)
		}
		w.end()
	})
}

// TestStopped: /stop ends what is being spoken in this process and in others, and nothing is sent.
func TestStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := bottest.New()
		here, there := setup(t, store, "a"), setup(t, store, "b")
		here.voice.release = make(chan struct{})
		here.run(t)
		there.run(t)
		here.answer(t, "Hello.")
		n, ends, err := there.Stopping(t.Context(), session, "")
		if n != 1 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		for session, caller := range map[bot.SessionKey]string{"telegram/1/bot/7/0/0": "", session: "telegram:7"} {
			if other, _, err := there.Stopping(t.Context(), session, caller); other != 0 || err != nil {
				t.Errorf("%s of %s: %d, %v", session, caller, other, err)
			}
		}
		if _, err := store.Apply(t.Context(), &ends.Change); err != nil {
			t.Fatal(err)
		}
		if _, err := ends.Then(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := here.Follow(t.Context()); err != nil { // as each second
			t.Fatal(err)
		}
		synctest.Wait()
		close(here.voice.release)
		synctest.Wait()
		if rows := here.rows(t); len(rows) != 0 {
			t.Errorf("sent: %+v", rows)
		}
		here.end()
		there.end()
	})
}

// TestStoppedTooLate: a recording that is ready when somebody stops it is not sent either.
func TestStoppedTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, bottest.New(), "a")
		w.voice.release = make(chan struct{})
		w.run(t)
		w.answer(t, "Hello.")
		_, ends, err := w.Stopping(t.Context(), session, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.Apply(t.Context(), &ends.Change); err != nil {
			t.Fatal(err)
		}
		close(w.voice.release)
		synctest.Wait()
		if rows := w.rows(t); len(rows) != 0 {
			t.Errorf("sent: %+v", rows)
		}
		w.end()
	})
}

// TestStoppedUnsent: a recording that waits to be sent is given up, in a group only by who stops everybody's.
func TestStoppedUnsent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, bottest.New(), "a")
		w.run(t)
		w.answer(t, "Hello.")
		n, ends, err := w.Stopping(t.Context(), session, "telegram:42")
		if err == nil {
			_, err = w.store.Apply(t.Context(), &ends.Change)
		}
		rows := w.rows(t)
		if err != nil || n != 1 || len(rows) != 1 || rows[0].State != bot.Dead {
			t.Errorf("%d, %+v, %v", n, rows, err)
		}
		row := rows[0]
		row.Key, row.Place.Group, row.State = row.Key+"/group", true, bot.Pending
		if _, err := w.store.Apply(t.Context(), &bot.Change{Send: []bot.Row{row}}); err != nil {
			t.Fatal(err)
		}
		for caller, want := range map[string]int{"telegram:42": 0, "": 1} {
			if n, _, err := w.Stopping(t.Context(), session, caller); n != want || err != nil {
				t.Errorf("by %q: %d, %v", caller, n, err)
			}
		}
		w.end()
	})
}

// TestDies: what a process had begun when it died is not begun again, and the person is told; what it had not begun is
// spoken by the next one, once.
func TestDies(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]bool{"begun": true, "noted": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := bottest.New()
				first := setup(t, store, "a")
				first.voice.release = make(chan struct{})
				if begun {
					first.run(t)
				}
				first.answer(t, "Hello.")
				second, third := setup(t, store, "b"), setup(t, store, "c")
				for _, w := range []*world{second, third} {
					w.run(t)
					w.dead["a"] = true
					if err := w.Follow(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				rows := second.rows(t)
				if len(rows) != 1 || second.jobs(t) != 0 {
					t.Fatalf("%d rows, %d jobs", len(rows), second.jobs(t))
				}
				spoken := len(second.voice.texts) + len(third.voice.texts)
				if begun && (spoken != 0 || rows[0].Content.Text != texts.Words{}.SpeechInterrupted("en")) || !begun && (spoken != 1 || rows[0].Content.File == nil) {
					t.Errorf("spoken %d times, %+v", spoken, rows[0].Content)
				}
				for _, w := range []*world{first, second, third} {
					if w.end != nil {
						w.end()
					}
				}
			})
		})
	}
}

// TestFails: a failure is told once a day where nobody has asked, and always where somebody has; the reason of a quota is
// given. A call that may have cost something is not repeated.
func TestFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, bottest.New(), "a")
		w.run(t)
		w.voice.err = errors.New("no")
		w.answer(t, "Hello.")
		w.answer(t, "Hello again.")
		if rows := w.rows(t); len(rows) != 1 || rows[0].Content.Text != (texts.Words{}).SpeechFailed("en") {
			t.Errorf("%+v", rows)
		}
		w.voice.err = &cost.Denied{Text: "It is used up."}
		entry := journal.Entry{Turn: "t1", Kind: journal.AnswerEntry, At: time.Now(), Text: "Hello."}
		if _, err := w.store.Apply(t.Context(), &bot.Change{Append: &bot.Append{Session: session, Entries: []journal.Entry{entry}}}); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"8", "9"} {
			msg := asked()
			msg.ID = id
			e, err := w.Commands[0].Run(t.Context(), &turn.Call{Message: msg, Session: session})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.store.Apply(t.Context(), &e.Change); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Then(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		rows := w.rows(t)
		if len(rows) != 3 || rows[2].Content.Text != (texts.Words{}).SpeechUnpaid("en", "It is used up.") || rows[2].Purpose != bot.Reply {
			t.Errorf("%+v", rows)
		}
		w.end()
	})
}
