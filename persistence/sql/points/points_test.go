package points_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence/sql/points"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestADamagedFileIsMadeAgain: what is derived must not stop the service.
func TestADamagedFileIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"no database": func(path string) error { return os.WriteFile(path, []byte("this is no database, but a text"), 0o600) },
		"another version": func(path string) error {
			f := points.New(path, zerolog.Nop())
			return errors.Join(f.SetVersion(t.Context(), 99), f.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "v.db")
			check(t, spoil(path))
			f := points.New(path, zerolog.Nop())
			check(t, f.Store(t.Context(), knn.Kind{Name: "code", Model: "m", Size: 1}, []knn.Row{{Scope: "a", Key: "1", Vector: make([]byte, 4)}}))
			check(t, f.Close())
		})
	}
	if _, err := points.New(t.TempDir(), zerolog.Nop()).Kinds(t.Context(), "code"); err == nil {
		t.Error("a directory was opened")
	}
}

// TestPagesHoldSeveralVectors: with pages of the usual size, half of each would be empty.
func TestPagesHoldSeveralVectors(t *testing.T) {
	t.Parallel()
	f := points.New(filepath.Join(t.TempDir(), "v.db"), zerolog.Nop())
	for query, want := range map[string]string{"PRAGMA page_size": "16384", "PRAGMA journal_mode": "wal"} {
		if got, err := f.Ask(t.Context(), query); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", query, got, err, want)
		}
	}
	for _, query := range points.ByID {
		plan, err := f.Plan(t.Context(), query)
		if check(t, err); !strings.Contains(plan, "SEARCH point USING INDEX point_scope (kind=? AND scope=? AND id=?)") {
			t.Errorf("%s:\n%s", query, plan)
		}
	}
	check(t, f.Close())
}
