package app_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/cmd/internal/apptest"
)

// Behaviour 26 of a good bot: a photo, a voice message, a document of more than 20 MB, a sticker, an album of five and a
// place get a sensible answer or a clear "cannot" each; the album is one turn.
func TestBehaviour26EverythingThatIsSentGetsAnAnswer(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/behaviour/26.txtar")
	if err != nil {
		t.Fatal(err)
	}
	apptest.Play(t, archive)
}

// A voice message is written down by the configured provider: the model reads it as what the person said, and the person
// sees above the answer what was understood.
func TestVoiceIsWrittenDown(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, header, err := r.FormFile("file")
		if err != nil {
			t.Errorf("form: %v", err)
			return
		}
		data, err := io.ReadAll(f)
		if err != nil || r.FormValue("model") != "whisper" || header.Filename != "recording.ogg" || !strings.HasPrefix(string(data), "OggS") {
			t.Errorf("%s %s, %d bytes, %v", r.FormValue("model"), header.Filename, len(data), err)
		}
		_, _ = io.WriteString(w, `{"text":"Please buy tea."}`)
	}))
	t.Cleanup(s.Close)
	raw, err := os.ReadFile(filepath.Join("testdata", "behaviour", "voice.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	apptest.Play(t, txtar.Parse([]byte(strings.ReplaceAll(string(raw), "SCRIBE", s.URL))))
}
