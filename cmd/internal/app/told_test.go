package app_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// TestToldToEndWhileStarting: a service that is told to end before it has begun ends without an error, so that its
// supervisor sees a clean end.
func TestToldToEndWhileStarting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg, err := config.Load(config.Source{WorkDir: dir, Home: dir, Env: []string{
		"ZEPH_DATA_DIR=" + filepath.Join(dir, "data"), "ZEPH_TELEGRAM_TOKEN=7000000001:x", "ZEPH_TELEGRAM_API_URL=http://127.0.0.1:1",
		"ZEPH_LLM_PROVIDERS_MAIN_TYPE=offline",
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := app.Serve(ctx, app.Options{Config: cfg, Version: "v0.0.0-test", WorkDir: dir, Log: zerolog.Nop()}); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
