package archtest_test

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/cmd/internal/archtest"
)

// TestPersonalData: docs/personal-data.md says of every bucket of facts whose data it is, and names none that is not
// used.
func TestPersonalData(t *testing.T) {
	t.Parallel()
	tree := os.DirFS(root)
	used, err := archtest.Buckets(tree, projectFiles(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"person", "stranger", "first_admin_used", "bot_pair", "model_revision", "name"} {
		if !slices.Contains(used, name) {
			t.Errorf("the bucket %q is not found in the source", name)
		}
	}
	page, err := fs.ReadFile(tree, "docs/personal-data.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for line := range strings.Lines(string(page)) {
		cell, ok := strings.CutPrefix(line, "| `")
		if !ok {
			continue
		}
		cell, _, _ = strings.Cut(cell, " | ")
		for _, m := range regexp.MustCompile("`?([a-z_]+)`").FindAllStringSubmatch(cell, -1) {
			listed = append(listed, m[1])
		}
	}
	slices.Sort(listed)
	if diff := cmp.Diff(used, listed); diff != "" {
		t.Errorf("buckets in the source and in docs/personal-data.md (-source +page):\n%s", diff)
	}
}

// TestBuckets: a bucket is found however its name is written down.
func TestBuckets(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"go.mod":        {Data: []byte("module example.org/m\n")},
		"bot/a.go":      {Data: []byte("package bot\n\nconst aBucket = \"a\"\n\nconst (\n\tbucket = \"b\"\n\tother = \"c\"\n\tnone = \"none\"\n)\n\nvar f = Fact{Bucket: other}\n")},
		"bot/x/b.go":    {Data: []byte("package x\n\nvar (\n\tf = facts.Bucket{Name: \"d\"}\n\tg = bot.Fact{Bucket: \"e\", Key: \"no\"}\n\th = facts.NewFollowed(s, \"f\", \"g\", now, nil)\n)\n")},
		"bot/t_test.go": {Data: []byte("package bot\n\nconst bBucket = \"test\"\n")},
	}
	got, err := archtest.Buckets(files, []string{"bot/a.go", "bot/x/b.go", "bot/t_test.go", "bot/gone.go"})
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e", "f", "g"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
