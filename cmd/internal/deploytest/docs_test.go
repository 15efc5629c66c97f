package deploytest_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/cmd/internal/config"
)

// TestConfigDoc: docs/config.md is what the source says. ZEPH_UPDATE=1 writes it again.
func TestConfigDoc(t *testing.T) {
	t.Parallel()
	name := filepath.Join(root, "docs", "config.md")
	if os.Getenv("ZEPH_UPDATE") != "" {
		if err := os.WriteFile(name, config.Doc(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, config.Doc()) {
		t.Error("docs/config.md is not what the source says: ZEPH_UPDATE=1 go test ./cmd/internal/deploytest -run TestConfigDoc")
	}
}

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]*)`")
	scenario = regexp.MustCompile("`scenario/([a-z0-9_]+)`")
)

// TestDocsPointToWhatExists: every test and scenario that a page names exists.
func TestDocsPointToWhatExists(t *testing.T) {
	t.Parallel()
	tests := testsOfModule(t)
	for _, doc := range pagesOf(t) {
		raw, err := os.ReadFile(filepath.Join(root, doc))
		if err != nil {
			t.Error(err)
			continue
		}
		text := string(raw)
		for _, m := range testName.FindAllStringSubmatch(text, -1) {
			if len(tests[m[1]]) == 0 {
				t.Errorf("%s names %s, which does not exist", doc, m[1])
			}
		}
		for _, m := range scenario.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, "cmd/internal/app/testdata/scenario", m[1]+".txtar")); err != nil {
				t.Errorf("%s: %v", doc, err)
			}
		}
	}
}

// behaviour is a row of docs/behaviours.md: its number and its proof.
var behaviour = regexp.MustCompile(`(?m)^\| (\d+) \| .+ \| (.+) \|$`)

// TestBehaviours: each of the thirty behaviours has its row, in order, and first the test that has its number.
func TestBehaviours(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(root, "docs/behaviours.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := behaviour.FindAllStringSubmatch(string(raw), -1)
	if len(rows) != 30 {
		t.Fatalf("%d rows, want 30", len(rows))
	}
	for i, row := range rows {
		if row[1] != strconv.Itoa(i+1) {
			t.Errorf("row %d has the number %s", i+1, row[1])
		}
		named := fmt.Sprintf("`TestBehaviour%02d", i+1)
		if !strings.HasPrefix(row[2], named) {
			t.Errorf("behaviour %d: want first the test that has its number, %s…`, got %s", i+1, named, row[2])
		}
	}
}

var declared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)

// testsOfModule are the names of all tests in the module, each with the directories of its packages.
func testsOfModule(t *testing.T) map[string][]string {
	t.Helper()
	names := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		for _, m := range declared.FindAllSubmatch(raw, -1) {
			names[string(m[1])] = append(names[string(m[1])], filepath.ToSlash(dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
