package app_test

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// leaver is the output of a terminal whose person leaves as soon as they have read something.
type leaver struct {
	reads string
	leave func()

	mu  sync.Mutex
	out bytes.Buffer
}

// Write implements io.Writer.
func (l *leaver) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.Write(p)
	if strings.Contains(l.out.String(), l.reads) {
		l.leave()
	}
	return len(p), nil
}

// TestTerminalRecap: who goes on with a conversation reads what the conversation was about before they write anything.
func TestTerminalRecap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg, err := config.Load(config.Source{WorkDir: dir, Home: dir, Env: []string{"ZEPH_DATA_DIR=" + filepath.Join(dir, "data")}})
	if err != nil {
		t.Fatal(err)
	}
	chat := func(in io.Reader, out io.Writer, ask, goOn bool) *llmtest.Model {
		model, err := llmtest.Parse("on \"The conversation:\": expect \"Heron\"\nand say You called it Heron.\non \"it\": say Good")
		if err != nil {
			t.Fatal(err)
		}
		err = app.Chat(t.Context(), app.Options{Config: cfg, Version: "test", Log: zerolog.Nop(), WorkDir: dir, Provider: model},
			app.ChatOptions{In: in, Out: out, Err: io.Discard, Ask: ask, Continue: goOn, Language: "en"})
		if err != nil {
			t.Fatal(err)
		}
		return model
	}
	var out bytes.Buffer
	if chat(strings.NewReader("call it Heron\nis it good?\n"), &out, false, false); strings.Contains(out.String(), "Recap") {
		t.Errorf("a recap of nothing: %s", out.String())
	}
	for range 2 { // each time
		in, leave := io.Pipe()
		read := &leaver{reads: "You called it Heron.", leave: func() { _ = leave.Close() }} // it has no error
		if model := chat(in, read, true, true); !strings.Contains(read.out.String(), "Recap of this conversation") || len(model.Requests()) != 1 {
			t.Errorf("%d requests, read %q", len(model.Requests()), read.out.String())
		}
	}
	out.Reset()
	if model := chat(strings.NewReader("is it late?\n"), &out, false, true); strings.Contains(out.String(), "Recap") || len(model.Requests()) != 1 {
		t.Errorf("nobody is there, %d requests, written: %s", len(model.Requests()), out.String())
	}
}
