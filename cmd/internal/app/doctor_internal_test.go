package app

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/cmd/internal/config"
)

// TestDoctorIsBounded: a check that does not end has a row that says so, the others have theirs, and secrets are in none.
func TestDoctorIsBounded(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.MCP.Servers = []config.MCPServer{{ID: "a", Env: map[string]config.Secret{"KEY": "planted-secret"}}}
	d := &doctor{c: &cfg, opts: DoctorOptions{Each: 50 * time.Millisecond, Offline: true, Options: Options{Config: &cfg}}}
	ended := make(chan struct{})
	defer close(ended)
	rows := d.all(t.Context(), []check{
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
