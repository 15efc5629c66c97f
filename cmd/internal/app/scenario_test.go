package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/cmd/internal/apptest"
)

// TestMain lets the test binary be the helper of sandboxed commands, as the program is.
func TestMain(m *testing.M) {
	if code, ok := serveKind(); ok {
		os.Exit(code)
	}
	remove, err := installKind()
	if err != nil {
		panic(err)
	}
	code := m.Run()
	remove()
	os.Exit(code)
}

// TestScenarios plays every file of testdata/scenario through the whole service.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/scenario/*.txtar")
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
