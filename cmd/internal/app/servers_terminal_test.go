package app_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

// TestServerAsksInTheTerminal: who sits at the terminal approves the call, and answers what the server wants to know or
// cancels it.
func TestServerAsksInTheTerminal(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ script, input, want string }{
		"answered":  {"on \"go\": call kind:ask {}\nthen expect \"Berlin\"\nand say You live in Berlin.", "y\nBerlin\n", "You live in Berlin."},
		"cancelled": {"on \"go\": call kind:ask {}\nthen expect \"cancelled\"\nand say You did not tell.", "y\n/cancel\n", "You did not tell."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			// TOML has such lists too
			args, err := json.Marshal([]string{strings.ReplaceAll(string(mcptest.ElicitForm), " ", "_"), t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			conf := "[mcp]\nallowed_commands = [\"" + kindServer + "\"]\nelicitation_enabled = true\n[[mcp.servers]]\nid = \"kind\"\ncommand = \"" + kindServer + "\"\nargs = " + string(args) + "\n"
			if err := os.WriteFile(filepath.Join(dir, "zephbot.toml"), []byte(conf), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Load(config.Source{WorkDir: dir, Home: dir, Env: []string{"ZEPH_DATA_DIR=" + filepath.Join(dir, "data")}})
			if err != nil {
				t.Fatal(err)
			}
			model, err := llmtest.Parse(tt.script)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			seen := bottest.NewTypist("", strings.Split(strings.TrimSuffix(tt.input, "\n"), "\n")...)
			err = app.Chat(t.Context(), app.Options{Config: cfg, Version: "test", Log: zerolog.New(zerolog.NewTestWriter(t)), WorkDir: dir, Provider: model},
				app.ChatOptions{In: seen, Out: &out, Err: seen, Once: "go", Ask: true, Language: "en"})
			if err != nil || !strings.Contains(out.String(), tt.want) {
				t.Errorf("%v\n%s\n%s", err, out.String(), seen.Seen())
			}
			head, question := strings.Index(seen.Seen(), "The MCP server kind asks (kind:ask)"), strings.Index(seen.Seen(), mcptest.Question)
			if head < 0 || question < head {
				t.Errorf("the server's name does not stand before its question:\n%s", seen.Seen())
			}
		})
	}
}
