package archtest_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/cmd/internal/archtest"
)

// TestBuckets: a bucket is found however its name is written down.
func TestBuckets(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"go.mod":        {Data: []byte("module example.org/m\n")},
		"bot/a.go":      {Data: []byte("package bot\n\nconst aBucket = \"a\"\n\nconst (\n\tbucket = \"b\"\n\tother = \"c\"\n\tnone = \"none\"\n)\n\nvar f = Fact{Bucket: other}\n")},
		"bot/x/b.go":    {Data: []byte("package x\n\nvar (\n\tf = facts.Bucket{Name: \"d\"}\n\tg = bot.Fact{Bucket: \"e\", Key: \"no\"}\n\th = facts.NewFollowed(s, \"f\", \"g\", now, nil)\n)\n")},
		"bot/y/c.go":    {Data: []byte("package y\n\nfunc Buckets() []bot.BucketRule {\n\treturn []bot.BucketRule{{Bucket: \"rule\"}}\n}\n")},
		"bot/t_test.go": {Data: []byte("package bot\n\nconst bBucket = \"test\"\n")},
	}
	got, err := archtest.Buckets(files, []string{"bot/a.go", "bot/x/b.go", "bot/y/c.go", "bot/t_test.go", "bot/gone.go"})
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e", "f", "g"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
