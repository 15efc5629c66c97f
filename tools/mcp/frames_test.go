package mcp_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// TestFrames tells messages from what else a program prints.
func TestFrames(t *testing.T) {
	t.Parallel()
	const ping = `{"jsonrpc":"2.0","method":"ping"}`
	for name, tc := range map[string]struct {
		in, out, err string
	}{
		"one":            {ping + "\n", ping + "\n", ""},
		"no line break":  {ping, ping + "\n", ""},
		"windows":        {ping + "\r\n", ping + "\r\n", ""},
		"junk":           {"hello\n\n{\n" + `{"level":1}` + "\n[1]\n[]\n" + ping + "\n", ping + "\n", ""},
		"batch":          {"[" + ping + "]\n", "[" + ping + "]\n", ""},
		"too long":       {`{"jsonrpc":"2.0","x":"` + strings.Repeat("x", 1000) + `"}`, "", "longer than 1000 bytes"},
		"too much":       {strings.Repeat("junk\n", 1001), "", "something else than MCP messages"},
		"nothing":        {"", "", ""},
		"flood":          {strings.Repeat(ping+"\n", 20000), "", "floods us"},
		"old version":    {`{"jsonrpc":"1.0"}` + "\n", "", ""},
		"two on a line":  {ping + ping + "\n" + ping + "\n", ping + "\n", ""},
		"cut in between": {ping + "\n" + ping[:10], ping + "\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := io.ReadAll(mcp.Frames(io.NopCloser(strings.NewReader(tc.in)), 1000))
			if tc.err == "" && (err != nil || string(got) != tc.out) {
				t.Errorf("got %q, %v", got, err)
			}
			if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("got %v, want %q", err, tc.err)
			}
		})
	}
}

// FuzzFrames looks for output that brings something else than whole messages through, or too much of it.
func FuzzFrames(f *testing.F) {
	for _, s := range []string{"", "{}", "junk\n{\"jsonrpc\":\"2.0\"}\n", "[{\"jsonrpc\":\"2.0\"}]", "{\"jsonrpc\":\"2.0\"}{", "\x00\n[\n"} {
		f.Add(s)
	}
	const limit = 200
	f.Fuzz(func(t *testing.T, in string) {
		got, err := io.ReadAll(mcp.Frames(io.NopCloser(strings.NewReader(in)), limit))
		if e := (*guard.Error)(nil); err != nil && !errors.As(err, &e) {
			t.Fatalf("not a typed error: %v", err)
		}
		for line := range strings.Lines(string(got)) {
			if len(line) > limit+1 || !json.Valid([]byte(line)) || !strings.HasSuffix(line, "\n") {
				t.Errorf("%q comes through", line)
			}
		}
	})
}
