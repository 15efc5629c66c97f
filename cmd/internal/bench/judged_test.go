package bench_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/code"
	"github.com/zephbot/zephbot/tools/code/outline"
	"github.com/zephbot/zephbot/tools/file"
)

// Limits of the questions that are made by machine.
const (
	askedPerCorpus = 400 // about
	leastWords     = 4   // of a question
	mostFiles      = 4   // that a commit changed: of one with more, the subject says nothing about a file
)

// question is a sentence somebody wrote about code without thinking of a search, and where that code is.
type question struct {
	text       string
	path       string // of the declaration
	start, end int    // its lines; 0 = anything in one of files
	files      []string
}

// answeredBy reports whether a result is what the question is about.
func (q *question) answeredBy(f found) bool {
	if q.start == 0 {
		return slices.Contains(q.files, f.path)
	}
	return f.path == q.path && f.start <= q.end && f.end >= q.start
}

// judged is a directory with questions about it.
type judged struct {
	language, name string
	root           string
	questions      []question
}

// TestSearchJudged measures search_code without embeddings on questions that nobody wrote for it, beside plain BM25 over
// the same declarations. There are two kinds: first sentences of doc comments, which are removed from what is searched,
// and subjects of this repository's commits, whose answers are the files that they changed. Half of the questions, by a
// hash of their text, is for trying things (ZEPH_JUDGE=tune), the other half for the figures in docs/search.md
// (ZEPH_JUDGE=judge). ZEPH_JUDGE_SHOW=1 lists those that are answered wrongly.
func TestSearchJudged(t *testing.T) {
	half := os.Getenv("ZEPH_JUDGE")
	if half != "tune" && half != "judge" {
		t.Skip("ZEPH_JUDGE is neither tune nor judge; see docs/search.md")
	}
	list := slices.Concat(judgedModules(t, half), judgedPython(t, half), judgedScripts(t, half), judgedCommits(t, half),
		judgedNewcomers(t, half))
	sums := map[string]map[string]*score{}
	for i := range list {
		c := &list[i]
		base, index := newBaseline(t, c.root), indexOf(t, c.root)
		for j := range c.questions {
			q := &c.questions[j]
			began := time.Now()
			hits := askedFor(t, index, q)
			took := time.Since(began)
			plain := base.search(q)
			at := placeOf(q, hits)
			if os.Getenv("ZEPH_JUDGE_SHOW") != "" && (at == 0 || at > 5) {
				t.Logf("%s %d, BM25 %d: %s -> %s:%d %v", c.name, at, placeOf(q, plain), q.text, q.path, q.start, q.files)
			}
			for _, group := range []string{c.language + " " + c.name, c.language, "all"} {
				if sums[group] == nil {
					sums[group] = map[string]*score{"search_code": {}, "BM25": {}}
				}
				sums[group]["search_code"].add(at, took)
				sums[group]["BM25"].add(placeOf(q, plain), 0)
			}
		}
	}
	for _, group := range slices.Sorted(maps.Keys(sums)) {
		ours, plain := sums[group]["search_code"], sums[group]["BM25"]
		t.Logf("%-40s %s | BM25 %s | MRR × %.2f", group, ours, plain, ours.reciprocal/math.Max(plain.reciprocal, 1e-9))
	}
}

// score adds up the places of right answers.
type score struct {
	asked, first, five int
	reciprocal         float64
	took               []time.Duration
}

func (s *score) add(place int, took time.Duration) {
	s.asked++
	s.took = append(s.took, took)
	if place == 0 {
		return
	}
	s.reciprocal += 1 / float64(place)
	if place == 1 {
		s.first++
	}
	if place <= 5 {
		s.five++
	}
}

func (s *score) String() string {
	n := float64(s.asked)
	slices.Sort(s.took)
	return fmt.Sprintf("of %d: @1 %.2f @5 %.2f MRR %.3f p95 %v", s.asked, float64(s.first)/n, float64(s.five)/n,
		s.reciprocal/n, s.took[len(s.took)*95/100].Round(100*time.Microsecond))
}

// placeOf returns the place of the first right answer among the first ten; 0 = there is none. For commits, a file
// counts once.
func placeOf(q *question, hits []found) int {
	place, seen := 0, map[string]bool{}
	for _, h := range hits {
		if q.start == 0 && seen[h.path] {
			continue
		}
		seen[h.path] = true
		if place++; place > 10 {
			return 0
		}
		if q.answeredBy(h) {
			return place
		}
	}
	return 0
}

// inHalf reports whether a question belongs to a half.
func inHalf(half, text string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return (h.Sum32()%2 == 0) == (half == "tune")
}

// judgedModules returns modules that this project needs.
func judgedModules(t *testing.T, half string) (list []judged) {
	t.Helper()
	for _, module := range []string{
		"github.com/redis/go-redis/v9", "github.com/jackc/pgx/v5", "github.com/rs/zerolog", "github.com/spf13/viper",
		"github.com/PuerkitoBio/goquery", "github.com/sashabaranov/go-openai", "github.com/tetratelabs/wazero",
		"github.com/modelcontextprotocol/go-sdk", "github.com/yuin/goldmark", "mvdan.cc/sh/v3",
	} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		dir := strings.TrimSpace(string(out))
		if err != nil || dir == "" {
			t.Logf("%s is not there", module)
			continue
		}
		list = append(list, fromComments(t, half, "go", module, dir, func(name string) bool {
			return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "testdata/")
		}))
	}
	return list
}

// judgedPython returns parts of Python's standard library, where it is installed.
func judgedPython(t *testing.T, half string) (list []judged) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "python3", "-c", "import sysconfig;print(sysconfig.get_paths()['stdlib'])").Output()
	if err != nil {
		t.Logf("no Python: %v", err)
		return nil
	}
	parts := map[string]string{
		"top": `^[a-z]\w*\.py$`, "asyncio and concurrency": `^(asyncio|concurrent|multiprocessing)/.*\.py$`,
		"email, http, xml": `^(email|http|urllib|xml|json|html)/.*\.py$`, "unittest, logging": `^(unittest|logging|importlib|ctypes|curses|dbm)/.*\.py$`,
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		part := regexp.MustCompile(parts[name])
		list = append(list, fromComments(t, half, "python", name, strings.TrimSpace(string(out)), part.MatchString))
	}
	return list
}

// judgedScripts returns JavaScript and TypeScript of npm, where it is installed.
func judgedScripts(t *testing.T, half string) (list []judged) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "npm", "root", "-g").Output()
	if err != nil {
		t.Logf("no npm: %v", err)
		return nil
	}
	for name, dir := range map[string]string{
		"npm": filepath.Join(strings.TrimSpace(string(out)), "npm", "node_modules"),
		"acp": filepath.Join(os.Getenv("ZEPH_ACPX"), "..", ".."),
	} {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			t.Logf("%s is not there: %v", name, err)
			continue
		}
		script := regexp.MustCompile(`\.(ts|js|mjs|cjs)$`)
		list = append(list, fromComments(t, half, "script", name, dir, func(name string) bool {
			return script.MatchString(name) && !strings.Contains(name, ".min.") && !strings.Contains(name, "/test/")
		}))
	}
	return list
}

// fromComments copies files of a directory without the doc comments of functions and types, and asks with their first
// sentences.
func fromComments(t *testing.T, half, language, name, dir string, wanted func(path string) bool) judged {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	c := judged{language: language, name: name, root: root}
	check(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		rel = filepath.ToSlash(rel)
		if err != nil || !wanted(rel) || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil || len(content) > outline.MaxBytes {
			return err
		}
		asked, stripped := strip(rel, string(content))
		c.questions = append(c.questions, asked...)
		to := filepath.Join(root, rel)
		return cmp.Or(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, []byte(stripped), 0o600))
	}))
	// The same sentence about two things has two right answers.
	count := map[string]int{}
	for _, q := range c.questions {
		count[q.text]++
	}
	c.questions = slices.DeleteFunc(c.questions, func(q question) bool { return count[q.text] > 1 || !inHalf(half, q.text) })
	slices.SortFunc(c.questions, func(a, b question) int { return cmp.Compare(hashOf(a.text), hashOf(b.text)) })
	c.questions = c.questions[:min(len(c.questions), askedPerCorpus)]
	return c
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

// strip returns the questions that a file has, and the file without their sentences.
func strip(path, content string) (list []question, stripped string) {
	lines := strings.Split(content, "\n")
	language := outline.Of(path)
	for _, s := range outline.Parse(language, []byte(content)).Symbols {
		switch s.Kind {
		case outline.Function, outline.Method, outline.Class, outline.Struct, outline.Interface, outline.Type:
		default:
			continue
		}
		text := firstSentence(s.Doc, s.Name)
		if len(strings.Fields(text)) < leastWords || s.Line < 1 || s.End > len(lines) {
			continue
		}
		from, to := commentAbove(lines, s.Line), s.Line-1
		if language == outline.Python {
			from, to = docstring(lines, s.Line, s.End)
		}
		for i := from; i <= to && i <= len(lines); i++ {
			lines[i-1] = ""
		}
		list = append(list, question{text: text, path: path, start: s.Line, end: s.End})
	}
	return list, strings.Join(lines, "\n")
}

// commentAbove returns the first line of the comment above a declaration, or the line of the declaration.
func commentAbove(lines []string, line int) int {
	for line > 1 {
		text := strings.TrimSpace(lines[line-2])
		if !strings.HasPrefix(text, "//") && !strings.HasPrefix(text, "/*") && !strings.HasPrefix(text, "*") {
			break
		}
		line--
	}
	return line
}

// docstring returns the lines of the string that a Python declaration begins with; from > to: there is none.
func docstring(lines []string, line, end int) (from, to int) {
	for i := line; i <= min(end, line+12); i++ {
		text := strings.TrimSpace(lines[i-1])
		for _, quote := range []string{`"""`, `'''`} {
			at := strings.Index(text, quote)
			if at < 0 || at > 1 {
				continue
			}
			if strings.Contains(text[at+3:], quote) {
				return i, i
			}
			for j := i + 1; j <= end; j++ {
				if strings.Contains(lines[j-1], quote) {
					return i, j
				}
			}
		}
	}
	return 1, 0
}

var (
	endOfSentence = regexp.MustCompile(`[.!?:;](\s|$)|\n\n`)
	markup        = regexp.MustCompile("\\[([^\\]]*)\\]|[`*]|^\\s*@\\w+.*$|<[^>]*>|\\{@\\w+ ([^}]*)\\}")
)

// firstSentence returns the first sentence of a comment, without the name of what it is about.
func firstSentence(doc, name string) string {
	doc = markup.ReplaceAllString(strings.TrimSpace(doc), "$1$2")
	if at := endOfSentence.FindStringIndex(doc); at != nil {
		doc = doc[:at[0]]
	}
	doc = strings.Join(strings.Fields(doc), " ")
	if len(doc) > 300 || strings.Contains(doc, "Deprecated") || strings.Contains(doc, "Copyright") {
		return ""
	}
	if first, rest, ok := strings.Cut(doc, " "); ok && strings.EqualFold(strings.Trim(first, "(),"), name) {
		doc = rest
	}
	words := strings.Fields(doc)
	// One that has the name in it asks for the name.
	if slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(strings.Trim(w, ".,()"), name) }) {
		return ""
	}
	return doc
}

// judgedCommits asks with the subjects of this repository's commits for the files that they changed.
func judgedCommits(t *testing.T, half string) []judged {
	t.Helper()
	dir := topOfRepository(t)
	if dir == "" {
		return nil
	}
	log := exec.CommandContext(t.Context(), "git", "log", "--no-merges", "--no-renames", "--format=%x00%s", "--name-only")
	log.Dir = dir
	out, err := log.Output()
	check(t, err)
	wanted := func(path string) bool { return strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") }
	root, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	check(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && rel != "." || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !wanted(rel) {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		to := filepath.Join(root, rel)
		return cmp.Or(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, content, 0o600))
	}))
	c := judged{language: "commits", name: "this repository", root: root}
	for _, commit := range strings.Split(string(out), "\x00")[1:] {
		subject, names, _ := strings.Cut(commit, "\n")
		files := slices.DeleteFunc(strings.Fields(names), func(name string) bool { return !wanted(name) })
		changed := len(files)
		files = slices.DeleteFunc(files, func(name string) bool {
			_, err := os.Stat(filepath.Join(root, name))
			return err != nil
		})
		if len(files) == 0 || changed > mostFiles || len(strings.Fields(subject)) < leastWords || !inHalf(half, subject) {
			continue
		}
		c.questions = append(c.questions, question{text: subject, files: files})
	}
	return []judged{c}
}

// indexOf indexes a directory, without a store and without embeddings.
func indexOf(t *testing.T, root string) *code.Index {
	t.Helper()
	sources, err := file.NewSources(file.Options{Workspace: func(tools.Origin) (string, error) { return root, nil }})
	check(t, err)
	index, err := code.New(code.Options{Sources: sources, Log: zerolog.Nop()})
	check(t, err)
	check(t, index.Refresh(t.Context(), root, nil))
	return index
}

// askedFor calls the tool.
func askedFor(t *testing.T, x *code.Index, q *question) (list []found) {
	t.Helper()
	tool, err := x.Tool()
	check(t, err)
	raw, err := json.Marshal(map[string]any{"query": q.text, "max_results": 30})
	check(t, err)
	result, err := tool.Run(context.WithoutCancel(t.Context()), &tools.Call{Tool: code.ToolName, Args: raw, Trail: &tools.Trail{}})
	check(t, err)
	text, err := json.Marshal(result.Raw)
	check(t, err)
	var read struct {
		Results []struct {
			Path  string `json:"file_path"`
			Start int    `json:"line_start"`
			End   int    `json:"line_end"`
		} `json:"results"`
	}
	check(t, json.Unmarshal(text, &read))
	for _, r := range read.Results {
		list = append(list, found{r.Path, r.Start, r.End})
	}
	return list
}

// baseline is plain BM25 over declarations: words of path, name, comment and body alike, split at the borders of
// camelCase and snake_case and in lower case, without stems, synonyms or fields.
type baseline struct {
	documents []found
	words     []map[string]int
	lengths   []int
	with      map[string]int // documents by word
	mean      float64
}

var (
	inWords = regexp.MustCompile(`[A-Z]+(?:[a-z0-9]+)?|[a-z0-9]+|[^\x00-\x7f]+`)
	isWord  = regexp.MustCompile(`^[\pL\pN]{2,}$`)
)

func plainWords(text string) (list []string) {
	for _, w := range inWords.FindAllString(text, -1) {
		if isWord.MatchString(w) {
			list = append(list, strings.ToLower(w))
		}
	}
	return list
}

func newBaseline(t *testing.T, root string) *baseline {
	t.Helper()
	b := &baseline{with: map[string]int{}}
	total := 0
	check(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		lines := strings.Split(string(content), "\n")
		for _, s := range outline.Parse(outline.Of(rel), content).Symbols {
			words := map[string]int{}
			list := plainWords(rel + " " + strings.Join(lines[max(s.Start, 1)-1:min(s.End, len(lines))], "\n"))
			for _, w := range list {
				words[w]++
			}
			for w := range words {
				b.with[w]++
			}
			total += len(list)
			b.documents = append(b.documents, found{rel, s.Line, s.End})
			b.words, b.lengths = append(b.words, words), append(b.lengths, len(list))
		}
		return err
	}))
	b.mean = float64(total) / math.Max(float64(len(b.documents)), 1)
	return b
}

// search returns the best declarations, with the usual k1 = 1.2 and b = 0.75.
func (b *baseline) search(q *question) []found {
	const k1, length = 1.2, 0.75
	type hit struct {
		at    int
		score float64
	}
	var hits []hit
	words := slices.Compact(slices.Sorted(slices.Values(plainWords(q.text))))
	for i, own := range b.words {
		sum := 0.0
		for _, w := range words {
			if n := float64(own[w]); n > 0 {
				df := float64(b.with[w])
				idf := math.Log(1 + (float64(len(b.words))-df+0.5)/(df+0.5))
				sum += idf * n * (k1 + 1) / (n + k1*(1-length+length*float64(b.lengths[i])/b.mean))
			}
		}
		if sum > 0 {
			hits = append(hits, hit{i, sum})
		}
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.at, b.at)) })
	var list []found
	for _, h := range hits[:min(len(hits), 60)] {
		list = append(list, b.documents[h.at])
	}
	return list
}
