package bench_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/openai"

	"github.com/zephbot/zephbot/agent/recall"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/persistence/sql/points"
	"github.com/zephbot/zephbot/persistence/vector"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/code"
	"github.com/zephbot/zephbot/tools/file"
)

// repository is a module of the module cache that is searched: its Go files without tests and examples.
type repository struct {
	module string
	files  *regexp.Regexp // those that are measured
}

// searched are the repositories of the questions. Of the larger one, the files of its commands are left out: they are alike,
// and most of it. Of the smaller one, most types of the Bot API are.
func searched() map[string]repository {
	return map[string]repository{
		"bot": {"github.com/go-telegram/bot@v1.27.0", regexp.MustCompile(`^([a-ln-z]\w*|methods|models/(reply|input_media|update|union))\.go$`)},
		"redis": {"github.com/redis/go-redis/v9@v9.23.0", regexp.MustCompile(
			`^(internal/.*|(options|error|osscluster|ring|sentinel|pubsub|tx|script|iterator|universal|redis|dial_retry_backoff|vectorset_commands)\.go)$`)},
	}
}

// asked is a line of questions.txt.
type asked struct {
	repo, kind, text string
	want             []string // file:symbol
}

// questions reads testdata/search/questions.txt.
func questions(t *testing.T, repos []string) (list []asked) {
	t.Helper()
	f, err := os.Open("testdata/search/questions.txt")
	check(t, err)
	defer func() { check(t, f.Close()) }()
	line := regexp.MustCompile(`^(\w+) ([dnq]): (.+) -> (.+)$`)
	for s := bufio.NewScanner(f); s.Scan(); {
		if m := line.FindStringSubmatch(s.Text()); m != nil && slices.Contains(repos, m[1]) {
			list = append(list, asked{m[1], m[2], m[3], strings.Split(m[4], " or ")})
		}
	}
	if len(list) == 0 {
		t.Fatalf("there are no questions about %q", repos)
	}
	return list
}

// found is where something is.
type found struct {
	path       string
	start, end int
}

// corpus is a copy of a repository, with its index.
type corpus struct {
	root    string
	without *code.Index // structure alone
	whole   *code.Index // with passages by meaning
	near    *recall.Code
}

// TestSearchRecall measures how often the answer is among the first five results, for each layer of search_code and for
// the whole. ZEPH_EMBED is the address of an embedding server, such as http://127.0.0.1:8093/v1 (testdata/search/embed.mjs),
// or "none" for the layers that need none; ZEPH_EMBED_DIR keeps the vectors between two runs, and ZEPH_EMBED_REPO selects
// one repository.
func TestSearchRecall(t *testing.T) {
	server := os.Getenv("ZEPH_EMBED")
	if server == "" {
		t.Skip("ZEPH_EMBED names no embedding server; see docs/search.md")
	}
	dir := os.Getenv("ZEPH_EMBED_DIR")
	if dir == "" {
		dir = t.TempDir()
	}
	layers := []string{"structural", "grep"}
	var index *recall.Index
	if server != "none" {
		layers = []string{"structural", "grep", "semantic", "whole"}
		index = embedding(t, server, filepath.Join(dir, "vectors.db"))
	}
	repos := slices.Sorted(maps.Keys(searched()))
	if only := os.Getenv("ZEPH_EMBED_REPO"); only != "" {
		repos = []string{only}
	}
	all := map[string]*corpus{}
	for _, name := range repos {
		all[name] = prepare(t, filepath.Join(dir, name), searched()[name], index)
	}
	ask := map[string]func(*corpus, string) []found{
		"structural": func(c *corpus, q string) []found { return answers(t, c.without, q, "structural") },
		"grep":       func(c *corpus, q string) []found { return grepped(t, c.root, q) },
		"semantic":   func(c *corpus, q string) []found { return nearest(t, c, q) },
		"whole":      func(c *corpus, q string) []found { return answers(t, c.whole, q, "") },
	}
	right, total, took := map[string]int{}, map[string]int{}, map[string]time.Duration{}
	for _, q := range questions(t, repos) {
		c := all[q.repo]
		var line strings.Builder
		for _, layer := range layers {
			began := time.Now()
			hits := ask[layer](c, q.text)
			took[layer] += time.Since(began)
			at := rankOf(t, c.root, hits, q.want)
			for _, group := range []string{"all", q.repo, q.kind} {
				total[layer+" "+group]++
				if at > 0 && at <= 5 {
					right[layer+" "+group]++
				}
			}
			fmt.Fprintf(&line, "%s %d  ", layer, at)
		}
		t.Logf("%s %s: %s | %s", q.repo, q.kind, line.String(), q.text)
	}
	for _, layer := range layers {
		var line strings.Builder
		for _, group := range append([]string{"all", "d", "n", "q"}, repos...) {
			key := layer + " " + group
			fmt.Fprintf(&line, "%s %d/%d = %.2f  ", group, right[key], total[key], float64(right[key])/float64(total[key]))
		}
		t.Logf("recall@5 %-10s %s mean %v", layer, line.String(), (took[layer] / time.Duration(total[layer+" all"])).Round(time.Microsecond*100))
	}
}

// embedding returns an index of texts over the server.
func embedding(t *testing.T, server, path string) *recall.Index {
	t.Helper()
	provider, err := openai.New(openai.Options{Name: "embed", BaseURL: server, EmbeddingModel: "universal-sentence-encoder-lite", Now: time.Now, Log: zerolog.Nop()})
	check(t, err)
	rows := points.New(path, zerolog.Nop())
	t.Cleanup(func() { check(t, rows.Close()) })
	store, err := vector.Open(vector.Options{Points: nothing{}, Rows: rows, Log: zerolog.Nop()})
	check(t, err)
	index, err := recall.New(recall.Options{
		Name: "code", Spaces: store.Spaces(), Model: "universal-sentence-encoder-lite",
		Embedder: spend.NewEmbedder(provider, spend.Cost{}, nil), Log: zerolog.Nop(),
	})
	check(t, err)
	return index
}

// nothing stores no vectors of tools.
type nothing struct{ vector.Points }

// prepare copies a module and indexes it.
func prepare(t *testing.T, dir string, of repository, index *recall.Index) *corpus {
	t.Helper()
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	check(t, err)
	from := filepath.Join(strings.TrimSpace(string(cache)), of.module)
	check(t, filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{"examples", "example", "testdata", "doctests", "fuzz", "extra", "dockers"}, d.Name()) {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(dir, name), 0o700)
		}
		if !of.files.MatchString(filepath.ToSlash(name)) || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), content, 0o600)
	}))
	root, err := filepath.EvalSymlinks(dir)
	check(t, err)
	sources, err := file.NewSources(file.Options{Workspace: func(tools.Origin) (string, error) { return root, nil }})
	check(t, err)
	c := &corpus{root: root}
	c.without, err = code.New(code.Options{Sources: sources, Log: zerolog.Nop()})
	check(t, err)
	check(t, c.without.Refresh(t.Context(), root, nil))
	if index == nil {
		return c
	}
	c.near = recall.NewCode(recall.CodeOptions{Index: index, Passages: c.without.Passages, Log: zerolog.New(os.Stderr)})
	c.whole, err = code.New(code.Options{Sources: sources, Semantic: c.near, Log: zerolog.Nop()})
	check(t, err)
	check(t, c.whole.Refresh(t.Context(), root, nil))
	check(t, c.near.Sync(cost.WithPayer(t.Context(), cost.Unlimited{}), root))
	return c
}

// answers calls the tool.
func answers(t *testing.T, x *code.Index, q, source string) (list []found) {
	t.Helper()
	tool, err := x.Tool()
	check(t, err)
	args := map[string]any{"query": q}
	if fields := strings.Fields(q); len(fields) == 1 {
		args = map[string]any{"symbol": q}
	}
	raw, err := json.Marshal(args)
	check(t, err)
	result, err := tool.Run(cost.WithPayer(context.WithoutCancel(t.Context()), cost.Unlimited{}), &tools.Call{Tool: code.ToolName, Args: raw, Trail: &tools.Trail{}})
	check(t, err)
	text, err := json.Marshal(result.Raw)
	check(t, err)
	var read struct {
		Results []struct {
			Path   string `json:"file_path"`
			Start  int    `json:"line_start"`
			End    int    `json:"line_end"`
			Source string `json:"source"`
		} `json:"results"`
	}
	check(t, json.Unmarshal(text, &read))
	for _, r := range read.Results {
		if source == "" || r.Source == source {
			list = append(list, found{r.Path, r.Start, r.End})
		}
	}
	return list
}

// nearest asks the passages alone.
func nearest(t *testing.T, c *corpus, q string) (list []found) {
	t.Helper()
	hits, err := c.near.Near(cost.WithPayer(t.Context(), cost.Unlimited{}), c.root, q, 10)
	check(t, err)
	for _, h := range hits {
		list = append(list, found{h.Path, h.Start, h.End})
	}
	return list
}

// grepped looks for the words of a question in every line, as somebody does who greps for them one after the other: the
// lines with the most different words come first.
func grepped(t *testing.T, root, q string) []found {
	t.Helper()
	if quoted := strings.Trim(q, `"`); quoted != q {
		q = quoted
	}
	words := regexp.MustCompile(`[\pL\pN_-]{4,}`).FindAllString(strings.ToLower(q), -1)
	type line struct {
		found
		words int
	}
	var lines []line
	check(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		for n, text := range strings.Split(strings.ToLower(string(content)), "\n") {
			count := 0
			for _, w := range words {
				if strings.Contains(text, w) {
					count++
				}
			}
			if count > 0 {
				lines = append(lines, line{found{name, n + 1, n + 1}, count})
			}
		}
		return err
	}))
	slices.SortStableFunc(lines, func(a, b line) int { return b.words - a.words })
	var list []found
	for _, l := range lines[:min(10, len(lines))] {
		list = append(list, l.found)
	}
	return list
}

// rankOf returns the position of the first result that shows one of the wanted symbols; 0 = none does. A result shows a
// symbol if it overlaps its declaration, from the line with its name to the end of its body.
func rankOf(t *testing.T, root string, hits []found, want []string) int {
	t.Helper()
	for i, h := range hits {
		for _, w := range want {
			path, symbol, _ := strings.Cut(w, ":")
			if h.path != path {
				continue
			}
			for _, at := range declared(t, filepath.Join(root, path), symbol) {
				if h.start <= at.end && h.end >= at.start {
					return i + 1
				}
			}
		}
	}
	return 0
}

// declared returns the lines of a symbol in a Go file.
func declared(t *testing.T, path, symbol string) (list []found) {
	t.Helper()
	content, err := os.ReadFile(path)
	check(t, err)
	begin := regexp.MustCompile(`^(func (\([^)]*\) )?|type |var |const |\t)` + regexp.QuoteMeta(symbol) + `\b`)
	lines := strings.Split(string(content), "\n")
	for i, text := range lines {
		if !begin.MatchString(text) {
			continue
		}
		end := i
		if strings.HasSuffix(text, "{") && !strings.HasPrefix(text, "\t") {
			for end+1 < len(lines) && !strings.HasPrefix(lines[end], "}") {
				end++
			}
		}
		list = append(list, found{path, i + 1, end + 1})
	}
	if len(list) == 0 {
		t.Errorf("%s does not declare %s", path, symbol)
	}
	return list
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
