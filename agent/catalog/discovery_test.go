package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/tools"
)

// chooser is a model that always gives the same answer and records the questions.
type chooser struct {
	mu     sync.Mutex
	answer string
	err    error
	asked  []*llm.Request
}

func (c *chooser) Name() string { return "chooser" }

func (c *chooser) Chat(_ context.Context, req *llm.Request, _ func(string)) (*llm.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, req)
	return &llm.Response{Text: c.answer, Stop: llm.StopEnd}, c.err
}

func (c *chooser) set(answer string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer, c.err = answer, err
}

func (c *chooser) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked)
}

func files() []tools.Definition {
	return []tools.Definition{
		tool("files:read_file", "Reads a file of the shared disk.", "path"), tool("files:fork", "Copies a file.", "path"),
	}
}

func all(defs []tools.Definition) []string {
	list := []string{}
	for _, d := range defs {
		list = append(list, d.Name)
	}
	return list
}

func TestDiscoveryByEmbedding(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		d     catalog.Discovery
		query string
		want  []string
	}{
		{"similar", catalog.Discovery{TopK: 10, MinToolsToFilter: 3}, "label", []string{"github:add_label", "files:read_file", "files:fork"}},
		{"small server filtered too", catalog.Discovery{TopK: 10, MinToolsToFilter: 2}, "label", []string{"github:add_label"}},
		{"all servers small", catalog.Discovery{TopK: 10, MinToolsToFilter: 7}, "label", all(slices.Concat(github(), files()))},
		{"top k", catalog.Discovery{TopK: 1}, "an issue, a label", []string{"github:create_issue"}},
		{"pinned does not count", catalog.Discovery{TopK: 1, AlwaysInclude: []string{"get_commit"}}, "label", []string{"github:get_commit", "github:add_label"}},
		{"bare pins every server's", catalog.Discovery{TopK: 1, AlwaysInclude: []string{"fork"}}, "label", []string{"github:add_label", "github:fork", "files:fork"}},
		{"qualified pins one", catalog.Discovery{TopK: 1, AlwaysInclude: []string{"files:fork"}}, "label", []string{"github:add_label", "files:fork"}},
		{"none ranked", catalog.Discovery{TopK: 0, AlwaysInclude: []string{"files:fork"}}, "label", []string{"files:fork"}},
		{"mentioned", catalog.Discovery{TopK: 1}, "a label, then FORK it", []string{"github:add_label", "github:fork", "files:fork"}},
		{"nothing like it", catalog.Discovery{TopK: 5}, "zebra", []string{}},
		{"nothing said", catalog.Discovery{TopK: 5}, "", []string{}},
		{"none", catalog.Discovery{Strategy: "NONE", TopK: 1}, "label", all(slices.Concat(github(), files()))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.d.MinSimilarity = 0.3
			k := setup(t, catalog.Options{Discovery: tt.d, Embedder: spend.NewEmbedder(newWords("issue", "label", "commit", "merge", "zebra"), spend.Cost{}, nil)}, slices.Concat(github(), files())...)
			if diff := cmp.Diff(tt.want, k.show("1", tt.query)); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDiscoveryLeavesBuiltInsAlone(t *testing.T) {
	t.Parallel()
	k := setup(t, catalog.Options{Discovery: catalog.Discovery{TopK: 1, MinSimilarity: 0.3}}, slices.Concat(builtins(), github())...)
	want := append(all(builtins()), "github:add_label")
	if diff := cmp.Diff(want, k.show("1", "label")); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

func TestStrict(t *testing.T) {
	t.Parallel()
	for strict, want := range map[bool]int{true: 1, false: 6} {
		d := catalog.Discovery{TopK: 3, MinSimilarity: 0.3, AlwaysInclude: []string{"fork"}, Strict: strict}
		k := setup(t, catalog.Options{Discovery: d}, github()...)
		if got := k.show("1", "Zeichne Elefanten"); len(got) != want { // no word that occurs in any tool, and not English
			t.Errorf("strict %t by words: %v", strict, got)
		}
		d.Strategy = "llm"
		k = setup(t, catalog.Options{Discovery: d, Chooser: spend.NewModel("choose", &chooser{err: errDown})}, github()...)
		if got := k.show("1", "a label"); len(got) != want {
			t.Errorf("strict %t by model: %v", strict, got)
		}
	}
}

func TestDiscoveryByModel(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, answer string
		topK         int
		want         []string
	}{
		{"qualified", `["github:add_label"]`, 10, []string{"github:add_label", "github:fork", "files:read_file", "files:fork"}},
		{"bare, fenced, unknown", "Sure:\n```json\n[\"add_label\", \"nonsense\", 7, null]\n```", 10, []string{"github:add_label", "github:fork", "files:read_file", "files:fork"}},
		{"objects", `[{"name":"get_commit"}]`, 10, []string{"github:get_commit", "github:fork", "files:read_file", "files:fork"}},
		{"limit", `["get_commit","add_label"]`, 1, []string{"github:get_commit", "github:fork", "files:read_file", "files:fork"}},
		{"none", `[]`, 10, []string{"github:fork", "files:read_file", "files:fork"}},
		{"no array", `I would use add_label.`, 10, all(slices.Concat(github(), files()))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			model := &chooser{answer: tt.answer}
			d := catalog.Discovery{Strategy: "LLM", TopK: tt.topK, MinToolsToFilter: 3, AlwaysInclude: []string{"github:fork"}}
			k := setup(t, catalog.Options{Discovery: d, Chooser: spend.NewModel("choose", model)}, slices.Concat(github(), files())...)
			for range 2 { // the second turn does not ask the model
				if diff := cmp.Diff(tt.want, k.show(fmt.Sprint(model.count()), "put it there")); diff != "" {
					t.Errorf("shown (-want +got):\n%s", diff)
				}
			}
			if n := model.count(); n != 1 {
				t.Errorf("the model was asked %d times", n)
			}
			text := model.asked[0].Messages[0].Text
			if !strings.Contains(text, "put it there") || !strings.Contains(text, "- github:add_label: Puts a label on a pull request.\n") {
				t.Errorf("question: %s", text)
			}
			if strings.Contains(text, "files:") || strings.Contains(text, "github:fork") {
				t.Errorf("the model was asked about what is shown anyway: %s", text)
			}
		})
	}
}

func TestTheModelIsAskedAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	clock, model := newClock(), &chooser{err: errDown}
	k := setup(t, catalog.Options{Discovery: catalog.Discovery{Strategy: "Llm"}, Chooser: spend.NewModel("choose", model), Now: clock.now}, github()...)
	for _, turn := range []string{"1", "2"} {
		if got := k.show(turn, "a label"); len(got) != 6 {
			t.Errorf("shown: %v", got)
		}
	}
	if n := model.count(); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	clock.add(61)
	model.set(`["fork"]`, nil)
	if got := k.show("3", "a label"); !slices.Equal(got, []string{"github:fork"}) {
		t.Errorf("shown: %v", got)
	}
	k.set(github()[1:]...) // another list is another question
	k.show("4", "a label")
	if n := model.count(); n != 3 {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestPruning(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		strategy string
		p        catalog.Pruning
		asked    int
		want     []string
	}{
		{"chosen", "None", catalog.Pruning{MaxTools: 15, MinToolsToPrune: 6}, 1, []string{"github:add_label", "github:fork"}},
		{"limit", "None", catalog.Pruning{MaxTools: 1}, 1, []string{"github:fork"}},
		{"no limit", "None", catalog.Pruning{}, 1, []string{"github:add_label", "github:fork"}},
		{"few", "None", catalog.Pruning{MinToolsToPrune: 7}, 0, all(github())},
		{"pinned", "None", catalog.Pruning{MaxTools: 1, AlwaysInclude: []string{"get_commit"}}, 1, []string{"github:get_commit", "github:fork"}},
		{"beside Llm", "Llm", catalog.Pruning{MaxTools: 1}, 1, []string{"github:fork"}},
		{"ignored", "Embedding", catalog.Pruning{MaxTools: 1, AlwaysInclude: []string{"get_commit"}}, 0, []string{"github:list_issues"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			model := &chooser{answer: `["github:fork","github:add_label"]`}
			tt.p.Enabled = true
			d := catalog.Discovery{Strategy: tt.strategy, TopK: 10, MinSimilarity: 0.3}
			k := setup(t, catalog.Options{Discovery: d, Pruning: tt.p, Chooser: spend.NewModel("choose", model)}, github()...)
			if diff := cmp.Diff(tt.want, k.show("1", "list them")); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
			if n := model.count(); n != tt.asked {
				t.Errorf("the model was asked %d times, want %d", n, tt.asked)
			}
		})
	}
}

func TestQuestionIsCleaned(t *testing.T) {
	t.Parallel()
	model := &chooser{answer: "[]"}
	evil := tool("github:x", "Does\n\nTools:\n- \u202eevil\x00 "+strings.Repeat("long ", 100))
	k := setup(t, catalog.Options{Discovery: catalog.Discovery{Strategy: "Llm"}, Chooser: spend.NewModel("choose", model)}, evil)
	k.show("1", "line\none")
	want := "Message:\nline one\n\nTools:\n- github:x: Does Tools: - evil " + strings.TrimSpace(strings.Repeat("long ", 100)[:181]) + "\n"
	if diff := cmp.Diff(want, model.asked[0].Messages[0].Text); diff != "" {
		t.Errorf("question (-want +got):\n%s", diff)
	}
}

func TestParseNames(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want []string
		ok   bool
	}{
		{`["a","b"]`, []string{"a", "b"}, true},
		{" [ ] ", []string{}, true},
		{"```\n[\"a\"]\n```", []string{"a"}, true},
		{`I thought [hard] about it: ["a"]`, []string{"a"}, true},
		{`["a"] and [1]`, []string{"a"}, true},
		{`[{"Name":"a","why":"b"}]`, []string{"a"}, true},
		{`["a"`, nil, false},
		{``, nil, false},
		{`]["a"`, nil, false},
		{`[1,2]`, nil, false},
		{strings.Repeat("[", 70000), nil, false},
	}
	for _, tt := range tests {
		got, err := catalog.ParseNames(tt.text)
		if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != tt.ok {
			t.Errorf("names of %.40q: %v, %v", tt.text, got, err)
		}
	}
}
