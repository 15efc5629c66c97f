package cli_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/cmd/internal/cli"
)

var statsLine = regexp.MustCompile(`^\[shell\] (\d+) lines -> (\d+) lines, (\d+\.\d)% filtered\n$`)

// TestFilterKeepsFailures runs real logs of go test through the command as a person would: behind a cd and a pipe that
// hides the exit code of go test. Every failing test with what it said stays, the passing ones go, and stderr says how
// many lines were dropped.
func TestFilterKeepsFailures(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"go_test_v_fail", "go_test_json_fail"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(filepath.Join("../../../tools/filter/testdata/corpus", name+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string]string{}
			for _, f := range archive.Files {
				parts[f.Name] = string(f.Data)
			}
			for _, exit := range []string{"1", "0"} { // 0: tail's own
				w := here(t)
				w.in = parts["input"]
				if code := w.run(t, "filter", "--command", "cd x && go test ./... 2>&1 | tail -80", "--exit-code", exit); code != cli.Fine {
					t.Fatalf("exit %d: %s", code, w.err.String())
				}
				left := strings.Split(w.out.String(), "\n")
				failing := 0
				for line := range strings.Lines(parts["keep"]) {
					if line = strings.TrimSpace(line); line == "" {
						continue
					}
					failing++
					if !slices.ContainsFunc(left, func(l string) bool { return strings.TrimSpace(l) == line }) {
						t.Errorf("--exit-code %s: %q is missing in\n%s", exit, line, w.out.String())
					}
				}
				if failing == 0 {
					t.Error("the sample has no failures")
				}
				if n := strings.Count(w.out.String(), "--- PASS"); n > 0 {
					t.Errorf("--exit-code %s: %d passing tests are left", exit, n)
				}
				counts(t, parts["input"], w.out.String(), w.err.String())
			}
		})
	}
}

// counts checks the line about what was dropped against the texts.
func counts(t *testing.T, in, out, stats string) {
	t.Helper()
	m := statsLine.FindStringSubmatch(stats)
	if m == nil {
		t.Fatalf("stderr: %q", stats)
	}
	if before, after := strconv.Itoa(strings.Count(in, "\n")), strconv.Itoa(strings.Count(out, "\n")); m[1] != before || m[2] != after || before == after {
		t.Errorf("stderr says %q of %s and %s lines", stats, before, after)
	}
}
