package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pelletier/go-toml/v2"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/cmd/internal/config"
)

// hidden is in every secret of secretFile.
const hidden = "hunter2"

const secretFile = `
[telegram]
token = "hunter2"
webhook_secret = "hunter2"
api_url = "https://hunter2:hunter2@example.com"
[redis]
url = "redis://:hunter2@r"
[database]
url = "postgres://u:hunter2@d/x"
[vector]
api_key = "hunter2"
[[llm.providers]]
name = "main"
model = "m"
api_key = "hunter2"
[[mcp.servers]]
id = "a"
url = "https://a"
env = { KEY = "hunter2" }
headers = { Authorization = "hunter2" }
oauth = { client_secret = "hunter2" }
`

func TestSecretsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	c := load(t, secretFile)
	for i, s := range []config.Secret{
		c.Telegram.Token, c.Telegram.WebhookSecret, c.Redis.URL, c.Database.URL, c.Vector.APIKey, c.LLM.Providers[0].APIKey,
		c.MCP.Servers[0].Env["KEY"], c.MCP.Servers[0].Headers["Authorization"], c.MCP.Servers[0].OAuth.ClientSecret,
	} {
		if !strings.Contains(s.Reveal(), hidden) {
			t.Errorf("secret %d was not read", i)
		}
	}
	c.Telegram.APIURL = "" // an address, which only Print must mask
	outputs := map[string]string{"warnings": c.Warnings.Error(), "origin": c.Origin("telegram.token").String()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10v"} {
		outputs[verb] = fmt.Sprintf(verb, c)
		outputs["value "+verb] = fmt.Sprintf(verb, *c)
		outputs["secret "+verb] = fmt.Sprintf(verb, c.Telegram.Token)
	}
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	asTOML, err := toml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	log := zerolog.New(&logged)
	log.Info().Interface("config", c).Any("token", c.Telegram.Token).Stringer("key", c.Vector.APIKey).Interface("env", c.MCP.Servers[0].Env).Msg("x")
	asText, err := c.Telegram.Token.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	asValue, err := json.Marshal(*c)
	if err != nil {
		t.Fatal(err)
	}
	valueTOML, err := toml.Marshal(*c)
	if err != nil {
		t.Fatal(err)
	}
	outputs["text"], outputs["json of a value"], outputs["toml of a value"] = string(asText), string(asValue), string(valueTOML)
	var structured bytes.Buffer
	slog.New(slog.NewTextHandler(&structured, nil)).Info("x", "token", c.Telegram.Token, "config", *c)
	outputs["slog"] = structured.String()
	outputs["json"], outputs["toml"], outputs["log"] = string(asJSON), string(asTOML), logged.String()
	for name, out := range outputs {
		if strings.Contains(out, hidden) || strings.Contains(out, fmt.Sprintf("%x", hidden)) || strings.Contains(out, fmt.Sprintf("%X", hidden)) {
			t.Errorf("%s shows a secret: %s", name, out)
		}
		if name != "warnings" && name != "origin" && !strings.Contains(out, "[redacted]") {
			t.Errorf("%s does not say that something is redacted: %s", name, out)
		}
	}
}

func TestPrintRedacts(t *testing.T) {
	t.Parallel()
	c := load(t, secretFile)
	for _, changed := range []bool{true, false} {
		out := printed(t, c, changed)
		if strings.Contains(out, hidden) {
			t.Errorf("Print shows a secret:\n%s", out)
		}
		for _, want := range []string{
			"token = \"[redacted]\"  # zephbot.toml:3\n", "api_url = \"https://redacted@example.com\"  # zephbot.toml:5\n",
			"[[mcp.servers]]\n", "env = { KEY = \"[redacted]\" }  # zephbot.toml:19\n", "client_secret = \"[redacted]\"  # zephbot.toml:21\n",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("Print lacks %q:\n%s", want, out)
			}
		}
	}
}

func TestProblemsDoNotShowSecrets(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"[telegram]\ntoken = \"hunter2\nx", "[telegram]\ntoken = \"hunter2\" x", "[telegram]\ntoken = hunter2", "[telegram]\ntoken = \"hunter2\"\ntoken = \"hunter2\"",
		"[telegram]\ntoken = [\"hunter2\"]", "[redis]\nurl = \"hunter2\"", "[[mcp.servers]]\nid='a'\nurl='https://a'\nenv = [\"hunter2\"]",
		"[[mcp.servers]]\nid='a'\nurl='ftp://hunter2@a'", "[[mcp.servers]]\nid='a'\nurl='https://a'\nheaders = {a = [\"hunter2\"]}",
	} {
		got := strings.Join(problems(t, text), "\n")
		if strings.Contains(got, hidden) {
			t.Errorf("the problem of %q shows the secret: %s", text, got)
		}
	}
}

func TestEmptySecretPrintsNothing(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprintf("%s|%v|%q|%#v", config.Secret(""), config.Secret(""), config.Secret(""), config.Secret("")); got != `||""|""` {
		t.Errorf("got %s", got)
	}
}

func TestPrintIsReadAgain(t *testing.T) {
	t.Parallel()
	c := load(t, `
[telegram.chats."-100/7"]
trigger = "all"
quota = { turns_per_day = 1 }
[llm]
timeout = "1h30m"
fallback = ["b"]
[[llm.providers]]
name = "main"
model = "m\"\\\u0001\n"
[[llm.providers]]
name = "b"
type = "offline"
[tools]
max_tool_calls_per_session = 5
[tools.shell]
risk_chain_threshold = 1e-9
[[tools.permissions."jira:b.c"]]
pattern = "*"
action = "deny"
[[mcp.servers]]
id = "s"
url = "https://s"
tool_allowlist = []
[mcp.servers.policy.rate_limit]
max_calls_per_minute = 3
[tools.dependencies.rules."ci:deploy"]
requires = ["ci:build"]
`)
	for _, changed := range []bool{true, false} {
		text := printed(t, c, changed)
		again := load(t, text)
		diff := cmp.Diff(c, again, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(config.Config{}, "Warnings"), cmpopts.IgnoreUnexported(config.Config{}))
		if diff != "" {
			t.Errorf("changedOnly %v: read again (-want +got):\n%s\nfrom\n%s", changed, diff, text)
		}
	}
	if again := load(t, printed(t, c, true)); again.LLM.Timeout != 90*time.Minute {
		t.Errorf("timeout = %v", again.LLM.Timeout)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestPrintTellsWriteErrors(t *testing.T) {
	t.Parallel()
	c := config.Default()
	if err := config.Print(brokenWriter{}, &c, false); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error = %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(string(config.InitAll()), "ZEPH_AGENT_CONCURRENCY=3")
	f.Add(secretFile, "ZEPH_LLM_PROVIDERS_MAIN_MODEL=x")
	f.Add("[[a]]\n[a.b]\n[[a]]\na={b=[{c=1}]}", "ZEPH_=")
	f.Add("\"\" = 1\n[\"telegram::token\"]\nx=nan", "ZEPH_TELEGRAM_CHATS__1_TRIGGER=all")
	f.Add("[telegram]\nadmins=[[1]]\nchats=[{}]\n[memory]\nvector_backend={}", "ZEPH_TELEGRAM_ADMINS=,")
	f.Add(strings.Repeat("a.", 300)+"a=1", "")
	f.Fuzz(func(t *testing.T, text, env string) {
		c, err := config.Load(source(text, env))
		if err != nil {
			var all config.Problems
			if !errors.As(err, &all) || len(all) == 0 {
				t.Fatalf("error %v holds no problems", err)
			}
			return
		}
		var out bytes.Buffer
		if err := config.Print(&out, c, true); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "redacted") {
			return // what stands for a secret need not be a valid value
		}
		if _, err := config.Load(source(out.String())); err != nil {
			t.Fatalf("what Print wrote is not read: %v\n%s", err, out.String())
		}
	})
}
