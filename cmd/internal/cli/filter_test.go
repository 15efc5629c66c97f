package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/cmd/internal/cli"
)

const goTestFails = "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n    b_test.go:7: got 1, want 2\n--- FAIL: TestB (0.00s)\n" +
	"=== RUN   TestC\n--- PASS: TestC (0.00s)\nFAIL\nFAIL\texample.com/x\t0.01s\nok  \texample.com/y\t0.01s\nFAIL\n"

func TestFilter(t *testing.T) {
	t.Parallel()
	w := here(t)
	w.in = goTestFails
	if code := w.run(t, "filter", "--command", "cd x && go test ./... 2>&1 | tail -80", "--exit-code", "1"); code != cli.Fine {
		t.Fatalf("exit %d: %s", code, w.err.String())
	}
	for _, want := range []string{"--- FAIL: TestB", "b_test.go:7: got 1, want 2", "FAIL\texample.com/x"} {
		if !strings.Contains(w.out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, w.out.String())
		}
	}
	if strings.Contains(w.out.String(), "TestA") || !strings.HasPrefix(w.err.String(), "[shell] 11 lines -> ") || !strings.HasSuffix(w.err.String(), "% filtered\n") {
		t.Errorf("stdout:\n%sstderr: %s", w.out.String(), w.err.String())
	}
	for _, args := range [][]string{{"filter"}, {"filter", "--command", " "}, {"filter", "--command", "ls", "--exit-code", "300"}, {"filter", "--command", "ls", "x"}} {
		if code := w.run(t, args...); code != cli.Usage {
			t.Errorf("%v: exit %d", args, code)
		}
	}
	w.in = "nothing here fits\n"
	if code := w.run(t, "filter", "--command", "frobnicate"); code != cli.Fine || w.out.String() != w.in || w.err.Len() > 0 {
		t.Errorf("exit %d, stdout %q, stderr %q", code, w.out.String(), w.err.String())
	}
}

func TestFilterJSON(t *testing.T) {
	t.Parallel()
	w := here(t)
	w.in = "token ghp_abcdefghijklmnopqrstuvwxyz0123456789 here\n"
	if code := w.run(t, "filter", "--command", "cat x", "--json"); code != cli.Fine {
		t.Fatalf("exit %d: %s", code, w.err.String())
	}
	var got map[string]any
	if err := json.Unmarshal(w.out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"text": "token [redacted] here\n[security] 1 credential in this output was hidden", "rules": []any{}, "confidence": "none",
		"lines_in": 1.0, "lines_out": 1.0, "chars_in": 22.0, "chars_out": 22.0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFilterConfig(t *testing.T) {
	t.Parallel()
	w := here(t)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("zephbot.toml", "[tools.filters.security]\nenabled = false\n")
	write("filters.toml", "[[rules]]\nname = \"broken\"\n\n[[rules]]\nname = \"x\"\nmatch = { exact = \"x\" }\nstrategy = { type = \"strip_noise\", patterns = [\"^noise\"] }\n")
	w.in = "noise\nsignal\n"
	if code := w.run(t, "filter", "--command", "x"); code != cli.Fine || w.out.String() != "signal\n" || !strings.Contains(w.err.String(), `rule 1 ("broken"): match is missing`) {
		t.Errorf("exit %d, stdout %q, stderr %q", code, w.out.String(), w.err.String())
	}
	write("zephbot.toml", "[tools.filters]\nenabled = false\n")
	if code := w.run(t, "filter", "--command", "x"); code != cli.Fine || w.out.String() != w.in {
		t.Errorf("disabled: exit %d, stdout %q, stderr %q", code, w.out.String(), w.err.String())
	}
}
