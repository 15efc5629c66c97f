//go:build unix

package crashtest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm/vendortest"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/tools/document/documenttest"
)

// spoken is the story of a spoken question, whose answer is spoken too.
var spoken = story{
	script: `on "in the box": say ` + answer1,
	step:   (*run).stepSpoken, promise: (*run).promiseSpoken,
	prepare: func(r *run) {
		r.more = append(r.more, "ZEPH_LLM_PROVIDERS_MAIN_TRANSCRIPTION_MODEL=hears", "ZEPH_LLM_PROVIDERS_MAIN_SPEECH_MODEL=speaks",
			"ZEPH_LLM_PROVIDERS_MAIN_SPEECH_USD_PER_MCHAR=15")
	},
}

// TestCrashSpoken kills the process at every point of that story: the text comes once, the recording at most once, it is
// never paid twice, and where there is none, that is said.
func TestCrashSpoken(t *testing.T) { crash(t, spoken, 6) }

// drawn is the story of a picture.
var drawn = story{
	script: `
on "draw": call generate_image {"prompt":"A red fox"}
then say ` + answer1,
	step: (*run).stepDrawn, promise: (*run).promiseDrawn,
	prepare: func(r *run) {
		r.more = append(r.more, "ZEPH_LLM_PROVIDERS_MAIN_IMAGE_MODEL=draws", "ZEPH_LLM_PROVIDERS_MAIN_IMAGE_USD=0.01")
	},
}

// TestCrashDrawn kills the process at every point of that story: the picture is made at most once, and sent if that is
// known.
func TestCrashDrawn(t *testing.T) { crash(t, drawn, 5) }

// mediaOf returns what a request that is not for the script asks for, with the answer; "" = it is for the script.
func mediaOf(r *http.Request) (what string, answer []byte) {
	switch path.Base(r.URL.Path) {
	case "transcriptions":
		answer, _ = json.Marshal(map[string]string{"text": vendortest.Transcript}) // a map of strings
		return "transcription", answer
	case "speech":
		return "speech", vendortest.Opus(answer1)
	case "generations":
		data := base64.StdEncoding.EncodeToString(vendortest.Picture("fox", "", false))
		answer, _ = json.Marshal(map[string]any{"created": 1, "data": []any{map[string]string{"b64_json": data}}}) // maps of strings
		return "picture", answer
	default:
		return "", nil
	}
}

// makeMedia answers such a request.
func (m *modelServer) makeMedia(w http.ResponseWriter, r *http.Request, what string, answer []byte) {
	_, _ = io.Copy(io.Discard, r.Body) // so that the server sees that the client has gone
	m.hook(r.Context(), what, before)
	if r.Context().Err() != nil {
		return
	}
	if what != "transcription" {
		m.made.Add(1)
	}
	half := len(answer) / 2
	_, _ = w.Write(answer[:half]) // if the client has gone, the request's context ends
	if err := http.NewResponseController(w).Flush(); err != nil {
		return
	}
	m.hook(r.Context(), what, during)
	_, _ = w.Write(answer[half:])
	m.hook(r.Context(), what, after)
}

func (r *run) stepSpoken(ctx context.Context) (done bool, err error) {
	shown := r.fake.Chat(ann)
	switch {
	case r.requests("getUpdates") == r.polls: // this process does not poll yet
		return false, nil
	case r.said == 0:
		r.said++
		_, err := r.fake.Post(ann, ann, telegramtest.Message{
			Voice: &telegramtest.File{Name: "voice.oga", MIME: "audio/ogg", Data: documenttest.OGG(1200), Duration: 4},
		})
		return false, err
	case count(shown, answer1) == 0:
		return false, nil
	}
	if still, err := r.still(ctx); err != nil || !still {
		return false, err
	}
	left, err := r.jobsLeft(ctx)
	return err == nil && left == 0, err
}

// jobsLeft counts the answers that are to be spoken.
func (r *run) jobsLeft(ctx context.Context) (n int, err error) {
	return n, r.read(ctx, func(db persistence.Reader) error {
		facts, err := db.FactsOf(ctx, "speech_job", "", time.Now())
		n = len(facts)
		return err
	})
}

// attached counts the files of a kind that were sent, plainly and with the mark that they may have come before.
func attached(shown []telegramtest.Shown, kind string) (plain, marked int) {
	for _, m := range shown {
		switch {
		case !m.FromBot || m.Attachment == nil || m.Attachment.Kind != kind:
		case strings.Contains(m.Text, resent()):
			marked++
		default:
			plain++
		}
	}
	return plain, marked
}

// sentOnce: a file is sent once where it was made, and once more, marked, if the process was killed while it was sent.
func (r *run) sentOnce(shown []telegramtest.Shown, kind string, sent bool) error {
	plain, marked := attached(shown, kind)
	switch {
	case plain > 1, marked > 1, marked > 0 && r.dead == nil, sent != (plain+marked > 0):
		return fmt.Errorf("%s is there %d times plain and %d times marked, sent %v", kind, plain, marked, sent)
	default:
		return nil
	}
}

// promiseSpoken: the text came once, and the recording, or why there is none.
func (r *run) promiseSpoken(ctx context.Context) error {
	shown := r.fake.Chat(ann)
	errs := []error{r.answered(shown, answer1)}
	without := count(shown, texts.Words{}.SpeechInterrupted("en"))
	if made := r.model.made.Load(); made > 1 || made == 0 && without == 0 {
		errs = append(errs, fmt.Errorf("%d recordings are paid, %d times said that there is none", made, without))
	}
	if without > 0 {
		errs = append(errs, r.answered(shown, texts.Words{}.SpeechInterrupted("en")))
	}
	errs = append(errs, r.sentOnce(shown, "voice", without == 0))
	if left, err := r.jobsLeft(ctx); err != nil || left > 0 {
		errs = append(errs, fmt.Errorf("%d answers wait to be spoken, %w", left, orNone(err)))
	}
	return errors.Join(errs...)
}

func (r *run) stepDrawn(ctx context.Context) (done bool, err error) {
	switch {
	case r.requests("getUpdates") == r.polls: // this process does not poll yet
		return false, nil
	case r.said == 0:
		return false, r.say("draw a red fox")
	case count(r.fake.Chat(ann), answer1) == 0:
		return false, nil
	}
	return r.still(ctx)
}

// promiseDrawn: the answer came, the picture was paid at most once and sent if its call has a result, and a call of
// which nobody knows was running.
func (r *run) promiseDrawn(ctx context.Context) error {
	shown, unknown, results := r.fake.Chat(ann), false, 0
	errs := []error{r.answered(shown, answer1), r.read(ctx, func(db persistence.Reader) error {
		entries, err := db.Journal(ctx, session(r.fake.BotID()), 0)
		for i := range entries {
			if e := &entries[i]; e.Kind == journal.ResultEntry {
				results++
				unknown = unknown || e.Category == "unknown"
			}
		}
		return err
	})}
	made := r.model.made.Load()
	if running := r.dead != nil && r.dead.Running; results != 1 || made > 1 || made == 0 && !unknown || unknown != running {
		errs = append(errs, fmt.Errorf("%d pictures are paid, %d results, unknown %v", made, results, unknown))
	}
	return errors.Join(append(errs, r.sentOnce(shown, "photo", !unknown))...)
}
