package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

// bar is what we demand of a scenario: so many checks with SUCCESS and none with FAILURE or WARNING; or that it fails
// in exactly these words.
type bar struct {
	scenario string
	revision string
	least    int
	fails    string
}

const (
	oldest = "2025-03-26"
	older  = "2025-11-25"
	newer  = "2026-07-28"
)

var bars = []bar{
	{scenario: "initialize", revision: older, least: 1},
	{scenario: "tools_call", revision: older, least: 2},
	{scenario: "tools_call", revision: newer, least: 2},
	{scenario: "sse-retry", revision: older, least: 3},
	{scenario: "json-schema-2020-12-preservation", revision: older, least: 9},
	{scenario: "json-schema-2020-12-preservation", revision: newer, least: 9},
	{scenario: "request-metadata", revision: newer, least: 5},
	{scenario: "sep-2322-client-request-state", revision: newer, least: 5},
	{scenario: "http-standard-headers", revision: newer, least: 3},
	{scenario: "http-custom-headers", revision: newer, least: 18},
	{scenario: "http-invalid-tool-headers", revision: newer, least: 12},
	{scenario: "json-schema-ref-no-deref", revision: newer, least: 1},
	{scenario: "elicitation-sep1034-client-defaults", revision: older, fails: "Expected action 'accept', got 'decline'"},
}

// signInBars are about signing in. How many checks there are depends on how often we ask; the bar is two thirds of what
// it was.
var signInBars = []bar{
	{scenario: "auth/metadata-default", revision: older, least: 12},
	{scenario: "auth/metadata-default", revision: newer, least: 12},
	{scenario: "auth/metadata-var1", revision: older, least: 12},
	{scenario: "auth/metadata-var1", revision: newer, least: 12},
	{scenario: "auth/metadata-var2", revision: older, least: 12},
	{scenario: "auth/metadata-var2", revision: newer, least: 12},
	{scenario: "auth/metadata-var3", revision: older, least: 12},
	{scenario: "auth/metadata-var3", revision: newer, least: 12},
	{scenario: "auth/basic-cimd", revision: older, least: 8},
	{scenario: "auth/basic-cimd", revision: newer, least: 8},
	{scenario: "auth/scope-from-www-authenticate", revision: older, least: 10},
	{scenario: "auth/scope-from-www-authenticate", revision: newer, least: 10},
	{scenario: "auth/scope-from-scopes-supported", revision: older, least: 10},
	{scenario: "auth/scope-from-scopes-supported", revision: newer, least: 10},
	{scenario: "auth/scope-omitted-when-undefined", revision: older, least: 10},
	{scenario: "auth/scope-omitted-when-undefined", revision: newer, least: 10},
	{scenario: "auth/scope-step-up", revision: older, least: 18},
	{scenario: "auth/scope-step-up", revision: newer, least: 18},
	{scenario: "auth/scope-retry-limit", revision: older, least: 8},
	{scenario: "auth/scope-retry-limit", revision: newer, least: 8},
	{scenario: "auth/token-endpoint-auth-basic", revision: older, least: 14},
	{scenario: "auth/token-endpoint-auth-basic", revision: newer, least: 14},
	{scenario: "auth/token-endpoint-auth-post", revision: older, least: 14},
	{scenario: "auth/token-endpoint-auth-post", revision: newer, least: 14},
	{scenario: "auth/token-endpoint-auth-none", revision: older, least: 14},
	{scenario: "auth/token-endpoint-auth-none", revision: newer, least: 14},
	{scenario: "auth/pre-registration", revision: older, least: 8},
	{scenario: "auth/pre-registration", revision: newer, least: 8},
	{scenario: "auth/2025-03-26-oauth-metadata-backcompat", revision: oldest, least: 8},
	{scenario: "auth/2025-03-26-oauth-endpoint-fallback", revision: oldest, least: 5},
	{scenario: "auth/resource-mismatch", revision: newer, least: 3},
	{scenario: "auth/offline-access-scope", revision: newer, least: 8},
	{scenario: "auth/offline-access-not-supported", revision: newer, least: 10},
	{scenario: "auth/authorization-server-migration", revision: newer, least: 16},
	{scenario: "auth/iss-supported", revision: newer, least: 10},
	{scenario: "auth/iss-not-advertised", revision: newer, least: 10},
	{scenario: "auth/iss-supported-missing", revision: newer, least: 6},
	{scenario: "auth/iss-wrong-issuer", revision: newer, least: 6},
	{scenario: "auth/iss-unexpected", revision: newer, least: 6},
	{scenario: "auth/iss-normalized", revision: newer, least: 6},
	{scenario: "auth/metadata-issuer-mismatch", revision: newer, least: 3},
}

// check is one line of what the referee writes down.
type check struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Error  string `json:"errorMessage"`
}

// TestReferee runs the official suite: the client alone, the client with a person who signs in, and the whole program.
func TestReferee(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("ZEPH_MCP_CONFORMANCE")
	if dir == "" {
		t.Skip("ZEPH_MCP_CONFORMANCE does not name a directory with the official suite; docs/mcp-conformance.md says how to get it")
	}
	node, suite := filepath.Join(dir, "node_modules", ".bin", "node"), filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	for _, file := range []string{node, suite} {
		if _, err := os.Stat(file); err != nil {
			t.Skipf("ZEPH_MCP_CONFORMANCE: %v; docs/mcp-conformance.md says what has to be installed", err)
		}
	}
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("the referee listens on all interfaces, and there is no unshare to keep it off the network")
	}
	bot := build(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for role, list := range map[string][]bar{roleManager: bars, roleProgram: bars, roleSignIn: signInBars} {
		for _, b := range list {
			t.Run(role+"/"+b.scenario+"/"+b.revision, func(t *testing.T) {
				t.Parallel()
				out := t.TempDir()
				ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
				defer cancel()
				cmd := exec.CommandContext(ctx, "unshare", "-rn", "sh", "-c", `ip link set lo up && exec "$@"`, "sh",
					node, suite, "client", "--command", self, "--scenario", b.scenario, "--spec-version", b.revision, "--timeout", fmt.Sprint(patience.Milliseconds()), "-o", out)
				cmd.Env = append(os.Environ(), roleVariable+"="+role, programVariable+"="+bot, "GORACE=atexit_sleep_ms=0")
				said, err := cmd.CombinedOutput() // it fails where a scenario fails
				row, problem := b.judge(checks(t, out, said), err == nil)
				t.Log(row)
				if problem != "" {
					t.Errorf("%s\n%s\n%s", problem, said, transcript(out))
				}
			})
		}
	}
}

// build makes the program.
func build(t *testing.T) string {
	t.Helper()
	bot := filepath.Join(t.TempDir(), "zephbot")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bot, "github.com/zephbot/zephbot/cmd/zephbot")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	return bot
}

// checks reads what the referee wrote down.
func checks(t *testing.T, dir string, said []byte) []check {
	t.Helper()
	files, err := written(dir, "checks.json")
	if err != nil || len(files) != 1 {
		t.Fatalf("the referee wrote down nothing: %v, %v\n%s", files, err, said)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var list []check
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// written finds files that the referee wrote: below a directory that is named by scenario, whose name may have a slash
// in it, and time.
func written(dir, name string) ([]string, error) {
	flat, err1 := filepath.Glob(filepath.Join(dir, "*", name))
	deep, err2 := filepath.Glob(filepath.Join(dir, "*", "*", name))
	return append(flat, deep...), errors.Join(err1, err2)
}

// transcript is what the client printed.
func transcript(dir string) string {
	files, err := written(dir, "std*.txt")
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, f := range files {
		if raw, err := os.ReadFile(f); err == nil {
			fmt.Fprintf(&b, "-- %s --\n%s\n", filepath.Base(f), raw)
		}
	}
	return b.String()
}

// judge compares with the bar. It gives a row of the table, and what is wrong; "" = nothing.
func (b bar) judge(list []check, passed bool) (row, problem string) {
	count := map[string]int{}
	var words []string
	for _, c := range list {
		count[c.Status]++
		if c.Error != "" {
			words = append(words, c.ID+": "+c.Error)
		}
	}
	failed := count["FAILURE"] + count["WARNING"]
	row = fmt.Sprintf("| %s | %s | %d | %d | %d |", b.scenario, b.revision, count["SUCCESS"], failed, count["SKIPPED"])
	switch {
	case b.fails != "":
		if passed || !strings.Contains(strings.Join(words, "\n"), b.fails) {
			problem = fmt.Sprintf("want it to fail with %q, got %v, %q", b.fails, count, words)
		}
	case count["SUCCESS"] < b.least || failed > 0 || !passed:
		problem = fmt.Sprintf("want %d checks passed and none failed, got %v, %q", b.least, count, words)
	}
	return row, problem
}

// TestBar holds clients that do nothing, too little or the wrong thing against the bar.
func TestBar(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		b       bar
		list    []check
		passed  bool
		problem string
	}{
		"enough":            {b: bar{least: 2}, list: []check{{Status: "SUCCESS"}, {Status: "SUCCESS"}, {Status: "SKIPPED"}}, passed: true},
		"nothing at all":    {b: bar{least: 1}, passed: true, problem: "want 1 checks passed"},
		"too little":        {b: bar{least: 2}, list: []check{{Status: "SUCCESS"}}, passed: true, problem: "want 2 checks passed"},
		"a failure":         {b: bar{least: 1}, list: []check{{Status: "SUCCESS"}, {ID: "x", Status: "FAILURE", Error: "bad"}}, problem: "x: bad"},
		"a warning":         {b: bar{least: 1}, list: []check{{Status: "SUCCESS"}, {ID: "x", Status: "WARNING", Error: "bad"}}, passed: true, problem: "x: bad"},
		"a bad end":         {b: bar{least: 1}, list: []check{{Status: "SUCCESS"}}, problem: "want 1 checks passed"},
		"fails as it must":  {b: bar{fails: "no"}, list: []check{{Status: "FAILURE", Error: "it says no"}}},
		"fails differently": {b: bar{fails: "no"}, list: []check{{Status: "FAILURE", Error: "crash"}}, problem: "want it to fail with"},
		"does not fail":     {b: bar{fails: "no"}, list: []check{{Status: "SUCCESS"}}, passed: true, problem: "want it to fail with"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problem := tc.b.judge(tc.list, tc.passed)
			if (problem == "") != (tc.problem == "") || !strings.Contains(problem, tc.problem) {
				t.Errorf("got %q", problem)
			}
		})
	}
}

// TestDriver has both clients call a server of our own: what the referee's verdict stands on works without it.
func TestDriver(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{roleManager, roleProgram} {
		for name, context := range map[string]string{"each tool": "", "given": `{"toolCalls":[{"name":"echo","arguments":{"text":"given"}}]}`} {
			t.Run(role+"/"+name, func(t *testing.T) {
				t.Parallel()
				var seen recorder
				server := httptest.NewServer(seen.watch(mcptest.Options{Behaviour: mcptest.Plain, Tools: 2}.Handler()))
				defer server.Close()
				cmd := exec.CommandContext(t.Context(), self, server.URL)
				cmd.Env = append(os.Environ(), roleVariable+"="+role, "MCP_CONFORMANCE_CONTEXT="+context, "GORACE=atexit_sleep_ms=0")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				want := `echo {"text":"given"}`
				if context == "" {
					want = `echo {"text":"x"}, tool_000 {"text":"x"}, tool_001 {"text":"x"}`
				}
				if got := seen.calls(); got != want {
					t.Errorf("the server saw %s, want %s", got, want)
				}
			})
		}
	}
}

// recorder notes the calls that a server gets.
type recorder struct {
	mu   sync.Mutex
	list []string
}

func (r *recorder) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var m struct {
			Method string `json:"method"`
			Params struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"params"`
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the client is gone
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		if json.Unmarshal(body, &m) == nil && m.Method == "tools/call" {
			r.mu.Lock()
			r.list = append(r.list, m.Params.Name+" "+string(m.Params.Arguments))
			r.mu.Unlock()
		}
		next.ServeHTTP(w, req)
	})
}

// calls are those that were seen, sorted.
func (r *recorder) calls() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(slices.Sorted(slices.Values(r.list)), ", ")
}
