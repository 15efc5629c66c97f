package catalog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/tools"
)

// kit is a catalog over a list of tools that a test can change.
type kit struct {
	*catalog.Catalog
	t    *testing.T
	mu   sync.Mutex
	defs []tools.Definition
	seen []catalog.Selection
	log  *lines
}

// lines is a log that can be read while it is being written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

func setup(t *testing.T, o catalog.Options, defs ...tools.Definition) *kit {
	t.Helper()
	k := &kit{t: t, defs: defs, log: &lines{}}
	o.Source = k.source
	o.Log = zerolog.New(k.log)
	o.Observe = func(s catalog.Selection) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.seen = append(k.seen, s)
	}
	c, err := catalog.New(o)
	if err != nil {
		t.Fatal(err)
	}
	k.Catalog = c
	return k
}

// Tools is that of the catalog, for a turn that pays nothing.
func (k *kit) Tools(ctx context.Context, turn *agent.Turn, view agent.View) []agent.Offer {
	return k.Catalog.Tools(cost.WithPayer(ctx, cost.Unlimited{}), turn, view)
}

func (k *kit) source(_ tools.Origin, overlay *tools.Overlay) []tools.Definition {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []tools.Definition
	for _, d := range k.defs {
		if !overlay.Takes(d.Name) {
			list = append(list, d)
		}
	}
	return list
}

func (k *kit) set(defs ...tools.Definition) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.defs = defs
}

// show returns the names that a new turn would be shown.
func (k *kit) show(turn, query string, succeeded ...string) []string {
	k.t.Helper()
	return k.step(turn, query, 1, succeeded...)
}

func (k *kit) step(turn, query string, step int, succeeded ...string) []string {
	k.t.Helper()
	return names(k.Tools(k.t.Context(), &agent.Turn{ID: turn, Origin: tools.Origin{Session: "s", Turn: turn}}, agent.View{Query: query, Step: step, Succeeded: succeeded}))
}

// last returns the choice for a tool in the last selection.
func (k *kit) last(tool string) catalog.Choice {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.seen) == 0 {
		k.t.Fatal("nothing was observed")
	}
	for _, ch := range k.seen[len(k.seen)-1].Tools {
		if ch.Tool == tool {
			return ch
		}
	}
	k.t.Fatalf("no choice about %s", tool)
	return catalog.Choice{}
}

func (k *kit) ranked() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen[len(k.seen)-1].Ranked
}

func names(offers []agent.Offer) []string {
	list := []string{}
	for _, o := range offers {
		list = append(list, o.Name)
	}
	return list
}

// object returns a schema with string properties.
func object(props ...string) json.RawMessage {
	var parts []string
	for _, p := range props {
		parts = append(parts, fmt.Sprintf("%q:{\"type\":\"string\"}", p))
	}
	return json.RawMessage(`{"type":"object","properties":{` + strings.Join(parts, ",") + `}}`)
}

func tool(name, description string, props ...string) tools.Definition {
	d := tools.Definition{Name: name, Description: description, Schema: object(props...)}
	if server, _, ok := strings.Cut(name, ":"); ok {
		d.Server = server
	}
	return d
}

func builtins() []tools.Definition {
	return []tools.Definition{
		tool("bash", "Runs a shell command in the working directory.", "command"),
		tool("read", "Reads a text file and gives its lines.", "path", "offset", "limit"),
		tool("edit", "Replaces a text in a file by another.", "path", "old_string", "new_string"),
		tool("grep", "Searches the contents of files for a pattern.", "pattern", "path"),
		tool("fetch", "Downloads a web page and gives readable text.", "url"),
		tool("web_scrape", "Extracts elements of a page by CSS selector.", "url", "selector"),
		tool("schedule_deferred", "Runs a reminder or prompt once at a later time.", "run_at", "prompt"),
		tool("memory_save", "Keeps a fact about the person for later.", "text"),
	}
}

func github() []tools.Definition {
	return []tools.Definition{
		tool("github:create_issue", "Opens a new issue in a repository.", "repo", "title", "body"),
		tool("github:list_issues", "Lists the issues of a repository.", "repo", "state"),
		tool("github:merge_pull_request", "Merges a pull request after its checks.", "repo", "number"),
		tool("github:get_commit", "Shows a commit with its changed files.", "repo", "sha"),
		tool("github:add_label", "Puts a label on a pull request.", "repo", "label"),
		tool("github:fork", "Copies a repository to another owner.", "repo", "owner"),
	}
}

var errDown = errors.New("the provider is down")

// words is an embedder whose dimensions are words, so that texts with common words are similar. It records the texts it
// is given.
type words struct {
	list []string
	mu   sync.Mutex
	text []string
	down bool
	wait func(ctx context.Context) error // called before an answer; may be nil
}

func newWords(list ...string) *words { return &words{list: list} }

func (w *words) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if w.wait != nil {
		if err := w.wait(ctx); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return nil, errDown
	}
	w.text = append(w.text, texts...)
	var out [][]float32
	for _, t := range texts {
		v := make([]float32, len(w.list))
		for i, word := range w.list {
			v[i] = float32(strings.Count(strings.ToLower(t), word))
		}
		out = append(out, v)
	}
	return out, nil
}

func (w *words) fail(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
}

// take returns the texts since the last take.
func (w *words) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.text
	w.text = nil
	return list
}

func has(list []string, wanted ...string) bool {
	for _, w := range wanted {
		if !slices.Contains(list, w) {
			return false
		}
	}
	return true
}

func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// clock is stopped; tests advance it.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(seconds int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Duration(seconds) * time.Second)
}

func newClock() *clock { return &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }
