package archtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/cmd/internal/archtest"
)

// The map is between these lines of ARCHITECTURE.md.
const (
	mapBegins = "<!-- packages, written by: ZEPH_UPDATE=1 go test ./cmd/internal/archtest -run TestPackageMap -->\n```text\n"
	mapEnds   = "```\n<!-- end of packages -->\n"
)

// TestPackageMap: the map of packages in ARCHITECTURE.md is what the comments of the packages say. ZEPH_UPDATE=1 writes
// it again.
func TestPackageMap(t *testing.T) {
	t.Parallel()
	want, err := archtest.PackageMap(os.DirFS(root), projectFiles(t))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(root, "ARCHITECTURE.md")
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), mapBegins)
	got, after, ends := strings.Cut(rest, mapEnds)
	if !begins || !ends {
		t.Fatalf("ARCHITECTURE.md has no place for the map: %q … %q", mapBegins, mapEnds)
	}
	if got == want {
		return
	}
	if os.Getenv("ZEPH_UPDATE") != "" {
		if err := os.WriteFile(name, []byte(before+mapBegins+want+mapEnds+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the map of ARCHITECTURE.md is not what the packages say: "+
		"ZEPH_UPDATE=1 go test ./cmd/internal/archtest -run TestPackageMap\n%s", cmp.Diff(got, want))
}

// TestPackageMapOfATree: which part of a comment the map shows, and which packages it only names.
func TestPackageMapOfATree(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{"go.mod": {Data: []byte("module example.org/m\n")}}
	var names []string
	for name, comment := range map[string]string{
		"policy/policy.go":             "Package policy decides whether a call may run: allow, ask or deny. It does no I/O.",
		"policy/gone.go":               "",
		"policy/netrule/netrule.go":    "Package netrule decides about addresses (of tools), which may be local.",
		"tools/tools.go":               "Package tools defines what a tool is.",
		"tools/toolstest/toolstest.go": "Package toolstest has tools for tests.",
		"agent/agent.go":               "Package agent runs the conversation; a turn at a time.",
		"agent/llm/llm.go":             "Package llm defines the interface to models, and does so in far more words than fit into a line of the map.",
		"agent/llm/openai/openai.go":   "Package openai speaks to OpenAI.",
		"agent/llm/a/a.go":             "Package a is another one.",
		"bot/bot.go":                   "Package bot delivers what is said to whoever has asked for it without a comma anywhere at all here.",
		"cmd/zephbot/main.go":          "Command zephbot is the program.",
		"cmd/internal/app/app.go":      "Package app builds the service:\n\n  - intake",
		"cmd/internal/app/x_test.go":   "Package app_test is not shown.",
	} {
		text := "package x\n"
		if comment != "" {
			text = "// " + strings.ReplaceAll(comment, "\n", "\n// ") + "\n" + text
		}
		tree[name] = &fstest.MapFile{Data: []byte(text)}
		names = append(names, name)
	}
	names = append(names, "policy/deleted.go")
	got, err := archtest.PackageMap(tree, names)
	if err != nil {
		t.Fatal(err)
	}
	want := `POLICY       decides whether a call may run
 netrule     decides about addresses
TOOLS        defines what a tool is
AGENT        runs the conversation
 llm         defines the interface to models
  llm/ a openai
BOT          delivers what is said to whoever has asked for it without a …
PERSISTENCE
CMD
 app         builds the service
 zephbot     program
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the map (-want +got):\n%s", diff)
	}
}
