package archive_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/zephbot/zephbot/persistence/archive"
)

// TestTakeNote: the note about a restore is read once; one that cannot be read stays and is an error.
func TestTakeNote(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, archive.NoteName)
	if note, err := archive.TakeNote(dir); note != nil || err != nil {
		t.Errorf("without one: %v, %v", note, err)
	}
	if err := os.WriteFile(path, []byte(`{"created":"2026-01-02T03:04:05Z","restored":"2026-02-03T04:05:06Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if note, err := archive.TakeNote(dir); err != nil || note.Created.Day() != 2 || note.Restored.Day() != 3 {
		t.Errorf("%+v, %v", note, err)
	}
	if note, err := archive.TakeNote(dir); note != nil || err != nil {
		t.Errorf("a second time: %v, %v", note, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if note, err := archive.TakeNote(dir); note != nil || err == nil {
		t.Errorf("no JSON: %v, %v", note, err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
