package upgradetest_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/persistence/upgradetest"
)

// TestFile: what was recorded comes back, each kind of argument as it was.
func TestFile(t *testing.T) {
	t.Parallel()
	var r upgradetest.Recorder
	args := []any{nil, int64(-1 << 60), 1.5, true, "ü\x00\n", []byte{}, []byte{0, 255}}
	r.Record("second", upgradetest.Group{{Query: "B"}})
	r.Record("first", upgradetest.Group{{Query: "B", Args: args}, {Query: "A"}})
	r.Record("first", upgradetest.Group{{Query: "A", Args: []any{[]byte(strings.Repeat("x", 5000))}}})
	want := r.Trace(7)
	path := filepath.Join(t.TempDir(), "00007.jsonl.gz")
	if err := want.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := upgradetest.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-recorded +read:\n%s", diff)
	}
	if got.Sections[0].Name != "first" || !cmp.Equal(got.Queries(), []string{"A", "B"}) {
		t.Errorf("%+v, queries %q", got, got.Queries())
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	if _, err := upgradetest.Load("upgradetest.go"); err == nil {
		t.Error("a file that is not compressed was read")
	}
	for text, want := range map[string]string{
		"": "no trace", "{": "unexpected EOF", `{"schema":1,"what":2}`: "unknown field",
		`{"group":[[0]]}`: "before the first section", `{"section":"s"}` + "\n" + `{"group":[[0]]}`: "no query has the number 0",
		`{"section":"s"}` + "\n" + `{"group":[[]]}`:                                     "without a query",
		`{"query":"A"}` + "\n" + `{"section":"s"}` + "\n" + `{"group":[[0,{"hex":1}]]}`: "is no argument",
	} {
		path := filepath.Join(t.TempDir(), "x.jsonl.gz")
		var file bytes.Buffer
		out := gzip.NewWriter(&file)
		_, err := out.Write([]byte(text))
		if err := errors.Join(err, out.Close(), os.WriteFile(path, file.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := upgradetest.Load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
