package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/zephbot/zephbot/cmd/internal/cli"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

// kindServer is the name under which the test binary is an MCP server.
const kindServer = "kindserver"

// installKind puts the server on the path of this process.
func installKind() (remove func(), err error) {
	dir, err := os.MkdirTemp("", kindServer)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err == nil {
		// no symbolic link: the bot itself is out of reach of a server
		err = os.Link(self, filepath.Join(dir, kindServer))
	}
	if err == nil {
		err = os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	return func() { _ = os.RemoveAll(dir) }, err // left-overs of tests are no failure
}

// kind is an entry of [[mcp.servers]] for a behaviour.
func kind(t *testing.T, id string, b mcptest.Behaviour, more ...string) string {
	t.Helper()
	var env []string
	for name, value := range (mcptest.Options{Behaviour: b}).Env() {
		env = append(env, fmt.Sprintf("%s = '%s'", name, value)) // JSON within TOML's literal text
	}
	return fmt.Sprintf("[[mcp.servers]]\nid = %q\ncommand = %q\nenv = { %s }\n%s\n", id, kindServer, strings.Join(env, ", "), strings.Join(more, "\n"))
}

// locked is a writer for several goroutines, as standard error is: servers log side by side.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// configure writes the configuration file: kindserver may be started, and the servers of text.
func (w *world) configure(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "zephbot.toml"), []byte("[mcp]\nallowed_commands = [\""+kindServer+"\"]\nmax_connect_attempts = 1\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestMCPList: a line or an object for each server; one that does not connect is named with its reason and makes exit
// code 1.
func TestMCPList(t *testing.T) {
	t.Parallel()
	w := here(t)
	if code := w.run(t, "mcp", "list"); code != cli.Fine || !strings.Contains(w.out.String(), "no MCP server is configured") {
		t.Errorf("none: exit %d: %s%s", code, w.out.String(), w.err.String())
	}
	w.configure(t, kind(t, "good", mcptest.Plain))
	if code := w.run(t, "mcp", "list"); code != cli.Fine || !strings.Contains(w.out.String(), "1 tools") || !strings.HasPrefix(w.out.String(), "good ") {
		t.Errorf("good: exit %d: %s%s", code, w.out.String(), w.err.String())
	}
	w.configure(t, kind(t, "good", mcptest.Plain)+
		"[[mcp.servers]]\nid = \"path\"\ncommand = \"/bin/kindserver\"\n"+
		"[[mcp.servers]]\nid = \"unknown\"\ncommand = \"nothere\"\n"+
		"[[mcp.servers]]\nid = \"private\"\nurl = \"http://127.0.0.1:1/\"\n"+
		kind(t, "broken", mcptest.ExitAtOnce))
	if code := w.run(t, "mcp", "list", "--json"); code != cli.Failed || w.err.Len() > 0 && strings.Contains(w.err.String(), "goroutine ") {
		t.Errorf("all: exit %d: %s%s", code, w.out.String(), w.err.String())
	}
	var rows []struct {
		ID, State, Problem string
		Tools              []string
	}
	if err := json.Unmarshal(w.out.Bytes(), &rows); err != nil || len(rows) != 5 {
		t.Fatalf("%v: %s", err, w.out.String())
	}
	for _, r := range rows {
		want := map[string]string{
			"path": "has a path in it", "unknown": `command "nothere" is not allowed`, "private": `needs trust_level = "trusted"`, "broken": "fatal: there is no licence for this server",
		}[r.ID]
		switch {
		case r.ID == "good":
			if r.State != "connected" || len(r.Tools) != 1 || r.Tools[0] != "good:echo" || r.Problem != "" {
				t.Errorf("good: %+v", r)
			}
		case r.State == "connected" || len(r.Tools) > 0 || !strings.Contains(r.Problem, want):
			t.Errorf("%s: %+v, want %q", r.ID, r, want)
		}
	}
}

// TestMCPTest prints all that is known of one server: its tools, its instructions and what was found in them.
func TestMCPTest(t *testing.T) {
	t.Parallel()
	w := here(t)
	w.configure(t, kind(t, "kind", mcptest.Plain)+kind(t, "bad", mcptest.Inject)+kind(t, "lost", mcptest.ExitAtOnce)+
		kind(t, "held", mcptest.Plain, `trust_level = "sandboxed"`))
	for _, tt := range []struct {
		id   string
		code int
		want []string
	}{
		{"kind", cli.Fine, []string{"kind: connected over stdio, untrusted", "tool kind:echo (changes): Says the text.", "has no tool_allowlist", "Use echo to hear yourself."}},
		{"bad", cli.Fine, []string{"finding: poison, description: ", "finding: , instructions: ", "[sanitized]"}},
		{"held", cli.Fine, []string{"held: connected over stdio, sandboxed", "dropped echo: it is not in the tool_allowlist of its server"}},
		{"lost", cli.Failed, []string{"lost: broken over stdio", "problem: "}},
	} {
		code := w.run(t, "mcp", "test", tt.id)
		for _, want := range tt.want {
			if code != tt.code || !strings.Contains(w.out.String(), want) {
				t.Errorf("%s: exit %d, want %d and %q:\n%s%s", tt.id, code, tt.code, want, w.out.String(), w.err.String())
			}
		}
		if strings.Contains(w.out.String(), mcptest.Poison) {
			t.Errorf("%s: unsanitised:\n%s", tt.id, w.out.String())
		}
	}
	if code := w.run(t, "mcp", "test", "nobody"); code != cli.Usage || !strings.Contains(w.err.String(), `no MCP server "nobody" is configured; there are: `) {
		t.Errorf("unknown: exit %d: %s", code, w.err.String())
	}
}

// TestMCPTools: a server's tools stand in tools list, and tools call reaches them through the same chain as any other.
func TestMCPTools(t *testing.T) {
	t.Parallel()
	w := here(t)
	w.configure(t, kind(t, "kind", mcptest.Plain)+kind(t, "dying", mcptest.DieInCall))
	if code := w.run(t, "tools", "list"); code != cli.Fine || !strings.Contains(w.out.String(), "kind:echo") || !strings.Contains(w.out.String(), "dying:echo") {
		t.Errorf("list: exit %d: %s%s", code, w.out.String(), w.err.String())
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"kind:echo", `{"text":"hello"}`}, cli.Failed, "category: policy_blocked"}, // nobody approves it
		{[]string{"--yes", "kind:echo", `{"text":"hello"}`}, cli.Fine, "hello"},
		{[]string{"--yes", "kind:echo", `{"text":5}`}, cli.Failed, "category: type_mismatch"},
		{[]string{"--yes", "kind:echo", `{}`}, cli.Failed, "missing required field: text"},
		{[]string{"--yes", "kind:nope", `{}`}, cli.Failed, "category: tool_not_found"},
		{[]string{"--yes", "dying:echo", `{"text":"hello"}`}, cli.Failed, "went away during the call"},
	} {
		if code := w.run(t, append([]string{"tools", "call"}, tt.args...)...); code != tt.code || !strings.Contains(w.out.String(), tt.want) {
			t.Errorf("%v: exit %d, want %d and %q: %s%s", tt.args, code, tt.code, tt.want, w.out.String(), w.err.String())
		}
	}
	// The line about credentials comes for every tool, and stands once.
	const secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	if err := os.WriteFile(filepath.Join(w.dir, secret+".txt"), []byte("token "+secret+" here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for tool, args := range map[string]string{
		"kind:echo": `{"text":"the token ` + secret + `"}`, "bash": `{"command":"cat *.txt"}`, "grep": `{"pattern":"tok[e]n","path":"."}`,
		"find_path": `{"pattern":"*.txt"}`, "list_directory": `{"path":"."}`, "read": `{"path":"./` + secret + `.txt"}`,
	} {
		code := w.run(t, "tools", "call", "--yes", tool, args)
		if text := w.out.String(); code != cli.Fine || strings.Contains(text, secret) || strings.Count(text, "[security] ") != 1 || !strings.Contains(text, "in this output w") {
			t.Errorf("%s: exit %d: %s%s", tool, code, text, w.err.String())
		}
	}
	raw, err := os.ReadFile(filepath.Join(strings.TrimPrefix(w.env[0], "ZEPH_DATA_DIR="), "terminal", "audit-cli.jsonl"))
	if err != nil || !strings.Contains(string(raw), `"mcp_server_id":"dying","mcp_error_code":"transient"`) {
		t.Errorf("the audit does not say how the call failed: %v\n%s", err, raw)
	}
}
