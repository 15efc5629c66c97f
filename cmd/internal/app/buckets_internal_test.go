package app

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/cmd/internal/archtest"
)

const repository = "../../.."

// TestBucketRules: every bucket of facts that the source uses has one rule, which says whose its facts are and what becomes
// of them when a person is erased.
func TestBucketRules(t *testing.T) {
	t.Parallel()
	tree := os.DirFS(repository)
	var files []string
	for _, layer := range []string{"policy", "tools", "agent", "bot", "persistence", "cmd"} {
		err := fs.WalkDir(tree, layer, func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(name, ".go") {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	used, err := archtest.Buckets(tree, files)
	if err != nil {
		t.Fatal(err)
	}
	var ruled []string
	for _, r := range Buckets() {
		ruled = append(ruled, r.Bucket)
		if r.About == "" || r.Found == "" || r.StaysBelow != "" && r.Stays == "" {
			t.Errorf("%s: the rule is not complete: %+v", r.Bucket, r)
		}
		if r.Revision != "" && !slices.Contains(used, r.Revision) {
			t.Errorf("%s: there is no bucket %s", r.Bucket, r.Revision)
		}
	}
	slices.Sort(ruled)
	if diff := cmp.Diff(used, ruled); diff != "" {
		t.Errorf("buckets in the source and those with a rule (Buckets of their package; -source +rules):\n%s", diff)
	}
}

// TestPersonalDataDoc: the table of docs/personal-data.md is what the rules say. ZEPH_UPDATE=1 writes it again.
func TestPersonalDataDoc(t *testing.T) {
	t.Parallel()
	const page, head = repository + "/docs/personal-data.md", "| bucket | about | found by |\n|---|---|---|\n"
	was, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, old, found := bytes.Cut(was, []byte(head))
	if !found {
		t.Fatal("the page has no table of buckets")
	}
	_, after, _ := bytes.Cut(old, []byte("\n\n"))
	now := slices.Concat(before, []byte(head+bucketTable(Buckets())))
	if len(after) > 0 {
		now = slices.Concat(now, []byte("\n"), after)
	}
	if bytes.Equal(was, now) {
		return
	}
	if os.Getenv("ZEPH_UPDATE") == "" {
		t.Fatal("docs/personal-data.md is not what the rules of buckets say: ZEPH_UPDATE=1 go test ./cmd/internal/app -run TestPersonalDataDoc")
	}
	if err := os.WriteFile(page, now, 0o644); err != nil {
		t.Fatal(err)
	}
}

// bucketTable returns one row for each rule, and one for several that say the same one behind the other.
func bucketTable(rules []bot.BucketRule) string {
	var b strings.Builder
	for i := 0; i < len(rules); {
		r, names := rules[i], []string{}
		for ; i < len(rules) && rules[i].About == r.About && rules[i].Found == r.Found; i++ {
			names = append(names, "`"+rules[i].Bucket+"`")
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(names, ", "), r.About, r.Found)
	}
	return b.String()
}
