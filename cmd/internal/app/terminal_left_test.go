package app_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// TestALeftTurnStaysInItsDirectory: a turn that a terminal left in the middle is ended by the next one in another
// directory, and gone on with in its own: its commands were meant for that.
func TestALeftTurnStaysInItsDirectory(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		same  bool
		wants string
	}{{"another directory", false, "Hi"}, {"its own", true, "Gone on"}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			data, begun := t.TempDir(), t.TempDir()
			next := begun
			if !tt.same {
				next = t.TempDir()
			}
			chat := func(ctx context.Context, dir, script string, in io.Reader, out io.Writer) (*llmtest.Model, error) {
				cfg, err := config.Load(config.Source{
					WorkDir: dir, Home: dir, Env: []string{"ZEPH_DATA_DIR=" + filepath.Join(data, "data")},
				})
				if err != nil {
					t.Fatal(err)
				}
				model, err := llmtest.Parse(script)
				if err != nil {
					t.Fatal(err)
				}
				ctx, leave := context.WithCancel(ctx)
				defer leave()
				if strings.Contains(script, "wait gate") {
					go func() { // ends with the call, which comes
						<-model.Arrived("gate")
						leave()
					}()
				}
				return model, app.Chat(ctx, app.Options{Config: cfg, Version: "test", Log: zerolog.Nop(), WorkDir: dir, Provider: model},
					app.ChatOptions{In: in, Out: out, Err: io.Discard, Language: "en"})
			}
			typed, typing := io.Pipe()
			defer func() { _ = typing.Close() }()
			go func() { _, _ = io.WriteString(typing, "make it\n") }() // ends when it is read
			if _, err := chat(t.Context(), begun, "on \"make it\": wait gate", typed, io.Discard); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if _, err := chat(t.Context(), next, "on \"make it\": say Gone on\non \"hello\": say Hi", strings.NewReader("hello\n"), &out); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); !strings.Contains(got, tt.wants) || strings.Contains(got, "Gone on") != tt.same {
				t.Errorf("it said:\n%s", got)
			}
		})
	}
}
