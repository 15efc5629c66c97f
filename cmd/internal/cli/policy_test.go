package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/cmd/internal/cli"
)

// file writes a file into the directory of the world.
func (w *world) file(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPolicyGuide: every example of docs/policy.md is decided as the page says, with the configuration above it.
func TestPolicyGuide(t *testing.T) {
	t.Parallel()
	page := contents(t, filepath.Join("..", "..", "..", "docs", "policy.md"))
	var conf string
	sections := 0
	for _, block := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(page, -1) {
		text := block[1]
		if !strings.Contains(text, "[[example]]") {
			conf = text
			continue
		}
		sections++
		w := here(t)
		w.file(t, "zephbot.toml", conf)
		w.file(t, "examples.toml", text)
		if code := w.run(t, "policy", "test", "examples.toml"); code != cli.Fine {
			t.Errorf("exit %d with\n%s\n%s%s", code, conf, w.out.String(), w.err.String())
		}
	}
	if sections < 6 {
		t.Errorf("only %d sections were run", sections)
	}
}

// TestPolicyTest: a failed example says what was expected, what was decided and why; nothing is left behind.
func TestPolicyTest(t *testing.T) {
	t.Parallel()
	w := here(t)
	w.file(t, "x.toml", "[[example]]\nname = \"first\"\ntool = \"bash\"\nargs = { command = \"make\" }\nexpect = \"deny\"\nrule = \"block\"\n\n"+
		"[[example]]\ntool = \"read\"\nargs = { path = \"a\" }\nexpect = \"allow\"\n\n[[example]]\ntool = \"raed\"\nexpect = \"allow\"\n")
	if code := w.run(t, "policy", "test", "x.toml"); code != cli.Failed || !strings.Contains(w.out.String(), "x.toml:1 (first): bash make\n    expected deny by a rule with \"block\"\n    got      ask by built-in: bash asks\n    because ") ||
		!strings.Contains(w.out.String(), "3 examples, 1 as expected, 2 not") || !strings.Contains(w.out.String(), "x.toml:13: raed") {
		t.Errorf("exit %d: %s%s", code, w.out.String(), w.err.String())
	}
	if code := w.run(t, "policy", "test", "--tap", "x.toml"); code != cli.Failed || !strings.Contains(w.out.String(), "not ok 1 - ") || !strings.HasSuffix(w.out.String(), "1..3\n") {
		t.Errorf("exit %d: %s%s", code, w.out.String(), w.err.String())
	}
	if code := w.run(t, "policy", "test", "--json", "x.toml"); code != cli.Failed || strings.Count(w.out.String(), `"ok":`) != 3 {
		t.Errorf("exit %d: %s%s", code, w.out.String(), w.err.String())
	}
	w.file(t, "bad.toml", "[[example]]\ntool = \"bash\"\nexpekt = \"ask\"\n")
	for args, want := range map[string]string{"bad.toml": "did you mean expect?", "none.toml": "no such file"} {
		if code := w.run(t, "policy", "test", args); code != cli.Usage || !strings.Contains(w.err.String(), want) {
			t.Errorf("%s: exit %d: %s", args, code, w.err.String())
		}
	}
	if entries, err := os.ReadDir(w.dir); err != nil || len(entries) != 2 {
		t.Errorf("it left something behind: %v, %v", entries, err)
	}
}

// TestCheckAndTestAgree: one call is decided alike by both commands.
func TestCheckAndTestAgree(t *testing.T) {
	t.Parallel()
	w := here(t)
	for tool, args := range map[string]string{
		"bash": `{"command":"cat a && sudo id"}`, "list_directory": `{"path":"."}`, "write": `{"path":"a","content":"x"}`, "github:x": `{"q":1}`, "fetch": `{"url":"https://example.com"}`,
	} {
		code := w.run(t, "policy", "check", tool, args)
		var d struct{ Effect, Rule string }
		if err := json.Unmarshal(w.out.Bytes(), &d); err != nil || code != cli.Fine {
			t.Logf("%s: exit %d: %s", tool, code, w.err.String()) // there is no such tool: nothing to compare
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal([]byte(args), &fields); err != nil {
			t.Fatal(err)
		}
		text := "[[example]]\ntool = \"" + tool + "\"\nmode = \"chat\"\nexpect = \"" + d.Effect + "\"\nrule = '" + d.Rule + "'\n[example.args]\n"
		for key, value := range fields {
			raw, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			text += key + " = " + string(raw) + "\n"
		}
		w.file(t, "x.toml", text)
		if code := w.run(t, "policy", "test", "x.toml"); code != cli.Fine {
			t.Errorf("%s: exit %d: %s%s", tool, code, w.out.String(), w.err.String())
		}
	}
}

// TestPolicyReplay: calls that were recorded are decided again with other rules.
func TestPolicyReplay(t *testing.T) {
	t.Parallel()
	w := here(t)
	w.file(t, "old.toml", "")
	w.file(t, "same.toml", "")
	w.file(t, "new.toml", "[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"deny\"\n")
	for _, args := range []string{"touch a", "touch b", "touch b", "mkdir c"} {
		w.run(t, "tools", "call", "--yes", "bash", `{"command":"`+args+`"}`)
	}
	if code := w.run(t, "policy", "replay", "--config", "new.toml"); code != cli.Fine || !strings.Contains(w.out.String(), "1 decided alike, 3 differently, 0 that") ||
		!strings.Contains(w.out.String(), "2× bash  touch b\n        ask   → deny   built-in: bash asks → permissions.bash[0]") {
		t.Errorf("exit %d: %s%s", code, w.out.String(), w.err.String())
	}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--config", "new.toml", "--fail-on-change"}, cli.Failed, "3 differently"},
		{[]string{"--config", "same.toml", "--old", "old.toml", "--fail-on-change"}, cli.Fine, "4 decided alike, 0 differently"},
		{[]string{"--config", "new.toml", "--old", "old.toml", "--json"}, cli.Fine, `"changed": 3`},
		{[]string{"--config", "new.toml", "--tool", "read"}, cli.Fine, "0 calls since"},
		{[]string{"--config", "new.toml", "--groups", "1"}, cli.Fine, "… and 1 more groups"},
		{[]string{"--config", "new.toml", "--since", "x"}, cli.Usage, "is no time"},
		{[]string{"--config", "new.toml", "--groups", "0"}, cli.Usage, "--groups 0"},
		{[]string{"--config", "none.toml"}, cli.Usage, "none.toml"},
		{[]string{"--config", "new.toml", "--old", "none.toml"}, cli.Usage, "none.toml"},
	} {
		code := w.run(t, append([]string{"policy", "replay"}, tc.args...)...)
		if code != tc.code || !strings.Contains(w.out.String()+w.err.String(), tc.want) {
			t.Errorf("%v: exit %d: %s%s", tc.args, code, w.out.String(), w.err.String())
		}
	}
}
