package app

import (
	"path/filepath"
	"slices"
	"testing"
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
		{AuditChat, dir, nil, []string{dir}},
		{AuditChat, dir, []string{"/src"}, []string{"/src"}},
		{AuditChat, filepath.Join(dir, "gone"), nil, nil},
		{AuditServe, dir, nil, nil},
		{AuditServe, dir, []string{"/src"}, []string{"/src"}},
	} {
		c := &Core{opts: Options{Mode: tt.mode, WorkDir: tt.workDir}}
		if got := c.readFirst(tt.configured); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}
