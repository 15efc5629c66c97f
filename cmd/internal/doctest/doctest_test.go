package doctest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/cmd/internal/doctest"
)

func TestCommands(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	page := strings.ReplaceAll(`# A page
Run ''zephbot version --json'', not ''zephbot.toml''; ''zephbot scan secrets\|injection''.
'''
$ zephbot migrate --dry-run
to apply: 3 process
'''
'''
zephbot backup x.tar.gz
some output
'''
'''sh
A=1 go test ./... 2>&1 | zephbot filter --command "go test" \
    --exit-code 1   # a comment
docker run -v "$PWD:/x" img
'''
'''toml
zephbot = "not a command"
'''

    zephbot audit verify    # all of them
    what it prints
`, "''", "`")
	page = strings.ReplaceAll(page, "`'", "```")
	if err := os.WriteFile(filepath.Join(root, "README.md"), []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := doctest.Commands(root, "README.md", []string{"zephbot"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range found {
		text := strings.Join(append(append([]string{}, c.Env...), c.Args...), "·")
		if c.Inline {
			text = "(" + text + ")"
		}
		if c.Piped {
			text = "|" + text
		}
		got = append(got, text)
	}
	if diff := cmp.Diff([]string{
		"(zephbot·version·--json)", "(zephbot·scan·secrets)", "|(injection)", "zephbot·migrate·--dry-run", "zephbot·backup·x.tar.gz",
		"A=1·go·test·./...", "|zephbot·filter·--command·go test·--exit-code·1", "docker·run·-v·…:/x·img", "zephbot·audit·verify",
	}, got); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(filepath.Join(root, "bad.md"), []byte("```sh\nzephbot 'x\n```\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := doctest.Commands(root, "bad.md", nil); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("no command: %v", err)
	}
}
