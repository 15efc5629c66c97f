package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/cmd/internal/config"
)

// seedPermissions is the example of the documentation that users come with: its first line is not valid TOML.
const seedPermissions = `[tools.permissions.bash]
[[tools.permissions.bash]]
pattern = "*sudo*"
action = "deny"

[[tools.permissions.bash]]
pattern = "cargo *"
action = "allow"

[[tools.permissions.bash]]
pattern = "*"
action = "ask"
`

// TestSeedPermissions: the example loads and means what it says, with a warning on the line to remove.
func TestSeedPermissions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		line int
	}{
		"as it stands":        {seedPermissions, 1},
		"after other tables":  {"[log]\nlevel = \"warn\"\n\n" + seedPermissions, 4},
		"with a comment":      {"[tools.permissions.bash] # rules\n# of mine\n\n" + strings.SplitAfterN(seedPermissions, "\n", 2)[1], 1},
		"two tools":           {seedPermissions + strings.ReplaceAll(seedPermissions, ".bash", ".read"), 1},
		"in a text like that": {"[agent]\nsystem_prompt = \"\"\"\n[a]\n[[a]]\n\"\"\"\n" + seedPermissions, 6},
	} {
		cfg, err := config.Load(config.Source{File: "z.toml", ReadFile: func(string) ([]byte, error) { return []byte(c.text), nil }})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		rules := cfg.Tools.Permissions["bash"]
		if len(rules) != 3 || rules[0].Action != "deny" || rules[1].Pattern != "cargo *" || rules[2].Action != "ask" {
			t.Errorf("%s: rules %v", name, rules)
		}
		if len(cfg.Warnings) == 0 || cfg.Warnings[0].Line != c.line || !strings.Contains(cfg.Warnings[0].Text, "remove this line") {
			t.Errorf("%s: warnings %v", name, cfg.Warnings)
		}
		if c.line == 6 && !strings.Contains(cfg.Agent.SystemPrompt, "[a]\n[[a]]") {
			t.Errorf("%s: the text became %q", name, cfg.Agent.SystemPrompt)
		}
	}
}

// TestDoubledTables: a table that says something before the list is still refused, and so is every other mistake beside
// a doubled header.
func TestDoubledTables(t *testing.T) {
	t.Parallel()
	for text, line := range map[string]int{
		"[tools.permissions.bash]\nx = 1\n[[tools.permissions.bash]]\n":         3,
		"[[tools.permissions.bash]]\npattern=\"x\"\n[tools.permissions.bash]\n": 3,
		seedPermissions + "broken = = 1\n":                                      13,
		"[tools.permissions.bash]\n[tools.permissions.bash]\n":                  2,
	} {
		_, err := config.Load(config.Source{File: "z.toml", ReadFile: func(string) ([]byte, error) { return []byte(text), nil }})
		var problems config.Problems
		if !errors.As(err, &problems) || problems[0].Line != line {
			t.Errorf("%q: %v, want a problem on line %d", text, err, line)
		}
	}
}
