package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// bench opens the tools of a configuration in a directory of its own.
func bench(t *testing.T, text string) (*app.Bench, *config.Config, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "zephbot.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rules.toml"), []byte("[[rules]]\neffect = \"deny\"\ntool = \"delete_pth\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Source{Tools: app.Tools(), WorkDir: dir, Home: dir, Env: []string{"ZEPH_DATA_DIR=" + filepath.Join(dir, "data")}})
	if err != nil {
		return nil, nil, err
	}
	b, err := app.OpenBench(app.Options{Config: cfg, Version: "test", Log: zerolog.New(zerolog.NewTestWriter(t)), WorkDir: dir})
	if err == nil {
		t.Cleanup(func() {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return b, cfg, err
}

// TestCheckOfMisspeltTool: what the rules say to a tool that there is not would be an answer to another question.
func TestCheckOfMisspeltTool(t *testing.T) {
	t.Parallel()
	b, _, err := bench(t, "[[mcp.servers]]\nid = \"github\"\nurl = \"https://example.com\"\n")
	if err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string]string{
		"bsh": "did you mean bash?", "delete_pth": "did you mean delete_path?", "gihub:issues": "did you mean github?", "nonsense": "names no tool",
	} {
		if d, err := b.Check(t.Context(), app.CallOptions{Tool: tool, Args: json.RawMessage(`{}`)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", tool, d, err)
		}
	}
	for _, tool := range []string{"bash", "shell", "memory_save", "schedule_deferred", "github:issues"} {
		if _, err := b.Check(t.Context(), app.CallOptions{Tool: tool, Args: json.RawMessage(`{"command":"ls"}`)}); err != nil {
			t.Errorf("%s: %v", tool, err)
		}
	}
}

// TestPolicyFileOfMisspeltTool: the rules of a policy file are looked at as those of the configuration are.
func TestPolicyFileOfMisspeltTool(t *testing.T) {
	t.Parallel()
	_, _, err := bench(t, "[tools.policy]\nenabled = true\npolicy_file = \"rules.toml\"\n")
	if err == nil || !strings.Contains(err.Error(), "rules[0].tool") || !strings.Contains(err.Error(), "did you mean delete_path?") {
		t.Errorf("%v", err)
	}
}
