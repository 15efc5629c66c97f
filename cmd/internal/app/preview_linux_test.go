package app_test

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/cmd/internal/apptest"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// TestPreviews plays the scenarios in which commands are previewed, where the machine can.
func TestPreviews(t *testing.T) {
	t.Parallel()
	if level := sandbox.Probe(t.Context(), sandbox.Self); !level.Full() || !level.Root {
		t.Skipf("no layers here, and the level says so: %s", level)
	}
	files, err := filepath.Glob("testdata/layer/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			apptest.Play(t, archive)
		})
	}
}
