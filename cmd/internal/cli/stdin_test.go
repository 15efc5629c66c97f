package cli_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/cmd/internal/cli"
)

// TestOnceContext: --once TEXT takes what is on stdin along, and never waits for an input that brings nothing.
func TestOnceContext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind cli.Input
		in   string
		args []string
		said string
		code int
	}{
		"a file":            {kind: cli.FileInput, in: "one\ntwo\n"},
		"a pipe":            {kind: cli.PipeInput, in: "one\n```\ntwo\n"},
		"an empty pipe":     {kind: cli.PipeInput},
		"a device":          {kind: cli.NoInput, in: "not read"},
		"waited for":        {kind: cli.PipeInput, in: "one", args: []string{"-"}},
		"more than allowed": {kind: cli.FileInput, in: strings.Repeat("é", 200<<10), said: "only the first 256 KiB", code: cli.Failed}, // the model has no room for it,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := here(t)
			w.env = append(w.env, "ZEPH_LLM_PROVIDERS_MAIN_TYPE=offline")
			if err := os.WriteFile(filepath.Join(w.dir, "notes.txt"), []byte("hello"), 0o600); err != nil {
				t.Fatal(err)
			}
			w.in, w.stdin = c.in, c.kind
			code := w.run(t, append([]string{"chat", "--once", "what files are here?"}, c.args...)...)
			if code != c.code || !strings.Contains(w.err.String(), c.said) {
				t.Errorf("exit %d, stdout %q, stderr %q", code, w.out.String(), w.err.String())
			}
		})
	}
}

// TestSilentPipe: a pipe that was inherited and brings nothing does not hold the answer up.
func TestSilentPipe(t *testing.T) {
	t.Parallel()
	w := here(t)
	w.env = append(w.env, "ZEPH_LLM_PROVIDERS_MAIN_TYPE=offline")
	r, open := io.Pipe()
	defer func() { _ = open.Close() }() // it has no error
	w.reader, w.stdin = r, cli.PipeInput
	if code := w.run(t, "chat", "--once", "hello"); code != cli.Fine || !strings.Contains(w.err.String(), "nothing came on stdin") {
		t.Errorf("exit %d, stderr %q", code, w.err.String())
	}
}
