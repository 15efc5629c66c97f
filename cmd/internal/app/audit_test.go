package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/tools/audit"
)

// TestAttackAuditCut: the service's database knows how far the log had come, so that lines cut off at the end are
// missed.
func TestAttackAuditCut(t *testing.T) {
	t.Parallel()
	w := begin(t, "on \"go\": call list_directory {\"path\":\".\"}\nthen say done.\n", app.Internet{})
	w.fake.Say(1001, 1001, telegramtest.Message{Text: "go"})
	w.wait("the answer", func(m telegramtest.Shown) bool { return m.Text == "done." })
	w.end()
	path := filepath.Join(w.dir, "data", "audit.jsonl")
	verify := func() []audit.Problem {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		mark, err := layout.MarkOf(t.Context(), layout.Log{Path: path})
		if err != nil || mark == nil {
			t.Fatalf("the database knows nothing of the log: %v", err)
		}
		report, err := audit.Verify(mark, audit.File{Name: path, Reader: strings.NewReader(string(raw))})
		if err != nil {
			t.Fatal(err)
		}
		return report.Problems
	}
	if found := verify(); found != nil {
		t.Fatalf("an untouched log has problems: %v", found)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if len(verify()) == 0 {
		t.Error("nobody notices that the log was emptied")
	}
}
