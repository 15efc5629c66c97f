package config_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/policy/act"
)

// withTools is source where the names of tools are checked.
func withTools(text string) config.Source {
	src := source(text)
	src.Tools = ownTools()
	return src
}

// ownTools are some tools, as they would state themselves.
func ownTools() []act.Tool {
	list := []act.Tool{{Name: "bash", Statement: act.Statement{Aliases: []string{"shell", "sh"}}}}
	for _, name := range []string{
		"read", "write", "edit", "grep", "delete_path", "fetch", "web_scrape", "memory_search", "memory_save",
		"read_overflow", "load_skill", "invoke_skill", "schedule_deferred", "list_tasks",
	} {
		list = append(list, act.Tool{Name: name})
	}
	return list
}

// TestToolNamesAreTagged walks the whole configuration: no list and no table of tools may be forgotten by the check of
// names.
func TestToolNamesAreTagged(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] {
			return
		}
		seen[typ] = true
		for f := range typ.Fields() {
			if f.Tag.Get("toml") == "" || f.Tag.Get("toml") == "-" {
				continue
			}
			about := strings.ToLower(f.Name + " " + f.Tag.Get("doc"))
			if holdsTexts(f.Type) && strings.Contains(about, "tool") && f.Tag.Get("tools") == "" && f.Tag.Get("place") == "" && !listsNoTools[f.Name] {
				t.Errorf("%s.%s lists tools and has no tag that says how they are named", typ.Name(), f.Name)
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[config.Config]())
	if len(seen) < 30 {
		t.Errorf("only %d tables were seen", len(seen))
	}
}

// listsNoTools are fields that speak of tools and list something else.
var listsNoTools = map[string]bool{"Capabilities": true}

func holdsTexts(typ reflect.Type) bool {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	return typ.Kind() == reflect.Map && typ.Key().Kind() == reflect.String || typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.String
}

// TestMisspeltTools: a name that is no tool's is an error at its line, with the nearest name, wherever it is written.
func TestMisspeltTools(t *testing.T) {
	t.Parallel()
	const server = "\n[[mcp.servers]]\nid = \"github\"\nurl = \"https://example.com\"\n"
	for text, want := range map[string]string{
		"[telegram]\nallowed_tools = [\"bsh\"]":                                                       `zephbot.toml:2: telegram.allowed_tools: "bsh" names no tool (did you mean bash?)`,
		"[telegram.chats.\"-100\"]\nallowed_tools = [\"raed\"]":                                       `"raed" names no tool (did you mean read?)`,
		"[agent.tool_filter]\nalways_on = [\"memory_serch\"]":                                         `(did you mean memory_search?)`,
		"[[tools.permissions.bahs]]\npattern = \"*\"\naction = \"deny\"":                              `tools.permissions.bahs: "bahs" names no tool (did you mean bash?)`,
		"[[tools.policy.rules]]\neffect = \"deny\"\ntool = \"delete_pth\"":                            `zephbot.toml:3: tools.policy.rules[0].tool: "delete_pth" names no tool (did you mean delete_path?)`,
		"[[tools.policy.rules]]\neffect = \"deny\"\ntools = [\"bash\", \"wrtie\"]":                    `(did you mean write?)`,
		"[[tools.policy.rules]]\neffect = \"deny\"\ntool = \"wbe_*\"":                                 `"wbe_*" matches no tool`,
		"[[tools.authorization.rules]]\neffect = \"deny\"\ntool = \"fetc\"":                           `(did you mean fetch?)`,
		"[tools.adversarial_policy]\nexempt_tools = [\"reed\"]":                                       `(did you mean read?)`,
		"[tools.utility]\nexempt_tools = [\"grepp\"]":                                                 `(did you mean grep?)`,
		"[tools.utility]\nhigh_gain_tools = [\"fetchh\"]":                                             `(did you mean fetch?)`,
		"[mcp.pruning]\nalways_include = [\"gihub:issues\"]" + server:                                 `there is no server "gihub" (did you mean github?)`,
		"[mcp.tool_discovery]\nalways_include = [\"gihub:issues\"]" + server:                          `(did you mean github?)`,
		"[telegram]\nallowed_tools = [\"gihub:issues\"]" + server:                                     `(did you mean github?)`,
		"[[tools.policy.rules]]\neffect = \"deny\"\ntool = \"gihub:*\"" + server:                      `(did you mean github?)`,
		"[mcp]\nmax_dynamic_servers = 0\n[telegram]\nallowed_tools = [\"jira:issues\"]":               `"jira:issues": there is no server "jira"`,
		"[[mcp.servers]]\nid = \"a\"\nurl = \"https://example.com\"\ntool_allowlist = [\"a:x\"]":      `write "x" without "a:"`,
		"[[mcp.servers]]\nid = \"a\"\nurl = \"https://example.com\"\nexpected_tools = [\"a:x\"]":      `write "x" without "a:"`,
		"[[mcp.servers]]\nid = \"a\"\nurl = \"https://example.com\"\npolicy.denied_tools = [\"a:x\"]": `write "x" without "a:"`,
		"[telegram]\nallowed_tools = [\"*\"]":                                                         `"*" names no tool`,
	} {
		_, err := config.Load(withTools(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nwant %s\ngot  %v", text, want, err)
		}
	}
}

// TestDependenciesOfMissingTools: an order of tools that do not exist is no reason not to start; each name is a warning at
// its line.
func TestDependenciesOfMissingTools(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[tools.dependencies.rules.edti]\nrequires = [\"read\"]": `tools.dependencies.rules.edti: "edti" names no tool (did you mean edit?)`,
		"[tools.dependencies.rules.edit]\nrequires = [\"raed\"]": `requires: "raed" names no tool`,
		"[tools.dependencies.rules.edit]\nprefers = [\"raed\"]":  `prefers: "raed" names no tool`,
	} {
		cfg, err := config.Load(withTools(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := cfg.Warnings.Error(); !strings.Contains(got, want) || !strings.Contains(got, "the rule waits for such a tool") {
			t.Errorf("%s\nwant %s\ngot  %s", text, want, got)
		}
	}
}

// TestRightTools: what is spelt right, an alias, a glob that covers something, a server from
// the chat.
func TestRightTools(t *testing.T) {
	t.Parallel()
	var names []string
	for _, name := range []string{"bash", "shell", "sh", "read", "memory_save", "BASH", "github:create_issue"} {
		names = append(names, fmt.Sprintf("%q", name))
	}
	c, err := config.Load(withTools("[telegram]\nallowed_tools = [" + strings.Join(names, ", ") + "]\n" +
		"[[tools.policy.rules]]\neffect = \"deny\"\ntool = [\"*\", \"memory_*\", \"read*\", \"github:*\", \"*:delete_*\", \"gi*:x\", \"[bf]*\", \"Shell\"]\n" +
		"[mcp.tool_discovery]\nalways_include = [\"create_issue\"]\n" +
		"[[mcp.servers]]\nid = \"github\"\nurl = \"https://example.com\"\ntool_allowlist = [\"create_issue\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range c.Warnings {
		if strings.Contains(w.Text, "tool") && strings.Contains(w.Text, "no server") {
			t.Errorf("warning %v", w)
		}
	}
	c, err = config.Load(withTools("[telegram]\nallowed_tools = [\"jira:issues\"]\n"))
	if err != nil || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].Text, `there is no server "jira"; it counts once such a server is added in the chat`) {
		t.Errorf("%v, warnings %v", err, c.Warnings)
	}
}

// TestNamesOfNoTools: where nobody says which tools there are, every name may be right.
func TestNamesOfNoTools(t *testing.T) {
	t.Parallel()
	if _, err := config.Load(source("[telegram]\nallowed_tools = [\"bsh\"]")); err != nil {
		t.Error(err)
	}
}

// TestPersonas: their models are named by provider or model, their names are as people write them, and a tool that does
// not exist is refused.
func TestPersonas(t *testing.T) {
	t.Parallel()
	const provider = "[[llm.providers]]\nname = 'main'\nmodel = 'gpt'\n"
	c, err := config.Load(withTools("[personas.'Шеф Анна']\nmodel = 'GPT'\ntools = []\n[personas.tutor]\nmodel = 'main'\ntools = ['shell']\n" + provider))
	if err != nil {
		t.Fatal(err)
	}
	if anna := c.Personas["Шеф Анна"]; anna.Tools == nil || len(*anna.Tools) != 0 || c.ProviderOf(anna.Model) != "main" || c.ProviderOf("other") != "" {
		t.Errorf("%+v, %q", anna, c.ProviderOf(anna.Model))
	}
	if c.Personas["tutor"].Voice != "" {
		t.Error("a voice")
	}
	_, err = config.Load(withTools("[personas.tutor]\ntools = ['raed']\n" + provider))
	if err == nil || !strings.Contains(err.Error(), "did you mean read?") {
		t.Errorf("%v", err)
	}
}
