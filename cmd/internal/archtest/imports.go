package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// The layers, in the order in which they may be imported: policy by all, cmd by none.
var layers = []string{"policy", "tools", "agent", "bot", "persistence", "cmd"}

// channels are the ways in which people reach the bot. They share bot, but do not import each other.
var channels = []string{"bot/telegram", "bot/terminal", "bot/simulator", "bot/acp"}

// simulatorsFake is the one package of another channel that the simulator uses.
const simulatorsFake = "bot/telegram/telegramtest"

// stages are the packages with steps of the chain, and the chain, which has the small ones. Who imports them could
// build a second chain around the first.
var stages = []string{"chain", "audit", "decode", "approve", "cache", "overflow", "filter", "anomaly"}

// engine runs turns. What takes part in a turn keeps the contract (bot/turn) and does not know who runs it; only cmd,
// which wires, does.
const engine = "bot/dispatch"

// questioners put questions to people and read their decisions, whose type the stage "approve" has.
var questioners = []string{"bot/approval", "bot/servers"}

// stageUsers import stages and do not build a chain: the broker shares the question's type with the stage that asks,
// the test bundle fakes approvers, persistence implements the stores that stages declare, and cmd wires.
var stageUsers = []string{"tools/chain", "tools/toolstest", "persistence", "cmd"}

// confined are third-party modules and the packages that may import them, so that replacing one touches one place.
var confined = []struct {
	module string
	homes  []string
}{
	{"github.com/go-telegram/bot", []string{"bot/telegram"}},
	{"github.com/sashabaranov/go-openai", []string{"agent/llm/openai"}},
	{"github.com/redis/go-redis", []string{"persistence/redis"}},
	{"github.com/go-redis/redis_rate", []string{"persistence/redis"}},
	{"github.com/bsm/redislock", []string{"persistence/redis"}},
	{"github.com/alicebob/miniredis", []string{"persistence/redis"}},
	{"github.com/qdrant/go-client", []string{"persistence/vector/qdrant"}},
	{"github.com/spf13/viper", []string{"cmd/internal/config"}},
	{"github.com/PuerkitoBio/goquery", []string{"tools/web"}},
	{"github.com/fsnotify/fsnotify", []string{"tools/code/watch"}},
	{"github.com/klippa-app/go-pdfium", []string{"tools/document"}},
	{"github.com/tetratelabs/wazero", []string{"tools/document"}},
	{"github.com/richardlehane/mscfb", []string{"tools/document"}},
	{"github.com/modelcontextprotocol/go-sdk", []string{"tools/mcp"}},
	{"modernc.org/sqlite/vec", []string{"persistence/vector"}},
	{"modernc.org/sqlite", []string{"persistence/sql"}},
	{"github.com/jackc/pgx", []string{"persistence/postgres"}},
	{"github.com/pressly/goose", []string{"persistence/sql", "persistence/postgres"}},
	{"github.com/spf13/cobra", []string{"cmd/internal/cli"}},
	{"go.opentelemetry.io", []string{"cmd/internal/tracing"}},
	{"github.com/prometheus/client_golang", []string{"cmd/internal/metrics"}},
	{"golang.org/x/term", []string{"bot/terminal"}},
	{"rsc.io/qr", []string{"cmd/internal/cli"}},
	{"github.com/aymanbagabas/go-udiff", []string{"bot/terminal", "tools/file", "tools/shell/layer"}},
	{"github.com/coder/acp-go-sdk", []string{"bot/acp"}},
}

// within says whether a package is dir or below it.
func within(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

func withinAny(pkg string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return within(pkg, dir) })
}

// forTests says whether a package exists for tests: its name ends so, as in toolstest.
func forTests(pkg string) bool { return strings.HasSuffix(path.Base(pkg), "test") }

// checkImports checks each import on its own.
func checkImports(files []goFile) []Problem {
	var out []Problem
	for _, f := range files {
		for _, i := range f.imports {
			for _, rule := range []func(goFile, imported) (name, text string){
				layerRule, wireTypesRule, channelRule, stageRule, engineRule, testsRule, confinedRule,
			} {
				if name, text := rule(f, i); text != "" {
					out = append(out, Problem{File: f.name, Line: i.line, Rule: name, Text: text})
				}
			}
		}
	}
	return out
}

func layerOf(pkg string) int {
	first, _, _ := strings.Cut(pkg, "/")
	return slices.Index(layers, first)
}

// layerRule: policy ← tools ← agent ← bot ← persistence ← cmd. A test may import what exists for tests.
func layerRule(f goFile, i imported) (name, text string) {
	if i.local == "" || (f.test && forTests(i.local)) {
		return "", ""
	}
	if layerOf(i.local) > layerOf(f.dir) {
		return "layer", fmt.Sprintf("%s imports %s; allowed is %s. Declare a small interface and let cmd plug it in",
			f.dir, i.local, strings.Join(layers, " ← "))
	}
	return "", ""
}

// wireTypesRule: agent/llm, the words in which everything speaks to models, imports the standard library alone; the
// packages below it know their SDK and agent/llm, and nothing else of the project but lazily compiled patterns.
func wireTypesRule(f goFile, i imported) (name, text string) {
	if f.test || !within(f.dir, "agent/llm") {
		return "", ""
	}
	host, _, _ := strings.Cut(i.path, "/")
	switch {
	case i.local == "policy/lazyregexp":
	case i.local != "" && !within(i.local, "agent/llm"):
		return "llm", fmt.Sprintf(
			"%s imports %s; what stands below agent/llm knows only agent/llm and its SDK", f.dir, i.local,
		)
	case f.dir == "agent/llm" && strings.Contains(host, "."):
		return "llm", fmt.Sprintf("agent/llm imports %s; it is for the standard library only", i.path)
	}
	return "", ""
}

// channelRule: channels do not import each other, nor does anything below cmd import two.
func channelRule(f goFile, i imported) (name, text string) {
	at := slices.IndexFunc(channels, func(c string) bool { return within(i.local, c) })
	if at < 0 || within(f.dir, channels[at]) || within(f.dir, "cmd") || (f.test && forTests(i.local)) {
		return "", ""
	}
	if within(f.dir, "bot/simulator") && i.local == simulatorsFake {
		return "", ""
	}
	return "channel", fmt.Sprintf("%s imports the channel %s; what both need belongs into bot", f.dir, channels[at])
}

// stageRule: only tools/chain imports the stages, and only cmd the chain.
func stageRule(f goFile, i imported) (name, text string) {
	stage, ok := strings.CutPrefix(i.local, "tools/")
	stage, _, _ = strings.Cut(stage, "/")
	if !ok || !contains(stages, stage) || within(f.dir, "tools/"+stage) || withinAny(f.dir, stageUsers) {
		return "", ""
	}
	if stage == "approve" && contains(questioners, f.dir) {
		return "", ""
	}
	// A test of what uses the chain fills in what the stages ask for, such as a policy that allows; one of a stage puts
	// it into a chain.
	if f.test && (!within(f.dir, "tools") || stage == "chain") {
		return "", ""
	}
	return "stage", fmt.Sprintf("%s imports the stage %s; only tools/chain puts stages together", f.dir, i.local)
}

// engineRule: nobody but cmd imports the engine.
func engineRule(f goFile, i imported) (name, text string) {
	if i.local != engine || within(f.dir, engine) || within(f.dir, "cmd") {
		return "", ""
	}
	return "engine", fmt.Sprintf("%s imports %s; the contract of a turn is bot/turn", f.dir, engine)
}

// testsRule: what exists for tests is not part of the program, but for the fake that the simulator shows.
func testsRule(f goFile, i imported) (name, text string) {
	if i.local == "" || f.test || !forTests(i.local) || forTests(f.dir) {
		return "", ""
	}
	if within(f.dir, "bot/simulator") && i.local == simulatorsFake {
		return "", ""
	}
	return "tests", fmt.Sprintf("%s imports %s, which exists for tests", f.dir, i.local)
}

// confinedRule: each third-party client lives in one place. The first entry that fits decides.
func confinedRule(f goFile, i imported) (name, text string) {
	for _, c := range confined {
		if !within(i.path, c.module) {
			continue
		}
		if withinAny(f.dir, c.homes) {
			return "", ""
		}
		return "client", fmt.Sprintf("%s imports %s; that is for %s alone", f.dir, i.path, strings.Join(c.homes, ", "))
	}
	return "", ""
}
