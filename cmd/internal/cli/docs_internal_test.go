package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zephbot/zephbot/cmd/internal/doctest"
)

// notRun says why commands of the documentation are parsed and not run: by the beginning of the command line.
var notRun = map[string]string{
	"serve":        "runs until it is told to stop, and needs a token; the scenarios run it",
	"simulate":     "runs until it is told to stop; the tests of the page run it",
	"setup":        "asks a person, and asks Telegram about the token; TestSetup… run it",
	"acp":          "speaks with an editor on stdin until that ends",
	"mcp":          "needs a server; TestMCP… run it",
	"restore":      "needs the backup that is named; TestBackup runs it",
	"doctor":       "fails without a bot; TestDoctor… run it",
	"debug":        "needs a turn",
	"tools call t": "needs the server tickets of the example",
	"user":         "needs a person who has written",
	"audit":        "needs a log",
	"policy test":  "needs a file of expectations",
	"policy repla": "needs a log of calls",
	"config init":  "is run by TestConfigInit…; a second one in the same directory is refused",
}

// reasonNotToRun returns why a command is not run; "" = it is.
func reasonNotToRun(c *doctest.Command) string {
	line := strings.Join(c.Args[1:], " ")
	switch {
	case c.Inline:
		return "it is an example in a sentence"
	case line == "":
		return "runs until it is told to stop"
	case strings.HasPrefix(line, "chat") && !strings.Contains(line, "--once"):
		return "talks with a person"
	case strings.Contains(line, " /etc/"), strings.Contains(line, " /var/"):
		return "is about directories of a server"
	case strings.Contains(line, "…"), strings.ContainsAny(line, "<>"):
		return "has a gap that the reader fills in"
	}
	for begin, reason := range notRun {
		if strings.HasPrefix(line, begin) {
			return reason
		}
	}
	return ""
}

// parsed reports what is wrong with a command line; "" if the command and its flags exist. Arguments are not looked at.
func parsed(args []string) string {
	root := (&command{env: Env{}}).root()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err.Error()
	}
	// Help has its flag once it is run; it must be known before.
	cmd.InitDefaultHelpFlag()
	flags := slices.Concat(rest)
	if err := cmd.ParseFlags(flags); err != nil {
		return err.Error()
	}
	words := cmd.Flags().Args()
	if len(cmd.Commands()) > 0 && len(words) > 0 && !isSub(cmd, words[0]) {
		return "there is no command " + cmd.CommandPath() + " " + words[0]
	}
	return ""
}

// isSub accepts alternatives such as "list, test" too, in which a sentence lists subcommands.
func isSub(cmd *cobra.Command, word string) bool {
	return slices.ContainsFunc(cmd.Commands(), func(sub *cobra.Command) bool { return sub.Name() == strings.Trim(word, ",") })
}

// TestCommandsInDocs: every command of ours in the documentation is one that the program knows, with its flags, and
// those that need nothing from outside are run with the offline model.
func TestCommandsInDocs(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	pages, err := doctest.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	known, run := 0, 0
	for _, page := range pages {
		if page == "CHANGELOG.md" { // commands of earlier versions
			continue
		}
		found, err := doctest.Commands(root, page, []string{"zephbot"})
		if err != nil {
			t.Error(err)
		}
		dir := ""
		for i := range found {
			c := &found[i]
			if c.Args[0] != "zephbot" {
				continue
			}
			if known++; parsed(c.Args[1:]) != "" {
				t.Errorf("%s: %s", c, parsed(c.Args[1:]))
				continue
			}
			if reasonNotToRun(c) != "" {
				continue
			}
			if dir == "" {
				dir = stateForDocs(t)
			}
			run++
			if code, said := runDocs(t, dir, c); code != Fine {
				t.Errorf("%s: exit %d: %s", c, code, said)
			}
		}
	}
	if known < 60 || run < 10 {
		t.Errorf("%d commands were found, %d of them run", known, run)
	}
	t.Logf("%d commands, %d of them run", known, run)
}

// TestOperatorGuide runs every command that the operator's guide shows, in its order, with the rules that it shows, where
// tools have been called before. What it says of a rule is what the program decides.
func TestOperatorGuide(t *testing.T) {
	t.Parallel()
	root, page := filepath.Join("..", "..", ".."), "docs/guide-operator.md"
	raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	found, err := doctest.Commands(root, page, []string{"zephbot"})
	if err != nil {
		t.Fatal(err)
	}
	dir := stateForDocs(t)
	call := &doctest.Command{Args: []string{"zephbot", "tools", "call", "bash", `{"command":"echo hello"}`, "--yes"}}
	if code, said := runDocs(t, dir, call); code != Fine {
		t.Fatal(said)
	}
	var rules strings.Builder
	for _, m := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(string(raw), -1) {
		rules.WriteString(m[1])
	}
	effects := map[string]string{"git log --oneline": "allow", "git log; curl https://example.com": "ask"}
	run := 0
	for i := range found {
		c := &found[i]
		line := strings.Join(c.Args[1:], " ")
		if c.Inline || c.Args[0] != "zephbot" || line == "setup" { // TestSetup answers its questions
			continue
		}
		run++
		code, said := runDocs(t, dir, c)
		if code != Fine {
			t.Errorf("%s: exit %d: %s", c, code, said)
		}
		if line == "config init" {
			addTo(t, filepath.Join(dir, "zephbot.toml"), rules.String())
		}
		for command, effect := range effects {
			if strings.Contains(line, `"`+command+`"`) {
				delete(effects, command)
				if !strings.Contains(said, `"effect": "`+effect+`"`) && !strings.Contains(said, `"effect":"`+effect+`"`) {
					t.Errorf("%s: want %s: %s", c, effect, said)
				}
			}
		}
	}
	if run < 10 || len(effects) > 0 {
		t.Errorf("%d commands were run; no rule was tried for %v", run, effects)
	}
}

func addTo(t *testing.T, name, text string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("\n" + text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// stateForDocs is a directory with a state, and with the files that pages use.
func stateForDocs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"log": "ok  \tpkg\t0.1s\n", "calls.jsonl": `{"tool":"read","args":{"path":"a"}}` + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, said := runDocs(t, dir, &doctest.Command{Args: []string{"zephbot", "migrate"}}); code != Fine {
		t.Fatal(said)
	}
	return dir
}

func runDocs(t *testing.T, dir string, c *doctest.Command) (int, string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := append([]string{"ZEPH_DATA_DIR=" + filepath.Join(dir, "data"), "ZEPH_LLM_PROVIDERS_MAIN_TYPE=offline"}, c.Env...)
	code := Main(t.Context(), c.Args[1:], Env{
		In: strings.NewReader("ok\n"), Out: &out, Err: &errs, Environ: env, WorkDir: dir, Home: dir, Executable: "/nowhere/zephbot",
	})
	return code, errs.String() + out.String()
}

// TestReasonsAreNeeded: every reason in notRun is about a command that exists.
func TestReasonsAreNeeded(t *testing.T) {
	t.Parallel()
	var paths []string
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		paths = append(paths, strings.TrimPrefix(cmd.CommandPath(), "zephbot "))
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk((&command{env: Env{}}).root())
	for begin := range notRun {
		if !slices.ContainsFunc(paths, func(path string) bool { return strings.HasPrefix(path, begin) || strings.HasPrefix(begin, path) }) {
			t.Logf("no command begins with %q yet", begin)
		}
	}
	if text := parsed([]string{"backup", "--no-such-flag", "x"}); text == "" {
		t.Error("an unknown flag is accepted")
	}
	if text := parsed([]string{"audit", "nonsense"}); text == "" {
		t.Error("an unknown command is accepted")
	}
	if text := parsed([]string{"audit", "verify", "--help"}); text != "" && text != pflag.ErrHelp.Error() {
		t.Error(text)
	}
}
