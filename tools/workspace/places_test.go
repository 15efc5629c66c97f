package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/workspace"
)

// TestRoots: an empty list means the working directory, a list replaces it unless it names it, and a conversation whose
// working directory is below an allowed one still starts there.
func TestRoots(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"work", "a/inner", "b"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(base, "a"), filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		list []string
		work string
		want []string
	}{
		{"nothing listed", nil, "work", []string{"work"}},
		{"a list replaces it", []string{"a", "b"}, "work", []string{"a", "a", "b"}},
		{"a list that names it", []string{"b", "."}, "work", []string{"work", "b"}},
		{"it is below an allowed one", []string{"b", "a"}, "a/inner", []string{"a/inner", "b", "a"}},
		{"a link is resolved", []string{"link"}, "work", []string{"a", "a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := func(dir string) string { return filepath.Join(base, dir) }
			s, err := workspace.NewPlaces(tt.list, ".", func(tools.Origin) (string, error) { return in(tt.work), nil }, in)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Roots(tools.Origin{})
			if err != nil {
				t.Fatal(err)
			}
			want := make([]string, len(tt.want))
			for i, dir := range tt.want {
				want[i] = in(dir)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if dir, err := s.Dir(tools.Origin{}); dir != got[0] || err != nil {
				t.Errorf("starts at %s, %v", dir, err)
			}
		})
	}
}

func TestNoPlace(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	in := func(dir string) string { return filepath.Join(base, dir) }
	refused := errors.New("refused")
	if _, err := workspace.NewPlaces([]string{"missing"}, ".", nil, in); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing entry: %v", err)
	}
	s, err := workspace.NewPlaces([]string{""}, ".", func(tools.Origin) (string, error) { return in("missing"), nil }, in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Roots(tools.Origin{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing working directory: %v", err)
	}
	s, err = workspace.NewPlaces(nil, ".", func(tools.Origin) (string, error) { return "", refused }, in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Roots(tools.Origin{}); !errors.Is(err, refused) {
		t.Errorf("refused working directory: %v", err)
	}
}
