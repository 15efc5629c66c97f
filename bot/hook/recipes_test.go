package hook_test

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot/hook"
)

// TestRecipes runs the recipes of docs/hooks.md: what they stand for is accepted.
func TestRecipes(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"sh", "curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("the recipes need " + program)
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "hooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".curlrc"), []byte("silent\nnoproxy = *\nwrite-out = \"%{http_code}\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const body = `{"action":"closed","pull_request":{"title":"Fix the leak","merged":true}}`
	if err := os.WriteFile(filepath.Join(home, "body.json"), []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```sh\n")[1:]
	if len(blocks) < 3 {
		t.Fatalf("%d recipes", len(blocks))
	}
	for _, block := range blocks {
		script, _, _ := strings.Cut(block, "```")
		config := alerts(t, "Look")
		merged := config[0]
		merged.Name = "merged"
		w := open(t, 1, hook.Options{Config: append(config, merged)})
		server := httptest.NewServer(w.hooks[0])
		cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", script)
		cmd.Dir = home
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "BOT=" + server.URL, "SECRET=" + secret}
		out, err := cmd.CombinedOutput()
		server.Close()
		if err != nil || string(out) != "accepted\n202" {
			t.Errorf("%s: %v, %s", script, err, out)
		}
	}
}
