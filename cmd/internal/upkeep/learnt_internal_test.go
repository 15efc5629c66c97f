package upkeep

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/bot/learnt"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/cmd/internal/providers"
	"github.com/zephbot/zephbot/persistence/sql"
)

// TestPrintLearnt: config print shows what was learnt of the configured servers, as comments whatever a server has
// written; of other servers, of another key and without a database it shows nothing, and it creates none.
func TestPrintLearnt(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DataDir = filepath.Join(t.TempDir(), "data")
	cfg.LLM.Providers = []config.Provider{{Name: "main", Type: "openai", Model: "m", APIKey: "key"}}
	at := layout.Layout{Config: &cfg}
	printed := func() string {
		t.Helper()
		var out strings.Builder
		if err := PrintLearnt(t.Context(), &out, at, time.Now()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if text := printed(); text != "" {
		t.Errorf("without a database: %q", text)
	}
	if _, err := os.Stat(cfg.DataDir); !os.IsNotExist(err) {
		t.Errorf("it creates data_dir: %v", err)
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := sql.Open(t.Context(), sql.Options{Path: filepath.Join(cfg.DataDir, "zephbot.db"), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	if text := printed(); text != "" {
		t.Errorf("nothing was learnt: %q", text)
	}
	server := func(provider string) string {
		if provider == "gone" {
			return "0123"
		}
		return providers.ServerHash(&cfg, provider)
	}
	m := learnt.New(learnt.Deps{Server: server, Now: time.Now, Log: zerolog.Nop()})
	m.Open(store)
	m.Update("main", "m", func(l *dialect.Learnt) {
		l.Omit, l.Rename = []string{"user"}, map[string]string{"max_tokens": "max_completion_tokens"}
		l.Set, l.Window = map[string]string{"temperature": "1"}, 8192
		l.Aside = []dialect.Aside{{Tool: "mcp:x", Schema: "1", Reason: "bad\n[llm]\r\x7f\u2028x = 1"}}
	})
	m.Update("gone", "m", func(l *dialect.Learnt) { l.Window = 1 })
	m.Update("main", "tried", func(l *dialect.Learnt) { l.Spent = 1 })
	if err := m.Store(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := printed()
	for _, part := range []string{
		"of the server of main, model m, 20", "#   without user\n", "#   max_tokens as max_completion_tokens\n", "#   temperature = 1\n",
		"#   window of 8192 tokens\n", "#   set aside mcp:x (bad",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing", part)
		}
	}
	var read map[string]any
	if err := toml.Unmarshal([]byte(text), &read); err != nil || len(read) > 0 {
		t.Errorf("not only comments: %v %v\n%s", read, err, text)
	}
	if strings.Contains(text, "gone") || strings.Contains(text, "tried") {
		t.Errorf("too much:\n%s", text)
	}
	if err := PrintLearnt(t.Context(), brokenPipe{}, at, time.Now()); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a broken pipe: %v", err)
	}
	cfg.LLM.Providers[0].APIKey = "another"
	if text := printed(); text != "" {
		t.Errorf("with another key: %q", text)
	}
	cfg.Database.URL = "postgres://u:hidden@127.0.0.1:1/x"
	if text := printed(); !strings.Contains(text, "cannot be read") || strings.Contains(text, "hidden") {
		t.Errorf("an unreachable database: %q", text)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
