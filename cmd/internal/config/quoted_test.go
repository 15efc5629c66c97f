package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/cmd/internal/config"
)

// TestQuotedSecrets: a secret that still has its quotation marks is a warning that names where it is set, and one with
// white space around it an error; neither shows the value.
func TestQuotedSecrets(t *testing.T) {
	t.Parallel()
	const planted = "123456:PLANTED-planted-PLANTED-planted"
	model := []string{"ZEPH_LLM_PROVIDERS_MAIN_MODEL=m"}
	for _, tt := range []struct {
		env  string // of the variable that holds the secret
		conf string
		name string // what the sentence names
		more []string
	}{
		{env: "ZEPH_LLM_PROVIDERS_MAIN_API_KEY", name: "ZEPH_LLM_PROVIDERS_MAIN_API_KEY", more: model},
		{env: "ZEPH_TELEGRAM_TOKEN", name: "ZEPH_TELEGRAM_TOKEN", more: model},
		{env: "ZEPH_WEB_SEARCH_API_KEY", name: "ZEPH_WEB_SEARCH_API_KEY", more: append(model, "ZEPH_WEB_SEARCH_BACKEND=tavily")},
		{env: "GEMINI_API_KEY", name: "GEMINI_API_KEY", conf: "[[llm.providers]]\nname = 'main'\ntype = 'openai'\npreset = 'gemini'\nmodel = 'm'\n"},
	} {
		for _, marks := range []string{`"@"`, `'@'`, "`@`", "“@”", "„@“", "«@»", `"@`, `@'`} {
			said, failed := examined(t, tt.conf, append(tt.more, tt.env+"="+strings.ReplaceAll(marks, "@", planted)))
			if !strings.Contains(said, tt.name+": still has quotation marks around it") || strings.Contains(said, "PLANTED") {
				t.Errorf("%s with %s: %q, %v", tt.env, marks, said, failed)
			}
		}
		for _, spaces := range []string{"@ ", " @", "@\r", "@\n", "\u00A0@", "@\u200B", "\uFEFF@", "\"@\"\r"} {
			said, failed := examined(t, tt.conf, append(tt.more, tt.env+"="+strings.ReplaceAll(spaces, "@", planted)))
			if !strings.Contains(fmt.Sprint(failed), tt.name+": has spaces or line breaks around it") || strings.Contains(said+fmt.Sprint(failed), "PLANTED") {
				t.Errorf("%s with %q: %q, %v", tt.env, spaces, said, failed)
			}
		}
		if said, failed := examined(t, tt.conf, append(tt.more, tt.env+"="+planted)); strings.Contains(said+fmt.Sprint(failed), "around it") {
			t.Errorf("%s as it should be: %q, %v", tt.env, said, failed)
		}
	}
	said, _ := examined(t, "[[mcp.servers]]\nid = 'a'\nurl = 'https://x.example'\nheaders = { A = \"'PLANTED'\", B = \"fine\" }\n[[llm.providers]]\nname = 'main'\nmodel = 'm'\napi_keys = ['k', '\"PLANTED\"']\n", nil)
	for _, want := range []string{"mcp.servers[0].headers.A: still has quotation", "llm.providers[0].api_keys[1]: still has quotation"} {
		if !strings.Contains(said, want) || strings.Contains(said, "PLANTED") || strings.Count(said, "still has") != 2 {
			t.Errorf("in a table and a list: %q", said)
		}
	}
}

// examined returns the warnings about a configuration, and its error.
func examined(t *testing.T, text string, env []string) (warnings string, err error) {
	t.Helper()
	dir := t.TempDir()
	cfg, err := config.Examine(config.Source{WorkDir: dir, Home: dir, Env: env, File: "zephbot.toml", ReadFile: func(string) ([]byte, error) { return []byte(text), nil }})
	if cfg == nil {
		return "", err
	}
	return fmt.Sprint(cfg.Warnings), err
}
