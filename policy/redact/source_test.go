package redact_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/redact"
)

// TestRealSource counts what is found in real files, which hold next to no credentials. It measures what REDACT_SOURCE
// names (directories, separated by blanks) and lists the findings with -v; the figures are in docs/capacity.md:
//
//	REDACT_SOURCE="$(go env GOROOT)/src $(go env GOMODCACHE) /etc" go test ./policy/redact -run TestRealSource -v
func TestRealSource(t *testing.T) {
	roots := os.Getenv("REDACT_SOURCE")
	if roots == "" {
		t.Skip("REDACT_SOURCE names no directory")
	}
	r := redact.New(nil)
	for root := range strings.FieldsSeq(roots) {
		var lines, found [2]int // of tests and their data, of the rest
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil //nolint:nilerr // what cannot be read is passed over
			}
			data, err := os.ReadFile(path)
			if err != nil || len(data) > 4<<20 || strings.Contains(string(data[:min(len(data), 8000)]), "\x00") {
				return nil //nolint:nilerr // the same
			}
			text, kind := string(data), 1
			if lower := strings.ToLower(path); strings.Contains(lower, "test") || strings.Contains(lower, "example") || strings.Contains(lower, "fixture") {
				kind = 0
			}
			lines[kind] += strings.Count(text, "\n")
			for _, f := range r.Scan(text) {
				found[kind]++
				if kind == 1 {
					t.Logf("%s: %s: %.120q", path, f.Rule, text[max(0, f.Start-30):min(len(text), f.End+10)])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d findings in %d lines; in tests, examples and their data %d in %d", root, found[1], lines[1], found[0], lines[0])
		if found[1]*300_000 > 10*max(lines[1], 300_000) {
			t.Errorf("%s: more than 10 findings in 300 000 lines", root)
		}
	}
}
