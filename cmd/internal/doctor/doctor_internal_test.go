package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence"
)

// TestDoctorIsBounded: a check that does not end has a row that says so, the others have theirs, and secrets are in none.
func TestDoctorIsBounded(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.MCP.Servers = []config.MCPServer{{ID: "a", Env: map[string]config.Secret{"KEY": "planted-secret"}}}
	d := &doctor{c: &cfg, opts: Options{Each: 50 * time.Millisecond, Offline: true, Options: app.Options{Config: &cfg}}}
	ended := make(chan struct{})
	defer close(ended)
	rows := d.all(t.Context(), []probe{
		{name: "stuck", run: func(context.Context) []Row { <-ended; return nil }},
		{name: "quick", run: func(context.Context) []Row { return ok("quick", "it says planted-secret\nand more") }},
		{name: "far", online: true, run: func(context.Context) []Row { return ok("far", "asked") }},
		{name: "patient", run: func(ctx context.Context) []Row { <-ctx.Done(); return ok("patient", "it gave up") }},
	})
	var checks []string
	for _, r := range rows {
		checks = append(checks, r.Check+" "+string(r.Status))
	}
	if got := strings.Join(checks, ", "); got != "stuck fail, quick ok, patient ok" {
		t.Error(got)
	}
	if got := d.redactor()(rows[1].Text); strings.Contains(got, "planted") || strings.Contains(got, "\n") {
		t.Error(got)
	}
}

// TestDoctorReadsLimits: limits that were set in the chat are looked at as the database has them, also with what was learnt
// of the models' servers there; a database that cannot be read is said.
func TestDoctorReadsLimits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	in, out := 1.0, 10.0
	cfg := config.Default()
	cfg.LLM.Providers = []config.Provider{{Name: "main", Type: "openai", BaseURL: "https://models.example.com/v1", Model: "our-model", MaxTokens: 4096, InputUSDPerMTok: &in, OutputUSDPerMTok: &out}}
	dir := t.TempDir()
	d := &doctor{c: &cfg, dir: dir, opts: Options{Options: app.Options{Config: &cfg, Now: func() time.Time { return now }}}}
	if rows := d.limits(t.Context()); len(rows) > 0 {
		t.Errorf("without a database: %v", rows)
	}
	stores, err := persistence.Open(t.Context(), persistence.Options{DataDir: dir, Mode: "serve", Owner: "service", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	if err := stores.Close(); err != nil {
		t.Fatal(err)
	}
	set := func(user, value string) {
		t.Helper()
		err := persistence.PutFact(t.Context(), dir, "", bot.Fact{Bucket: quota.Bucket, Key: "user/telegram:" + user + "/" + quota.USD + "/day", Value: value})
		if err != nil {
			t.Fatal(err)
		}
	}
	set("7", `{"limit":2000000,"by":"telegram:1"}`)
	if rows := d.limits(t.Context()); len(rows) != 1 || rows[0].Status != OK {
		t.Errorf("enough: %v", rows)
	}
	set("8", `{"limit":20000,"by":"telegram:1"}`)
	rows := d.limits(t.Context())
	if len(rows) != 1 || rows[0].Status != Warn || !strings.Contains(rows[0].Text, "user/telegram:8: $0.02 a day") || !strings.Contains(rows[0].Cure, "max_tokens") {
		t.Errorf("too little: %v", rows)
	}
	cfg.LLM.Providers[0].OutputUSDPerMTok = nil
	if rows := d.limits(t.Context()); len(rows) != 1 || !strings.Contains(rows[0].Text, "nobody knows the price of our-model") {
		t.Errorf("no price: %v", rows)
	}
	if err := os.WriteFile(filepath.Join(dir, "zephbot.db"), []byte("no database at all, and long enough to be looked at"), 0o600); err != nil {
		t.Fatal(err)
	}
	if rows := d.limits(t.Context()); len(rows) != 1 || rows[0].Status != Warn || !strings.Contains(rows[0].Text, "cannot be read") {
		t.Errorf("unreadable: %v", rows)
	}
}
