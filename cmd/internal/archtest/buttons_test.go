package archtest_test

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/cmd/internal/archtest"
)

// TestButtonOwners: the press of a button reaches who made it, because nobody else's data begins like that.
func TestButtonOwners(t *testing.T) {
	t.Parallel()
	owners, err := archtest.ButtonOwners(os.DirFS(root), projectFiles(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{"a1", "k1", "r1", "sc", "sk"} {
		if len(owners[prefix]) == 0 {
			t.Errorf("no package uses %q", prefix)
		}
	}
	for prefix, list := range owners {
		if len(list) > 1 {
			t.Errorf("data of buttons begins with %q in %v", prefix, list)
		}
	}
}

func TestButtonData(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"go.mod":        {Data: []byte("module example.org/m\n")},
		"bot/a/a.go":    {Data: []byte("package a\n\nconst Prefix = \"k1\"\n\nconst other = \"xy\"\n")},
		"bot/b/b.go":    {Data: []byte("package b\n\nfunc f(id string) string { return \"k1:\" + id + \"b1\" }\n")},
		"tools/c.go":    {Data: []byte("package tools\n\nconst Prefix = \"k1\"\n")},
		"bot/t_test.go": {Data: []byte("package bot\n\nconst Prefix = \"k1\"\n")},
	}
	got, err := archtest.ButtonOwners(files, []string{"bot/a/a.go", "bot/b/b.go", "bot/t_test.go", "tools/c.go"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]string{"k1": {"bot/a", "bot/b"}}, got); diff != "" {
		t.Error(diff)
	}
}
