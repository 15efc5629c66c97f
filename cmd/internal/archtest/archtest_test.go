package archtest_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/cmd/internal/archtest"
)

const root = "../../.."

// TestProject holds this checkout to the rules.
func TestProject(t *testing.T) {
	t.Parallel()
	names := projectFiles(t)
	if !slices.Contains(names, "go.mod") || !slices.Contains(names, "cmd/internal/archtest/archtest_test.go") {
		t.Fatalf("the list of files is not that of the project: %d files", len(names))
	}
	problems, err := archtest.Check(os.DirFS(root), names)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// projectFiles lists the files that belong to the project: what git tracks, and what it would. Where there is no git,
// as in an image or an unpacked archive, it is every file.
func projectFiles(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err == nil && len(out) > 0 {
		names := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
		slices.Sort(names)
		return slices.Compact(names)
	}
	t.Logf("git does not list the files (%v); reading the directory", err)
	var names []string
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir() && name == ".git":
			return fs.SkipDir
		case d.Type().IsRegular():
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// clean is a small tree that keeps every rule, also where a rule has an exception.
func clean() map[string]string {
	return map[string]string{
		"go.mod":                              "module example.org/m\n\ngo 1.26\n",
		"README.md":                           "# A page that may say `TODO` in a sentence.\n",
		"policy/policy.go":                    "// Package policy decides.\npackage policy\n",
		"tools/tools.go":                      pkg("tools", "example.org/m/policy"),
		"tools/approve/approve.go":            pkg("approve", "example.org/m/tools"),
		"tools/decode/decode.go":              pkg("decode", "example.org/m/tools", "example.org/m/policy"),
		"tools/decode/decode_test.go":         pkg("decode_test", "example.org/m/tools/decode", "example.org/m/tools/toolstest"),
		"tools/toolstest/toolstest.go":        pkg("toolstest", "example.org/m/tools/approve"),
		"tools/chain/chain.go":                pkg("chain", "example.org/m/tools/decode", "example.org/m/tools/approve"),
		"agent/llm/llm.go":                    pkg("llm", "encoding/json"),
		"agent/llm/llm_test.go":               pkg("llm_test", "github.com/google/go-cmp/cmp"),
		"agent/llm/openai/openai.go":          pkg("openai", "example.org/m/agent/llm", "github.com/sashabaranov/go-openai"),
		"bot/bot.go":                          pkg("bot", "example.org/m/agent/llm"),
		"bot/approval/approval.go":            pkg("approval", "example.org/m/tools/approve", "example.org/m/bot"),
		"bot/telegram/telegram.go":            pkg("telegram", "github.com/go-telegram/bot/models", "example.org/m/bot"),
		"bot/telegram/telegramtest/server.go": pkg("telegramtest", "github.com/go-telegram/bot/models"),
		"bot/telegram/telegram_test.go":       pkg("telegram_test", "example.org/m/bot/telegram/telegramtest"),
		"bot/simulator/simulator.go":          pkg("simulator", "example.org/m/bot/telegram/telegramtest"),
		"persistence/sql/sql.go":              pkg("sql", "modernc.org/sqlite", "modernc.org/sqlite/lib", "example.org/m/bot", "example.org/m/tools/approve"),
		"persistence/vector/vector.go":        pkg("vector", "modernc.org/sqlite/vec"),
		"persistence/storetest/storetest.go":  pkg("storetest", "example.org/m/bot"),
		"bot/bot_test.go":                     pkg("bot_test", "example.org/m/persistence/storetest"),
		"cmd/internal/config/config.go":       pkg("config", "github.com/spf13/viper"),
		"cmd/internal/app/app.go": pkg("app", "example.org/m/bot/telegram", "example.org/m/bot/simulator",
			"example.org/m/tools/decode", "example.org/m/persistence/sql"),
		"charts/c/values.yaml": "a: 1\n",
		".ci/run":              "grep -n 'TODO' x # looks for marks\n",
		"tools/testdata/x.go":  "this is not Go",
		"tools/logo.bin":       "\x00" + "../" + "shared/spec",
	}
}

// pkg is the text of a source file that imports paths.
func pkg(name string, paths ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// Package %s is an example.\npackage %s\n\n", name, name)
	for _, p := range paths {
		fmt.Fprintf(&b, "import _ %q\n", p)
	}
	return b.String()
}

func check(t *testing.T, files map[string]string) []archtest.Problem {
	t.Helper()
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	problems, err := archtest.Check(tree, slices.Sorted(maps.Keys(files)))
	if err != nil {
		t.Fatal(err)
	}
	return problems
}

func TestCleanTree(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]archtest.Problem(nil), check(t, clean())); diff != "" {
		t.Error(diff)
	}
}

// TestBroken puts one file into the clean tree, and wants exactly the places that the file breaks.
func TestBroken(t *testing.T) {
	t.Parallel()
	const from = "example.org/m/"
	tests := []struct {
		name string
		file string
		text string
		want []string // "file:line rule"
	}{
		{"policy imports tools", "policy/a.go", pkg("policy", "fmt", from+"tools"), []string{"policy/a.go:5 layer"}},
		{"tools imports agent", "tools/a.go", pkg("tools", from+"agent/llm"), []string{"tools/a.go:4 layer"}},
		{"agent imports bot", "agent/a.go", pkg("agent", from+"bot"), []string{"agent/a.go:4 layer"}},
		{"bot imports persistence", "bot/a.go", pkg("bot", from+"persistence/sql"), []string{"bot/a.go:4 layer"}},
		{"persistence imports cmd", "persistence/a.go", pkg("persistence", from+"cmd/internal/config"), []string{"persistence/a.go:4 layer"}},
		{"a test imports upwards", "bot/a_test.go", pkg("bot_test", from+"persistence/sql"), []string{"bot/a_test.go:4 layer"}},
		{"llm imports a module", "agent/llm/a.go", pkg("llm", "github.com/google/uuid"), []string{"agent/llm/a.go:4 llm"}},
		{"llm imports tools", "agent/llm/a.go", pkg("llm", from+"tools"), []string{"agent/llm/a.go:4 llm"}},
		{"an adapter imports policy", "agent/llm/openai/a.go", pkg("openai", from+"policy"), []string{"agent/llm/openai/a.go:4 llm"}},
		{"channel imports channel", "bot/terminal/a.go", pkg("terminal", from+"bot/telegram"), []string{"bot/terminal/a.go:4 channel"}},
		{"simulator imports telegram", "bot/simulator/a.go", pkg("simulator", from+"bot/telegram"), []string{"bot/simulator/a.go:4 channel"}},
		{"bot imports a channel", "bot/a.go", pkg("bot", from+"bot/telegram"), []string{"bot/a.go:4 channel"}},
		{"stage imports stage", "tools/decode/a.go", pkg("decode", from+"tools/approve"), []string{"tools/decode/a.go:4 stage"}},
		{"agent imports a stage", "agent/a.go", pkg("agent", from+"tools/decode"), []string{"agent/a.go:4 stage"}},
		{"agent imports the chain", "agent/a.go", pkg("agent", from+"tools/chain"), []string{"agent/a.go:4 stage"}},
		{"a test of a stage builds a chain", "tools/approve/a_test.go", pkg("approve_test", from+"tools/chain"), nil},
		{"approval imports another stage", "bot/approval/a.go", pkg("approval", from+"tools/decode"), []string{"bot/approval/a.go:4 stage"}},
		{"a command imports the engine", "bot/approval/a.go", pkg("approval", from+"bot/dispatch"), []string{"bot/approval/a.go:4 engine"}},
		{"a test imports the engine", "bot/approval/a_test.go", pkg("approval_test", from+"bot/dispatch"), []string{"bot/approval/a_test.go:4 engine"}},
		{"the wiring imports the engine", "cmd/internal/app/a.go", pkg("app", from+"bot/dispatch"), nil},
		{"a test above the tools builds a chain", "agent/a_test.go", pkg("agent_test", from+"tools/decode"), nil},
		{"a test imports a stage", "tools/a_test.go", pkg("tools_test", from+"tools/decode"), []string{"tools/a_test.go:4 stage"}},
		{"the program imports what is for tests", "bot/a.go", pkg("bot", from+"tools/toolstest"), []string{"bot/a.go:4 tests"}},
		{"telegram imports its fake", "bot/telegram/a.go", pkg("telegram", from+"bot/telegram/telegramtest"), []string{"bot/telegram/a.go:4 tests"}},
		{"a model that nobody pays for", "bot/a.go", "// Package bot is an example.\npackage bot\n\nimport \"example.org/m/agent/llm\"\n\nvar a llm.Provider\n", []string{"bot/a.go:6 money"}},
		{"embeddings under another name", "bot/a.go", "// Package bot is an example.\npackage bot\n\nimport x \"example.org/m/agent/llm\"\n\nvar a x.Embedder\n", []string{"bot/a.go:6 money"}},
		{"a model in a test", "bot/a_test.go", "package bot_test\n\nimport \"example.org/m/agent/llm\"\n\nvar a llm.Provider\n", nil},
		{"the wiring holds a model", "cmd/internal/app/a.go", "// Package app is an example.\npackage app\n\nimport \"example.org/m/agent/llm\"\n\nvar a llm.Provider\n", nil},
		{"the wiring asks a model", "cmd/internal/app/a.go", pkg("app") + "\nvar a = b.Chat()\n", []string{"cmd/internal/app/a.go:5 money"}},
		{"the turn asks a model elsewhere", "agent/a.go", pkg("agent") + "\nvar a = b.c.Embed()\n", []string{"agent/a.go:5 money"}},
		{"the turn asks its model", "agent/ask.go", pkg("agent") + "\nvar a = b.Chat()\n", nil},
		{"go-telegram", "bot/a.go", pkg("bot", "github.com/go-telegram/bot"), []string{"bot/a.go:4 client"}},
		{"go-telegram in a test", "bot/a_test.go", pkg("bot_test", "github.com/go-telegram/bot/models"), []string{"bot/a_test.go:4 client"}},
		{"go-openai", "agent/a.go", pkg("agent", "github.com/sashabaranov/go-openai"), []string{"agent/a.go:4 client"}},
		{"go-redis", "bot/a.go", pkg("bot", "github.com/redis/go-redis/v9"), []string{"bot/a.go:4 client"}},
		{"miniredis", "bot/a_test.go", pkg("bot_test", "github.com/alicebob/miniredis/v2"), []string{"bot/a_test.go:4 client"}},
		{"qdrant", "persistence/vector/a.go", pkg("vector", "github.com/qdrant/go-client/qdrant"), []string{"persistence/vector/a.go:4 client"}},
		{"viper", "cmd/internal/app/a.go", pkg("app", "github.com/spf13/viper"), []string{"cmd/internal/app/a.go:4 client"}},
		{"goquery", "tools/a.go", pkg("tools", "github.com/PuerkitoBio/goquery"), []string{"tools/a.go:4 client"}},
		{"mcp", "tools/a.go", pkg("tools", "github.com/modelcontextprotocol/go-sdk/mcp"), []string{"tools/a.go:4 client"}},
		{"sqlite", "persistence/vector/a.go", pkg("vector", "modernc.org/sqlite"), []string{"persistence/vector/a.go:4 client"}},
		{"goose", "persistence/a.go", pkg("persistence", "github.com/pressly/goose/v3"), []string{"persistence/a.go:4 client"}},
		{"cobra", "cmd/internal/app/a.go", pkg("app", "github.com/spf13/cobra"), []string{"cmd/internal/app/a.go:4 client"}},
		{"vague directory", "tools/util/a.go", pkg("util"), []string{"tools/util:0 name"}},
		{"vague package", "tools/b/a.go", pkg("helpers"), []string{"tools/b:0 name"}},
		{"no package comment", "tools/b/a.go", "package b\n", []string{"tools/b:0 comment"}},
		{"detached comment", "tools/b/a.go", "// Package b is an example.\n\npackage b\n", []string{"tools/b:0 comment"}},
		{"unknown directory", "pkg/a.txt", "", []string{"pkg/a.txt:0 directory"}},
		{"init", "tools/a.go", pkg("tools") + "\nfunc init() {}\n", []string{"tools/a.go:5 init"}},
		{"a method called init", "tools/a.go", pkg("tools") + "\ntype a int\n\nfunc (a) init() {}\n", nil},
		{"unfinished", "tools/a.go", pkg("tools") + "\n// TODO(me): later\n", []string{"tools/a.go:5 unfinished"}},
		{"unfinished in a body", "tools/a.go", pkg("tools") + "\nfunc a() {\n\t_ = 1 // FIXME\n}\n", []string{"tools/a.go:6 unfinished"}},
		{"the word as data", "tools/a.go", pkg("tools") + "\nvar a = \"TODO\"\n", nil},
		{"unfinished script", ".ci/x", "true\ntrue # TODO: later\n", []string{".ci/x:2 unfinished"}},
		{"place outside", "docs/a.md", "\nsee ../" + "shared/spec/x.md\n", []string{"docs/a.md:2 foreign"}},
		{"place of a machine", "tools/a.go", pkg("tools") + "\n// in /" + "work/main/x\n", []string{"tools/a.go:5 foreign"}},
		{"a path beside", "tools/a.go", pkg("tools") + "\nvar a = \"../shared/a\"\n", nil},
		{"a path that is only like it", "tools/a.go", pkg("tools") + "\nvar a = \"/work/a\"\n", nil},
		{"a split key", "bot/x/a.go", pkg("x", "strings") + "\nvar a = strings.SplitN(b, \"/\", 4)\n", []string{"bot/x/a.go:6 key"}},
		{"a split key in the wiring", "cmd/internal/app/a.go", pkg("app") + "\nvar a = strings.Split(b, \"/\")\n", []string{"cmd/internal/app/a.go:5 key"}},
		{"where keys are read", "bot/session.go", pkg("bot") + "\nvar a = strings.Split(b, \"/\")\n", nil},
		{"a split text", "bot/a.go", pkg("bot") + "\nvar a = strings.Split(b, \"\\n\")\n", nil},
		{"a split path elsewhere", "tools/a.go", pkg("tools") + "\nvar a = strings.Split(b, \"/\")\n", nil},
		{"syntax", "tools/a.go", "package\n", []string{"tools/a.go:0 syntax"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			files := clean()
			files[tt.file] = tt.text
			var got []string
			for _, p := range check(t, files) {
				got = append(got, fmt.Sprintf("%s:%d %s", p.File, p.Line, p.Rule))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestDepth lays packages below each other: seven below the wiring are allowed, eight are not; and what stands above
// the wiring does not count.
func TestDepth(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		below int
		want  []string
	}{
		{10, nil},
		{11, []string{"cmd/internal/app depth"}},
		{12, []string{"cmd/internal/app depth", "tools/p1 depth"}},
	} {
		t.Run(fmt.Sprint(tt.below), func(t *testing.T) {
			t.Parallel()
			files := map[string]string{
				"go.mod":                     "module example.org/m\n",
				"cmd/internal/app/app.go":    pkg("app", "example.org/m/tools/p1", "example.org/m/tools/p3"),
				"cmd/internal/app/a_test.go": pkg("app_test", "example.org/m/tools/far"),
				"cmd/internal/cli/cli.go":    pkg("cli", "example.org/m/cmd/internal/app"),
				"cmd/zephbot/main.go":        pkg("main", "example.org/m/cmd/internal/cli"),
			}
			for i := range tt.below {
				var next []string
				if i+1 < tt.below {
					next = []string{fmt.Sprintf("example.org/m/tools/p%d", i+2)}
				}
				name := fmt.Sprintf("p%d", i+1)
				files["tools/"+name+"/"+name+".go"] = pkg(name, next...)
			}
			var got []string
			for _, p := range check(t, files) {
				got = append(got, p.File+" "+p.Rule)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestProblemSaysWhereAndWhat pins the line that a person reads.
func TestProblemSaysWhereAndWhat(t *testing.T) {
	t.Parallel()
	files := clean()
	files["bot/a.go"] = pkg("bot", "example.org/m/persistence/sql")
	files["tools/b/a.go"] = "package b\n"
	var got []string
	for _, p := range check(t, files) {
		got = append(got, p.String())
	}
	want := []string{
		"bot/a.go:4: layer: bot imports persistence/sql; allowed is policy ← tools ← agent ← bot ← persistence ← cmd. Declare a small interface and let cmd plug it in",
		"tools/b: comment: the package has no comment; say in a sentence what it is for",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestTreeThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		tree fstest.MapFS
		want string
	}{
		{"no go.mod", fstest.MapFS{}, "find the module: "},
		{"no module line", fstest.MapFS{"go.mod": {Data: []byte("go 1.26\n")}}, "find the module: go.mod has no module line"},
		{"a directory is named as a file", fstest.MapFS{"go.mod": {Data: []byte("module m\n")}, "tools/a.go": {Mode: fs.ModeDir}}, "read the tree: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := archtest.Check(tt.tree, []string{"tools/a.go"})
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("Check: %v, want %q", err, tt.want)
			}
		})
	}
}

// TestDeletedFile: git still lists what was deleted and not yet committed.
func TestDeletedFile(t *testing.T) {
	t.Parallel()
	got, err := archtest.Check(fstest.MapFS{"go.mod": {Data: []byte("module m\n")}}, []string{"go.mod", "gone.go"})
	if err != nil || got != nil {
		t.Errorf("Check = %v, %v", got, err)
	}
}
