package app

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
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
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/texts/languages"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools/code"
	"github.com/zephbot/zephbot/tools/overflow"
)

// TestSays: every tool that is registered says something of itself, and nobody speaks for a tool that there is not. What
// each says is pinned by the tests of its package.
func TestSays(t *testing.T) {
	t.Parallel()
	said := map[string]bool{}
	for _, p := range toolPackages() {
		list := p.says()
		if len(list) == 0 {
			t.Error("a package of the list has no tool")
		}
		for _, tool := range list {
			said[tool.Name] = p.build != nil || tool.Name == code.ToolName
		}
	}
	for _, def := range sayingBench(t).Definitions() {
		if def.Says == nil || def.ReadOnly != (def.Stated().Act.Quiet() || def.Stated().Act == act.ReadsWeb) {
			t.Errorf("%s says %+v, read only: %t", def.Name, def.Says, def.ReadOnly)
		}
		if _, known := said[def.Name]; !known {
			t.Errorf("%s is in no package of the list", def.Name)
		}
		delete(said, def.Name)
	}
	for name, built := range said {
		if built {
			t.Errorf("there is no tool %s", name)
		}
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
	if diff := cmp.Diff(map[string]float64{"ask_user": 0.55, "update_plan": 0.59, "schedule_periodic": 0.35, "edit": 0.3}, most); diff != "" {
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

// TestPeopleReadWhatToolsAreFor: /tools has words of the bot for each of its own tools, in every language, and never those
// that are for models.
func TestPeopleReadWhatToolsAreFor(t *testing.T) {
	t.Parallel()
	for _, d := range sayingBench(t).Definitions() {
		for _, language := range languages.Tags() {
			list := texts.Words{}.Tools(language, []texts.Tool{{Name: d.Name, Offered: "for models"}})
			if strings.Contains(list, "for models") {
				t.Errorf("%s: commands.tools has no %s", language, d.Name)
			}
		}
	}
}

func sayingBench(t *testing.T) *Bench {
	t.Helper()
	dir := t.TempDir()
	cfg, err := config.Load(config.Source{Tools: Tools(), WorkDir: dir, Home: dir, Env: []string{"ZEPH_DATA_DIR=" + filepath.Join(dir, "data"), "ZEPH_TELEGRAM_ALLOWED_TOOLS=shell,read_file", "ZEPH_SKILLS_PATHS=" + dir, "ZEPH_WEB_SEARCH_BACKEND=searxng", "ZEPH_WEB_SEARCH_URL=http://127.0.0.1:8080", "ZEPH_LLM_PROVIDERS_MAIN_MODEL=m", "ZEPH_LLM_PROVIDERS_MAIN_API_KEY=k", "ZEPH_LLM_PROVIDERS_MAIN_IMAGE_MODEL=gpt-image-1"}})
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
	for _, tool := range Tools() {
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

// mayName are the directories whose code may name tools, besides the packages of toolPackages: the configuration, what
// speaks in the place of a model or reads its language, and those where the same words mean something else.
var mayName = []string{
	"tools/code/outline/", // a language
	"cmd/internal/config/",
	"agent/llm/offline/", "agent/llm/fenced/", // a model, and the fences of one
	"policy/act/", "policy/reason/", // the verbs, and the sentences about them
	"policy/command/", "tools/filter/", // programs that a shell runs
	"persistence/",       // what is done to a database
	"bot/quota/",         // names of a suite
	"tools/mcp/mcptest/", // what a server tries

	"bot/acp/outside.go", "cmd/internal/doctor/machine.go", // the program that runs commands

	"cmd/internal/cli/completion.go",   // a shell that is completed
	"cmd/internal/cli/audit_filter.go", // a flag
}

// ownDirectories are those of the packages of toolPackages.
func ownDirectories() []string {
	var list []string
	for _, p := range toolPackages() {
		name := runtime.FuncForPC(reflect.ValueOf(p.says).Pointer()).Name() // such as …/tools/web.Says
		list = append(list, strings.TrimSuffix(strings.TrimPrefix(name, "github.com/zephbot/zephbot/"), ".Says")+"/")
	}
	return list
}

// TestNobodyKnowsTools: no code outside mayName and their own packages has the name of a tool in it. What has to be known of a tool is asked
// of its statement.
func TestNobodyKnowsTools(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, tool := range Tools() {
		names[tool.Name] = true
		for _, alias := range tool.Aliases {
			names[alias] = alias != "shell" // a component of the log, a section of the configuration
		}
	}
	const root = "../../.."
	allowed := append(ownDirectories(), mayName...)
	files := 0
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || slices.ContainsFunc(allowed, func(p string) bool { return strings.HasPrefix(path, p) }) ||
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
