package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mender is a model that repairs a file and looks at it.
type mender struct{}

// ServeHTTP implements http.Handler with OpenAI's chat completions.
func (mender) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []storyMessage `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	results := 0
	for i := range in.Messages {
		if in.Messages[i].Role == "tool" {
			results++
		}
	}
	deltas := say("Mended.")
	switch results {
	case 0:
		deltas = calls(call("edit", map[string]any{"path": "a.txt", "old_string": "helo", "new_string": "hello"}))
	case 1:
		deltas = calls(call("bash", map[string]any{"command": "cat a.txt"}))
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, delta := range deltas {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", delta) // the client may have left
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// editorClient returns the path of acpx, which .ci/run brings, or skips. Where CI promised it, its absence is a failure.
func editorClient(t *testing.T) string {
	t.Helper()
	path := os.Getenv("ZEPH_ACPX")
	if path == "" {
		path = filepath.Join(os.TempDir(), "zephbot-ci", "acpx", "node_modules", ".bin", "acpx")
	}
	_, err := os.Stat(path)
	if err == nil {
		return path
	}
	if os.Getenv("ZEPH_CI") == "1" {
		t.Fatalf("no acpx, and ZEPH_CI=1 says there has to be one: %v", err)
	}
	t.Skipf("no client of editors to try: %v; `.ci/run tools` brings it", err)
	return ""
}

// TestRealEditorClient: a client that is not ours (acpx from npm) starts the program as its agent, which edits a file
// through the client's file system and runs a command in its terminal, each after a permission request.
func TestRealEditorClient(t *testing.T) {
	t.Parallel()
	client := editorClient(t)
	vendor := httptest.NewServer(mender{})
	t.Cleanup(vendor.Close)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home, project := t.TempDir(), t.TempDir()
	path := filepath.Join(project, "a.txt")
	if err := os.WriteFile(path, []byte("helo world\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), client, "--agent", self+" acp", "--approve-all", "--format", "json", "exec", "mend the file")
	cmd.Dir = project
	cmd.Env = append(os.Environ(), asZephbot+"=1", "HOME="+home, "XDG_STATE_HOME="+filepath.Join(home, "state"), "ZEPH_LLM_PROVIDERS_MAIN_TYPE=openai",
		"ZEPH_LLM_PROVIDERS_MAIN_BASE_URL="+vendor.URL+"/v1", "ZEPH_LLM_PROVIDERS_MAIN_API_KEY=key", "ZEPH_LLM_PROVIDERS_MAIN_MODEL=mender")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if raw, _ := os.ReadFile(path); string(raw) != "hello world\n" {
		t.Errorf("the file has %q", raw)
	}
	for _, want := range []string{
		`"method":"session/request_permission"`, `"method":"fs/write_text_file"`, `"method":"terminal/create"`, `"method":"terminal/release"`,
		`"status":"completed"`, `Mended.`, `"stopReason":"end_turn"`, `"sessionUpdate":"available_commands_update"`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}
