package app

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/toolschema"
	"github.com/zephbot/zephbot/agent/llm/toolschema/schematest"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools/overflow"
)

// TestSays pins what the tools of the service say of themselves: much follows from it, above all what runs without
// asking. Every tool that is registered says something, and nobody speaks for a tool that there is not.
func TestSays(t *testing.T) {
	t.Parallel()
	want := map[string]act.Act{
		"bash": act.Runs, "read": act.ReadsFile, "write": act.WritesFile, "edit": act.WritesFile, "find_path": act.Searches, "grep": act.Searches,
		"list_directory": act.Searches, "create_directory": act.MakesDirectory, "delete_path": act.RemovesPath, "move_path": act.MovesPath,
		"copy_path": act.CopiesPath, "send_file": act.ShowsFile, "fetch": act.ReadsWeb, "web_scrape": act.ReadsWeb, "read_overflow": act.Recalls, "tool_search": act.Recalls, "delegate": act.Delegates, "use_skill": act.Recalls,
		"search_code": act.Inspects,
		"memory_save": act.Remembers, "memory_search": act.Recalls, "memory_forget": act.Remembers, "web_search": act.ReadsWeb, "diagnostics": act.Runs,
		"schedule_periodic": act.Keeps, "schedule_deferred": act.Keeps, "list_tasks": act.Recalls, "cancel_task": act.Keeps,
	}
	got, cached := map[string]act.Act{}, []string{}
	for _, tool := range builtins() {
		if got[tool.Name] = tool.Act; tool.Cache != act.NotCached {
			cached = append(cached, tool.Name+" "+string(tool.Cache))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}
	slices.Sort(cached)
	if diff := cmp.Diff(strings.Split("fetch web,find_path file,grep file,list_directory file,read file,search_code file,web_scrape web,web_search web", ","), cached); diff != "" {
		t.Errorf("cached (-want +got):\n%s", diff)
	}
	b := sayingBench(t)
	for _, def := range b.Definitions() {
		if def.Says == nil || def.ReadOnly != (def.Stated().Act.Quiet() || def.Stated().Act == act.ReadsWeb) {
			t.Errorf("%s says %+v, read only: %t", def.Name, def.Says, def.ReadOnly)
		}
		delete(got, def.Name)
	}
	delete(got, overflow.ToolName) // registered where outputs are kept
	delete(got, catalog.SearchName)
	if len(got) > 0 {
		t.Errorf("no such tools: %v", got)
	}
}

// TestSchemasAreTaken: no built-in tool goes to any server with a schema because of which it would refuse every request.
func TestSchemasAreTaken(t *testing.T) {
	t.Parallel()
	defs := slices.Clone(sayingBench(t).Definitions())
	search, err := new(catalog.Catalog).SearchTool()
	if err != nil {
		t.Fatal(err)
	}
	read, err := overflow.Tool(overflow.Options{Store: &overflow.Memory{}})
	if err != nil {
		t.Fatal(err)
	}
	servers, err := dialect.All()
	if err != nil {
		t.Fatal(err)
	}
	servers = append(servers, dialect.Dialect{Name: "unknown"})
	for _, d := range append(defs, search.Definition, read.Definition) {
		for i := range servers {
			description, sent, _ := toolschema.Tool(d.Description, d.Schema, &servers[i].Schema)
			if faults := schematest.Faults(sent, &servers[i].Schema); len(faults) > 0 {
				t.Errorf("%s refuses %s: %v", servers[i].Name, d.Name, faults)
			}
			if !strings.HasPrefix(description, d.Description) && len(d.Description) <= toolschema.MaxDescription {
				t.Errorf("%s is described to %s as %q", d.Name, servers[i].Name, description)
			}
		}
	}
}

// TestThinkingIsForForeignTools measures the built-in tools: none is as complex as the default of tools.tafc asks for, and
// docs/parity.md says so. What the default is for are tools of servers such as the last two.
func TestThinkingIsForForeignTools(t *testing.T) {
	t.Parallel()
	const threshold = 0.6
	most := map[string]float64{}
	for _, d := range sayingBench(t).Definitions() {
		if c := catalog.Complexity(d.Schema); c >= threshold/2 {
			most[d.Name] = c
		}
	}
	if diff := cmp.Diff(map[string]float64{"schedule_periodic": 0.35, "edit": 0.3}, most); diff != "" {
		t.Errorf("the most complex tools (-want +got):\n%s", diff)
	}
	for name, schema := range map[string]string{
		"push files":  `{"type":"object","properties":{"owner":{"type":"string"},"repo":{"type":"string"},"branch":{"type":"string"},"message":{"type":"string"},"files":{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}}},"required":["owner","repo","branch","message","files"]}`,
		"make a page": `{"type":"object","properties":{"parent":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]},"children":{"type":"array","items":{"type":"object","properties":{"rich_text":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"}}}}}}}},"required":["parent"]}`,
	} {
		if c := catalog.Complexity([]byte(schema)); c < threshold {
			t.Errorf("%s: %v", name, c)
		}
	}
}

func sayingBench(t *testing.T) *Bench {
	t.Helper()
	dir := t.TempDir()
	cfg, err := config.Load(config.Source{WorkDir: dir, Home: dir, Env: []string{"ZEPH_DATA_DIR=" + filepath.Join(dir, "data"), "ZEPH_TELEGRAM_ALLOWED_TOOLS=shell,read_file", "ZEPH_SKILLS_PATHS=" + dir, "ZEPH_WEB_SEARCH_BACKEND=searxng", "ZEPH_WEB_SEARCH_URL=http://127.0.0.1:8080"}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenBench(Options{Config: cfg, Log: zerolog.Nop(), WorkDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// TestAliases: the configuration knows the aliases that the tools state, and an allow-list may use them.
func TestAliases(t *testing.T) {
	t.Parallel()
	b := sayingBench(t)
	for _, tool := range builtins() {
		for _, alias := range tool.Aliases {
			if problem, _ := b.core.cfg.ToolProblem(alias, false); problem.Known() {
				t.Errorf("%s of %s: %s", alias, tool.Name, problem)
			}
			if got := b.core.policy.Canonical(alias); got != tool.Name {
				t.Errorf("%s is taken for %s", alias, got)
			}
		}
	}
	if got := accessOptions(b.core, "1").AllowedTools; !slices.Equal(got, []string{"bash", "read"}) {
		t.Errorf("allowed tools %v", got)
	}
}

// mayName are the directories whose code may name tools: their own packages, the configuration, what speaks in the
// place of a model or reads its language, and those where the same words mean something else.
var mayName = []string{
	"tools/delegate/",
	"tools/diagnostics/diagnostics.go", "tools/skill/tool.go", "tools/file/", "tools/web/", "tools/shell/", "tools/overflow/", "tools/schedule/", "agent/catalog/search.go", "bot/memory/tools.go", "tools/code/tool.go", // their own
	"tools/code/outline/", // a language
	"cmd/internal/config/",
	"agent/llm/offline/", "agent/llm/fenced/", // a model, and the fences of one
	"policy/act/", "policy/reason/", // the verbs, and the sentences about them
	"policy/command/", "tools/filter/", // programs that a shell runs
	"persistence/",       // what is done to a database
	"bot/quota/",         // names of a suite
	"tools/mcp/mcptest/", // what a server tries

	"bot/acp/outside.go", "cmd/internal/app/doctor_machine.go", // the program that runs commands

	"cmd/internal/cli/audit_filter.go", // a flag
}

// TestNobodyKnowsTools: no code outside mayName has the name of a tool in it. What has to be known of a tool is asked
// of its statement.
func TestNobodyKnowsTools(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, tool := range builtins() {
		names[tool.Name] = true
		for _, alias := range tool.Aliases {
			names[alias] = alias != "shell" // a component of the log, a section of the configuration
		}
	}
	const root = "../../.."
	files := 0
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || slices.ContainsFunc(mayName, func(p string) bool { return strings.HasPrefix(path, p) }) ||
			strings.Contains(path, "test/") {
			return nil
		}
		files++
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(root, path), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			if text, err := strconv.Unquote(lit.Value); err == nil && names[text] {
				t.Errorf("%s knows the tool %s by name", fset.Position(lit.Pos()), text)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 200 {
		t.Errorf("only %d files were looked at", files)
	}
}
