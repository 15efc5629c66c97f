package sql_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/tools/code"
	"github.com/zephbot/zephbot/tools/file"
)

func openIndex(t *testing.T, path string) *sql.CodeIndex {
	t.Helper()
	c, err := sql.OpenCodeIndex(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func loadIndex(t *testing.T, c *sql.CodeIndex, root string) (list []code.Stored) {
	t.Helper()
	err := c.Load(t.Context(), root, func(s code.Stored) error {
		list = append(list, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b code.Stored) int { return len(a.Path) - len(b.Path) })
	return list
}

// TestCodeIndex: what is stored is there after it was opened again, and belongs to its root.
func TestCodeIndex(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "code.db")
	c := openIndex(t, path)
	a := code.Stored{Path: "a", Stamp: file.Stamp{Size: 1, Modified: 2, Changed: 3}, Hash: "\x00\xffhash", Outline: []byte("outline")}
	b := code.Stored{Path: "bb", Stamp: file.Stamp{Size: 4}, Hash: "h", Outline: []byte{}}
	for _, err := range []error{
		c.Save(t.Context(), "/one", []code.Stored{a, b}, nil),
		c.Save(t.Context(), "/two", []code.Stored{a}, nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	touched := a
	touched.Stamp.Modified, touched.Outline = 9, nil
	if err := c.Save(t.Context(), "/one", []code.Stored{touched}, []string{"bb", "never"}); err != nil {
		t.Fatal(err)
	}
	touched.Outline = a.Outline
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openIndex(t, path)
	if diff := cmp.Diff([]code.Stored{touched}, loadIndex(t, c, "/one")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if roots, err := c.Roots(t.Context()); err != nil || !slices.Equal(roots, []string{"/one", "/two"}) {
		t.Errorf("roots %q (%v)", roots, err)
	}
	if err := c.Forget(t.Context(), "/one"); err != nil {
		t.Fatal(err)
	}
	if got := len(loadIndex(t, c, "/one")) + 10*len(loadIndex(t, c, "/two")); got != 10 {
		t.Errorf("files after one root was forgotten: %d", got)
	}
}

// TestCodeIndexReplaced: a file that is damaged or of another version is replaced, because it can be made again.
func TestCodeIndexReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "code.db")
	if err := os.WriteFile(path, []byte("this is not a database, but it is long enough to look like one"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := openIndex(t, path)
	if err := c.Save(t.Context(), "/one", []code.Stored{{Path: "a", Hash: "h", Outline: []byte("o")}}, nil); err != nil {
		t.Fatal(err)
	}
	if len(loadIndex(t, c, "/one")) != 1 {
		t.Error("nothing is stored")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info, err)
	}
}
