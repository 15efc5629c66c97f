package app

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools"
)

// silent sends nothing: it is never asked to.
type silent struct {
	bot.Composer
	bot.Sender
	bot.Reactor
}

// TestDueLinesAtTheEnd: a line that is due when the service is told to stop is in the log when it has stopped, not only
// after the next start.
func TestDueLinesAtTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg, err := config.Load(config.Source{WorkDir: dir, Home: dir, Env: []string{"ZEPH_LLM_PROVIDERS_MAIN_TYPE=offline"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := OpenCore(t.Context(), Options{Config: cfg, Log: zerolog.Nop(), WorkDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s, err := newService(c, channel{name: telegram.Name, bot: "1", composer: silent{}, sender: silent{}, admins: func() []string { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	told, tell := context.WithCancel(t.Context())
	err = s.run(told, func(ctx context.Context) error {
		due := c.records.Due(&tools.Call{ID: "1", Tool: "undo", Trail: &tools.Trail{}}, nil)
		if err := c.keeper().Keep(ctx, &bot.Change{Facts: due}); err != nil {
			t.Error(err)
		}
		tell()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	log, err := os.ReadFile(c.auditTo())
	if err != nil || bytes.Count(log, []byte(`"tool":"undo"`)) != 1 {
		t.Errorf("the log, %v:\n%s", err, log)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
