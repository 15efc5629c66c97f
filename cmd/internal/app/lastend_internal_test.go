package app

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/journal"
)

// TestWatchEnd: the start says how the last process was ended if it died while memory was short; a process that ends in
// order leaves nothing to say.
func TestWatchEnd(t *testing.T) {
	t.Parallel()
	c := sharing(t, t.TempDir(), "one")
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(c.dir, "running.json")
	if err := os.WriteFile(left, []byte(`{"pid":7,"kills":0,"used":530000000,"limit":536870912,"at":"2026-11-29T04:00:00Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"98% of its memory of 512 MB was in use when it last looked (2026-11-29 04:00:00); 0 turns were in progress", ""} {
		var log bytes.Buffer
		c.log = zerolog.New(&log)
		end := c.watchEnd(t.Context(), "telegram", "1")
		if text := log.String(); want == "" && text != "" || !strings.Contains(text, want) {
			t.Errorf("said %q", text)
		}
		if end(); log.Len() > 0 && want == "" {
			t.Error(log.String())
		}
		if _, err := os.Stat(left); !os.IsNotExist(err) {
			t.Errorf("the note is still there: %v", err)
		}
	}
}

// TestOpenUses: what is told as running has begun and has no result.
func TestOpenUses(t *testing.T) {
	t.Parallel()
	entries := []journal.Entry{
		{Kind: journal.UserEntry, Text: "build it"},
		{Kind: journal.AssistantEntry, Uses: []journal.Use{
			{Call: "1.0", Name: "read", Args: json.RawMessage(`{"path":"a"}`)},
			{Call: "1.1", Name: "bash", Args: json.RawMessage(`{"command":"make"}`)},
			{Call: "1.2", Name: "bash", Args: json.RawMessage(`{"command":"true"}`)},
		}},
		{Kind: journal.StartedEntry, Call: "1.0"},
		{Kind: journal.ResultEntry, Call: "1.0"},
		{Kind: journal.StartedEntry, Call: "1.1"},
	}
	if got := openUses(entries); !slices.Equal(got, []string{`bash {"command":"make"}`}) {
		t.Errorf("%q", got)
	}
}
