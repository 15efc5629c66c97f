package app_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// goModule is what gopls is asked about.
var goModule = map[string]string{
	"go.mod":      "module example.com/shop\n\ngo 1.24\n",
	"web/auth.go": "package web\n\n// Server serves.\ntype Server struct{}\n\n// Close ends it.\nfunc (s *Server) Close() error { return nil }\n\n// Open begins.\nfunc Open() *Server { return &Server{} }\n",
	"main.go":     "package main\n\nimport \"example.com/shop/web\"\n\nfunc main() {\n\ts := web.Open()\n\t_ = s.Close()\n}\n",
}

// TestRealGopls searches with a real language server. ZEPH_GOPLS is the path of gopls:
//
//	go install golang.org/x/tools/gopls@v0.21.1
//	ZEPH_GOPLS=$(go env GOPATH)/bin/gopls go test ./cmd/internal/app -run TestRealGopls
func TestRealGopls(t *testing.T) {
	t.Parallel()
	gopls := os.Getenv("ZEPH_GOPLS")
	if gopls == "" {
		t.Skip("ZEPH_GOPLS does not name gopls")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files := maps.Clone(goModule)
	home := t.TempDir()
	files[filepath.Join(home, "zephbot.toml")] = fmt.Sprintf(goplsConfig, dir, filepath.Dir(gopls)+":"+os.Getenv("PATH"), dir)
	for name, text := range files {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, name)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Load(config.Source{WorkDir: home, Home: home, Env: []string{"ZEPH_DATA_DIR=" + t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	model, err := llmtest.Parse(`on "go": call search_code {"symbol":"Open","include_references":true}
then expect "main.go:6-6\n    s := web.Open()\n    source: LSP references"
and call search_code {"symbol":"Server.Close","include_references":true}
then expect "main.go:7-7\n    _ = s.Close()\n    source: LSP references"
and say Found.`)
	if err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	seen := bottest.NewTypist("")
	err = app.Chat(t.Context(), app.Options{Config: cfg, Version: "test", Log: zerolog.New(&log), WorkDir: dir, Provider: model},
		app.ChatOptions{In: seen, Out: &out, Err: seen, Once: "go", Language: "en"})
	if err != nil || !strings.Contains(out.String(), "Found.") {
		t.Errorf("%v\n%s\n%s\n%s", err, out.String(), seen.Seen(), log.String())
	}
}

// goplsConfig is what docs/search.md says, with the paths of this machine.
const goplsConfig = `
[mcp]
allowed_commands = ["gopls"]
[[mcp.servers]]
id = "gopls"
command = "gopls"
args = ["mcp"]
dir = %q
trust_level = "trusted"
[mcp.servers.env]
PATH = %q
[[mcp.servers.roots]]
uri = "file://%s"
[index.lsp]
server = "gopls"
[[tools.permissions."gopls:go_search"]]
pattern = "*"
action = "allow"
[[tools.permissions."gopls:go_symbol_references"]]
pattern = "*"
action = "allow"
`
