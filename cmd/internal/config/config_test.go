package config_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/cmd/internal/config"
)

// source is a Source whose only file is zephbot.toml with the text.
func source(text string, env ...string) config.Source {
	return config.Source{WorkDir: "/work", Home: "/home/ann", Env: env, ReadFile: files(map[string]string{"/work/zephbot.toml": text})}
}

func files(content map[string]string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		text, ok := content[filepath.ToSlash(name)]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return []byte(text), nil
	}
}

func load(t *testing.T, text string, env ...string) *config.Config {
	t.Helper()
	c, err := config.Load(source(text, env...))
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c
}

// problems loads what must fail and returns the lines of the error.
func problems(t *testing.T, text string, env ...string) []string {
	t.Helper()
	_, err := config.Load(source(text, env...))
	var all config.Problems
	if !errors.As(err, &all) {
		t.Fatalf("Load: %v; want Problems", err)
	}
	return strings.Split(all.Error(), "\n")
}

func warnings(c *config.Config) []string {
	var out []string
	for _, w := range c.Warnings {
		out = append(out, w.String())
	}
	return out
}

func printed(t *testing.T, c *config.Config, changedOnly bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := config.Print(&b, c, changedOnly); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestInitLoadsWithoutAWarning(t *testing.T) {
	t.Parallel()
	text := string(config.InitAll())
	c := load(t, text)
	if len(c.Warnings) > 0 {
		t.Errorf("warnings: %v", warnings(c))
	}
	if got := printed(t, c, true); got != "" {
		t.Errorf("Init changes defaults:\n%s", got)
	}
}

func TestContractsExampleLoads(t *testing.T) {
	t.Parallel()
	c := load(t, `
data_dir = "./state"
[telegram]
token = "123:abc"
allowed_users = [4711, "@ann_b", "*"]
admins = [4711]
allowed_chats = [-100123]
approval_timeout = "90s"
[telegram.limits]
per_second = 0
[telegram.groups]
session = "chat"
[telegram.chats."-100123/7"]
trigger = "all"
approvers = [1, 2]
quota = { turns_per_day = 5 }
[[llm.providers]]
name = "main"
type = "openai"
model = "m"
input_usd_per_mtok = 3
[[llm.providers]]
name = "spare"
type = "anthropic"
model = "n"
[llm]
primary = "main"
fallback = ["spare"]
[tools.shell]
timeout = 60
[[tools.permissions."ci:Deploy.Prod"]]
pattern = "*"
action = "deny"
[[mcp.servers]]
id = "ci"
url = "https://ci.example.com"
`)
	if len(c.Warnings) > 0 {
		t.Errorf("warnings: %v", warnings(c))
	}
	chat := c.Telegram.Chats["-100123/7"]
	got := []any{
		c.DataDir, c.Telegram.Token.Reveal(), []string(c.Telegram.AllowedUsers), c.Telegram.Admins, []string(c.Telegram.AllowedChats),
		c.Telegram.ApprovalTimeout, c.Telegram.Limits.PerSecond, c.Telegram.Limits.PerGroupPerMinute, c.Telegram.Groups,
		chat.Trigger, chat.Approvers, chat.Quota.TurnsPerDay, c.LLM.Providers[0].BaseURL, *c.LLM.Providers[0].InputUSDPerMTok,
		c.LLM.Providers[1].BaseURL, c.LLM.Providers[1].MaxTokens, c.LLM.Providers[1].ToolUse, c.LLM.Fallback, c.Tools.Shell.Timeout,
		c.Tools.Permissions["ci:Deploy.Prod"],
	}
	want := []any{
		"./state", "123:abc",
		[]string{"4711", "@ann_b", "*"},
		[]int64{4711},
		[]string{"-100123"},
		90 * time.Second, 0, 20,
		config.TelegramGroups{Session: "chat", Trigger: "mention"},
		"all",
		[]int64{1, 2},
		5, "https://api.openai.com/v1", 3.0,
		"https://api.anthropic.com", 4096, true,
		[]string{"spare"},
		60,
		[]config.Permission{{Pattern: "*", Action: "deny"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestKeysOfPeopleKeepTheirSpelling(t *testing.T) {
	t.Parallel()
	c := load(t, `
[[mcp.servers]]
id = "GitHub.Main"
command = "npx"
env = { GITHUB_TOKEN = "t", "a.b::C" = "d" }
tool_allowlist = []
[mcp.servers.headers]
X-Api-Key = "k"
[mcp.servers.tool_metadata."Read.File"]
capabilities = ["fs-read"]
[[tools.permissions."GitHub.Main:*"]]
pattern = "A"
action = "ask"
[[tools.permissions."x::y"]]
pattern = "B"
action = "allow"
[tools.dependencies.rules."ci:Deploy"]
requires = ["ci:Build"]
`)
	s := c.MCP.Servers[0]
	if s.ID != "GitHub.Main" || s.ToolAllowlist == nil || len(*s.ToolAllowlist) != 0 {
		t.Errorf("server = %+v", s)
	}
	env := map[string]string{}
	for k, v := range s.Env {
		env[k] = v.Reveal()
	}
	if diff := cmp.Diff(map[string]string{"GITHUB_TOKEN": "t", "a.b::C": "d"}, env); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
	if s.Headers["X-Api-Key"].Reveal() != "k" || s.ToolMetadata["Read.File"].Capabilities[0] != "fs-read" {
		t.Errorf("headers or metadata = %+v", s)
	}
	if len(c.Tools.Permissions) != 2 || len(c.Tools.Permissions["GitHub.Main:*"]) != 1 || c.Tools.Permissions["x::y"][0].Pattern != "B" {
		t.Errorf("permissions = %v", c.Tools.Permissions)
	}
	if got := c.Tools.Dependencies.Rules["ci:Deploy"].Requires; !slices.Equal(got, []string{"ci:Build"}) {
		t.Errorf("requires = %v", got)
	}
}

func TestPermissionsAbsentAndEmptyDiffer(t *testing.T) {
	t.Parallel()
	if c := load(t, ""); c.Tools.Permissions != nil {
		t.Errorf("absent: %v, want nil", c.Tools.Permissions)
	}
	if c := load(t, "[tools.permissions]\n"); c.Tools.Permissions == nil {
		t.Error("an empty table is nil, as if it were absent")
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	const here, there = "/work/zephbot.toml", "/cfg/zephbot/zephbot.toml"
	tests := []struct {
		name  string
		files map[string]string
		file  string
		env   []string
		want  string
		fails string
	}{
		{"none", nil, "", nil, "", ""},
		{"working directory first", map[string]string{here: "", there: ""}, "", []string{"XDG_CONFIG_HOME=/cfg"}, "zephbot.toml", ""},
		{"then XDG", map[string]string{there: ""}, "", []string{"XDG_CONFIG_HOME=/cfg"}, there, ""},
		{"home without XDG", map[string]string{"/home/ann/.config/zephbot/zephbot.toml": ""}, "", nil, "/home/ann/.config/zephbot/zephbot.toml", ""},
		{"relative XDG is ignored", map[string]string{"/home/ann/.config/zephbot/zephbot.toml": ""}, "", []string{"XDG_CONFIG_HOME=x"}, "/home/ann/.config/zephbot/zephbot.toml", ""},
		{"named", map[string]string{"/work/a.toml": ""}, "a.toml", nil, "a.toml", ""},
		{"named and missing", nil, "a.toml", nil, "", "a.toml: this config file does not exist; zephbot config init writes one"},
		{"too large", map[string]string{here: strings.Repeat("#", 256<<10+1)}, "", nil, "", "zephbot.toml: is larger than 256 KiB; a config file is smaller"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := config.Load(config.Source{File: tt.file, Env: tt.env, Home: "/home/ann", WorkDir: "/work", ReadFile: files(tt.files)})
			if tt.fails != "" {
				if err == nil || err.Error() != tt.fails {
					t.Fatalf("error = %v, want %s", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if filepath.ToSlash(c.File) != tt.want {
				t.Errorf("File = %q, want %q", c.File, tt.want)
			}
		})
	}
}

func TestUnreadableFile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fs.ErrPermission, "zephbot.toml: this config file may not be read by the user who runs zephbot; change its owner or its mode"},
		{errors.New("is a directory"), "zephbot.toml: this config file cannot be read: is a directory"},
	} {
		_, err := config.Load(config.Source{ReadFile: func(name string) ([]byte, error) {
			return nil, &fs.PathError{Op: "read", Path: name, Err: tt.err}
		}})
		if err == nil || err.Error() != tt.want {
			t.Errorf("error = %v, want %s", err, tt.want)
		}
	}
}

func TestReadsTheDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, config.FileName), []byte("data_dir = 'x'"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Source{WorkDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "x"); c.Path(c.DataDir) != want {
		t.Errorf("Path = %q, want %q", c.Path(c.DataDir), want)
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	c := load(t, "")
	for path, want := range map[string]string{
		"": "", "~": "/home/ann", "~/a": "/home/ann/a", "~bob/a": "/work/~bob/a", "./data": "/work/data", "/x/../y": "/y",
	} {
		if got := filepath.ToSlash(c.Path(path)); got != want {
			t.Errorf("Path(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestLayers(t *testing.T) {
	t.Parallel()
	src := source("[log]\nlevel = \"warn\"\nformat = \"json\"\n[agent]\nconcurrency = 2\n", "ZEPH_LOG_LEVEL=error", "ZEPH_AGENT_CONCURRENCY=3")
	src.Flags = map[string]string{"log.level": "debug"}
	c, err := config.Load(src)
	if err != nil {
		t.Fatal(err)
	}
	if c.Log.Level != "debug" || c.Log.Format != "json" || c.Agent.Concurrency != 3 || c.Agent.MaxParallelTools != 4 {
		t.Errorf("log %+v, agent %+v", c.Log, c.Agent)
	}
	got := map[string]string{}
	for _, key := range []string{"log.level", "log.format", "agent.concurrency", "agent.max_parallel_tools"} {
		got[key] = c.Origin(key).String()
	}
	want := map[string]string{
		"log.level": "flag", "log.format": "zephbot.toml:3", "agent.concurrency": "ZEPH_AGENT_CONCURRENCY", "agent.max_parallel_tools": "default",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
	src.Flags = map[string]string{"log.levl": "x", "agent.concurrency": "many"}
	_, err = config.Load(src)
	wantErr := "agent.concurrency: flag: wanted an integer, found the string \"many\"\nlog.levl: no flag can set this key"
	if err == nil || err.Error() != wantErr {
		t.Errorf("error = %v, want %s", err, wantErr)
	}
}
