package config_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// loaded reads a file with one provider.
func loaded(text string, env ...string) (*config.Config, error) {
	return config.Load(config.Source{
		File: "zephbot.toml", Env: env, WorkDir: "/", Home: "/",
		ReadFile: func(string) ([]byte, error) {
			return []byte("[[llm.providers]]\nname = \"main\"\nmodel = \"m\"\n" + text), nil
		},
	})
}

// TestPresets: every row of the table can be named, and sets what nobody has set.
func TestPresets(t *testing.T) {
	t.Parallel()
	list, err := dialect.All()
	if err != nil {
		t.Fatal(err)
	}
	field, _ := reflect.TypeFor[config.Provider]().FieldByName("Preset")
	allowed := strings.Split(field.Tag.Get("enum"), "|")
	if len(allowed) != len(list) {
		t.Errorf("%d presets are allowed, the table has %d", len(allowed), len(list))
	}
	for _, d := range list {
		c, err := loaded("preset = \""+d.Name+"\"\n", d.Key+"=from-vendor")
		if d.BaseURL == "" {
			if err == nil || !strings.Contains(err.Error(), "base_url: is missing") {
				t.Errorf("%s without an address: %v", d.Name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", d.Name, err)
			continue
		}
		p := c.LLM.Providers[0]
		key := ""
		if d.Key != "" {
			key = "from-vendor"
		}
		if p.BaseURL != d.BaseURL || p.APIKey.Reveal() != key || (p.Type == "anthropic") != (d.Wire == "anthropic") {
			t.Errorf("%s: %s, key %q, type %s", d.Name, p.BaseURL, p.APIKey.Reveal(), p.Type)
		}
	}
}

// TestPresetIsOverruled: what is set wins, a vendor's key is not taken without the vendor's name, and what contradicts
// the preset is named.
func TestPresetIsOverruled(t *testing.T) {
	t.Parallel()
	env := []string{"GEMINI_API_KEY=from-vendor", "OPENAI_API_KEY=of-somebody"}
	for name, tt := range map[string]struct {
		text      string
		base, key string
		problem   string
	}{
		"preset alone":     {`preset = "gemini"`, "https://generativelanguage.googleapis.com/v1beta/openai", "from-vendor", ""},
		"own address":      {"preset = \"gemini\"\nbase_url = \"https://proxy.example.com/v1\"", "https://proxy.example.com/v1", "from-vendor", ""},
		"own key":          {"preset = \"gemini\"\napi_key = \"mine\"", "https://generativelanguage.googleapis.com/v1beta/openai", "mine", ""},
		"own keys":         {"preset = \"gemini\"\napi_keys = [\"a\", \"b\", \"a\"]", "https://generativelanguage.googleapis.com/v1beta/openai", "a b", ""},
		"no preset":        {"", "https://api.openai.com/v1", "", ""},
		"recognised":       {`base_url = "https://generativelanguage.googleapis.com/v1beta/openai"`, "https://generativelanguage.googleapis.com/v1beta/openai", "", ""},
		"Azure":            {"preset = \"azure\"\nbase_url = \"https://r.openai.azure.com/openai/deployments/d?api-version=2024-10-21\"\napi_key = \"k\"", "https://r.openai.azure.com/openai/deployments/d?api-version=2024-10-21", "k", ""},
		"unknown":          {`preset = "gemni"`, "", "", "did you mean gemini?"},
		"a vendor's model": {`preset = "grok"`, "", "", `"grok" is not allowed; for xAI set preset to "xai"`},
		"another spelling": {`preset = "LM Studio"`, "", "", `set preset to "lmstudio"`},
		"a vendor as type": {`type = "google"`, "", "", `for Google Gemini set preset to "gemini"`},
		"without a preset": {`preset = "bedrock"`, "", "", `Amazon Bedrock has no preset: leave it out, and set base_url = "https://bedrock-runtime.`},
		"nobody knows it":  {`preset = "something"`, "", "", "allowed: openai, azure, anthropic"},
		"of another API":   {"preset = \"gemini\"\ntype = \"anthropic\"", "", "", "has not the API of type anthropic"},
		"Messages of its":  {"preset = \"deepseek\"\ntype = \"anthropic\"\nbase_url = \"https://api.deepseek.com/anthropic\"", "https://api.deepseek.com/anthropic", "", ""},
		"Ollama's own API": {"preset = \"vllm\"\ntype = \"ollama\"", "", "", "has not the API of type ollama"},
	} {
		c, err := loaded(tt.text+"\n", env...)
		if tt.problem != "" {
			if err == nil || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("%s: %v, want %q", name, err, tt.problem)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		p := c.LLM.Providers[0]
		var keys []string
		for _, key := range p.Keys() {
			keys = append(keys, key.Reveal())
		}
		if got := strings.Join(keys, " "); p.BaseURL != tt.base || got != tt.key {
			t.Errorf("%s: %s, keys %q; want %s, %q", name, p.BaseURL, got, tt.base, tt.key)
		}
	}
}

// TestKeysAreHidden: a pool of keys is not printed, whatever is wrong with it.
func TestKeysAreHidden(t *testing.T) {
	t.Parallel()
	c, err := loaded("api_keys = [\"sk-first\", \"sk-second\"]\n")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := config.Print(&out, c, false); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "sk-") || !strings.Contains(text, "api_keys = [\"[redacted]\", \"[redacted]\"]") {
		t.Errorf("printed:\n%s", text)
	}
	if _, err := loaded("api_keys = \"sk-first\"\n"); err == nil || strings.Contains(err.Error(), "sk-first") {
		t.Errorf("the problem repeats the key: %v", err)
	}
}

// TestUnknownServer: where mistakes leave it open whose server a provider is, it has no address, so that its key is not
// sent to the vendor whose address is the default.
func TestUnknownServer(t *testing.T) {
	t.Parallel()
	for text, astray := range map[string]bool{
		`preset = "gemni"`:                          true,
		`preset = 5`:                                true,
		`prest = "gemini"`:                          true,
		`type = "antropic"`:                         true,
		`base_ulr = "https://host/v1"`:              true,
		`base_url = 5`:                              true,
		`base_url = "ftp://host"`:                   true,
		`preset = "azure"`:                          true,
		"preset = \"gemini\"\ntype = \"anthropic\"": true,
		"preset = \"gemni\"\nbase_url = \"https://host/v1\"": false,
		"prest = \"gemini\"\nbase_url = \"https://host/v1\"": false,
		"preset = \"gemini\"\nmax_tokens = 0":                false,
		`max_tokens = 0`:                                     false,
	} {
		c, err := config.Examine(config.Source{
			File: "zephbot.toml", WorkDir: "/", Home: "/", ReadFile: func(string) ([]byte, error) {
				return []byte("[[llm.providers]]\nname = \"main\"\nmodel = \"m\"\napi_key = \"k\"\n" + text + "\n"), nil
			},
		})
		if err == nil || c == nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if base := c.LLM.Providers[0].BaseURL; (base == "") != astray {
			t.Errorf("%s: the address is %q", text, base)
		}
	}
	c, err := config.Examine(config.Source{WorkDir: "/", Home: "/", Env: []string{"ZEPH_LLM_PROVIDERS_MAIN_MODEL=m", "ZEPH_LLM_PROVIDERS_MAIN_API_KEY=k", "ZEPH_LLM_PROVIDERS_MAIN_PRESET=gemni"}})
	if err == nil || c == nil || c.LLM.Providers[0].BaseURL != "" {
		t.Errorf("in the environment: %v", err)
	}
}
