package mcp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// TestTellingLine has the last words of real programs that failed, as they were printed.
func TestTellingLine(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"node_module":    "Error: Cannot find module 'nonexistent-mod'",
		"node_throw":     "Error: API key missing",
		"node_rejection": "TypeError: bad config",
		"node_no_file":   "Error: Cannot find module '/nonexist.js'",
		"node_write":     "Error: ENOENT: no such file or directory, open '/proc/x/y'",
		"node_connect":   "Error: connect ECONNREFUSED 127.0.0.1:1",
		"node_option":    "node: bad option: --bad-flag",
		"npx_no_package": "npm error 404 Not Found - GET https://registry.npmjs.org/@modelcontextprotocol%2fserver-doesnotexist-zz",
		"npx_network":    "npm error FetchError: request to http://127.0.0.1:1/zzz-zz failed, reason: connect ECONNREFUSED 127.0.0.1:1",
		"npm_read_only":  "npm error EROFS: read-only file system, mkdir '/home/bot/.npm'",
		"python_import":  "ModuleNotFoundError: No module named 'nonexist'",
		"python_chain":   "RuntimeError: no configuration",
		"python_module":  "/usr/bin/python3: No module named nonexist",
		"python_exit":    "API_KEY is required",
		"python_usage":   "-c: error: the following arguments are required: --dir",
		"uvx_no_package": "╰─▶ Because mcp-server-nothere was not found in the package registry and you",
		"uvx_network":    "error: Request failed after 3 retries",
		"go_panic":       "panic: open /etc/tool.conf: permission denied",
		"quiet":          "Secure MCP Filesystem Server running on stdio",
	} {
		raw, err := os.ReadFile(filepath.Join("testdata", "stderr", file+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for line := range strings.SplitSeq(string(raw), "\n") {
			if text := guard.Line(line, stderrLine); text != "" { // as run keeps them
				lines = append(lines, text)
			}
		}
		if got := tellingLine(lines); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	if got := tellingLine([]string{"}", "^", "Node.js v20.1.0"}); got != "" {
		t.Errorf("%q", got)
	}
}
