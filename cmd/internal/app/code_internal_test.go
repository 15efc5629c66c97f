package app

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/zephbot/zephbot/cmd/internal/layout"
)

// TestReadFirst: the terminal reads the directory in which it was opened at the start, a service only what is configured.
func TestReadFirst(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		mode, workDir    string
		configured, want []string
	}{
		{layout.Chat, dir, nil, []string{dir}},
		{layout.Chat, dir, []string{"/src"}, []string{"/src"}},
		{layout.Chat, filepath.Join(dir, "gone"), nil, nil},
		{layout.Serve, dir, nil, nil},
		{layout.Serve, dir, []string{"/src"}, []string{"/src"}},
	} {
		c := &Core{opts: Options{Mode: tt.mode, WorkDir: tt.workDir}}
		if got := c.readFirst(tt.configured); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}
