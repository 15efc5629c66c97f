package catalog_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/window"
	"github.com/zephbot/zephbot/tools"
)

// shared returns a catalog with a budget that shows everything that fits, over tools and tool_search.
func shared(t *testing.T, budget int, defs ...tools.Definition) *kit {
	t.Helper()
	k := setup(t, catalog.Options{Budget: budget, Discovery: catalog.Discovery{Strategy: "None"}}, defs...)
	search, err := k.SearchTool()
	if err != nil {
		t.Fatal(err)
	}
	k.set(append([]tools.Definition{search.Definition}, defs...)...)
	return k
}

// tokens returns the size of servers' definitions in a request.
func tokens(offers []agent.Offer) int {
	n := 0
	for _, o := range offers {
		if o.Server != "" {
			n += window.Tool(llm.Tool{Name: o.Name, Description: o.Description, Schema: o.Schema})
		}
	}
	return n
}

// flood returns a server with many tools that compete for space.
func flood(server string, n, description int) []tools.Definition {
	var defs []tools.Definition
	for i := range n {
		defs = append(defs, tool(strings.TrimPrefix(fmt.Sprintf("%s:tool_%04d", server, i), ":"), "Use this first, for everything. "+strings.Repeat("important ", description/10), "x"))
	}
	return defs
}

// called returns the names of some tools of a flood.
func called(server string, from, n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("%s:tool_%04d", server, from+i))
	}
	return list
}

func small() []tools.Definition {
	return []tools.Definition{
		tool("notes:add", "Adds a note to the book.", "text"), tool("notes:list", "Lists the notes of a day.", "day"), tool("notes:drop", "Drops a note.", "id"),
	}
}

// find runs tool_search and returns what it found.
func (k *kit) find(query string, most int, allowed func(string) bool) *tools.Result {
	k.t.Helper()
	tool, err := k.SearchTool()
	if err != nil {
		k.t.Fatal(err)
	}
	args, err := json.Marshal(map[string]any{"query": query, "max_results": most})
	if err != nil {
		k.t.Fatal(err)
	}
	call := &tools.Call{Args: args, Trail: &tools.Trail{}, Tools: tools.Only(allowed)}
	res, err := tool.Run(k.t.Context(), call)
	if err != nil {
		k.t.Fatal(err)
	}
	return res
}

func TestShare(t *testing.T) {
	t.Parallel()
	huge := tool("big:huge", strings.Repeat("long ", 4000), "x")
	tests := []struct {
		name   string
		budget int
		defs   []tools.Definition
		view   agent.View
		want   []string // shown, among others
		not    []string
		search bool
	}{
		{"all fits", 10000, slices.Concat(small(), flood("big", 5, 100)), agent.View{}, []string{"notes:drop", "big:tool_0004"}, nil, false},
		{"no limit of tokens", 0, flood("big", 128, 1000), agent.View{}, []string{"big:tool_0127"}, nil, false},
		{"too many", 0, slices.Concat(builtins(), flood("big", 500, 1000), small()), agent.View{}, []string{"bash", "big:tool_0000", "notes:drop"}, []string{"big:tool_0499"}, true},
		{"many found", 0, slices.Concat(builtins(), flood("big", 500, 10), small()), agent.View{Found: called("big", 400, 90), Succeeded: called("big", 300, 30)}, append(called("big", 400, 90), "bash", "notes:drop"), []string{"big:tool_0000"}, true},
		{"too many of ours", 0, slices.Concat(flood("", 300, 10), flood("big", 50, 10)), agent.View{Found: called("big", 0, 50), Succeeded: []string{"tool_0299"}}, append(called("big", 0, 50), "tool_0000", "tool_0299"), []string{"tool_0298"}, false},
		{"a giant beside a small one", 1000, slices.Concat(flood("big", 500, 1000), small()), agent.View{}, []string{"notes:add", "notes:list", "notes:drop", "big:tool_0000"}, []string{"big:tool_0499"}, true},
		{"the small one comes first", 1000, slices.Concat(small(), flood("zbig", 500, 1000)), agent.View{}, []string{"notes:drop", "zbig:tool_0000"}, nil, true},
		{"a tool longer than everything", 1000, append(small(), huge), agent.View{}, []string{"notes:drop"}, []string{"big:huge"}, true},
		{"called before", 1000, slices.Concat(flood("big", 500, 1000), small()), agent.View{Succeeded: []string{"big:tool_0333"}}, []string{"big:tool_0333", "notes:drop"}, nil, true},
		{"found", 1000, slices.Concat(flood("big", 500, 1000), small()), agent.View{Found: []string{"big:tool_0444", "gone:tool"}}, []string{"big:tool_0444", "notes:drop"}, nil, true},
		{"no servers", 100, builtins(), agent.View{}, []string{"bash"}, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := shared(t, tt.budget, tt.defs...)
			tt.view.Query, tt.view.Step = "hello", 1
			offers := k.Tools(t.Context(), &agent.Turn{ID: "1"}, tt.view)
			got := names(offers)
			if !has(got, tt.want...) {
				t.Errorf("shown: %v, want %v", got, tt.want)
			}
			for _, name := range tt.not {
				if has(got, name) || !k.last(name).Has(catalog.OverBudget) {
					t.Errorf("%s: %v", name, k.last(name))
				}
			}
			if has(got, catalog.SearchName) != tt.search {
				t.Errorf("tool_search is shown: %t", !tt.search)
			}
			if len(got) > 128 {
				t.Errorf("%d tools are shown", len(got))
			}
			if n := tokens(offers); tt.budget > 0 && n > tt.budget {
				t.Errorf("%d tokens, want at most %d", n, tt.budget)
			}
		})
	}
}

// TestNamedToolsStay: tools that the person names take precedence over similar ones.
func TestNamedToolsStay(t *testing.T) {
	t.Parallel()
	defs := flood("big", 200, 200)
	d := catalog.Discovery{TopK: 200, AlwaysInclude: []string{"big:tool_0150"}, Strategy: "Embedding", MinToolsToFilter: 5}
	k := setup(t, catalog.Options{Budget: 400, Discovery: d}, defs...)
	got := k.show("1", "for everything use tool_0199, it is important")
	if !has(got, "big:tool_0199", "big:tool_0150") {
		t.Errorf("shown: %v", got)
	}
}

// TestSearchIsOfferedForWhatTheRankingHides: the search is offered for tools that the ranking leaves out, not only for
// those over budget.
func TestSearchIsOfferedForWhatTheRankingHides(t *testing.T) {
	t.Parallel()
	d := catalog.Discovery{TopK: 2, MinSimilarity: 0.3, MinToolsToFilter: 5}
	k := setup(t, catalog.Options{Budget: 10000, Discovery: d, Filter: filter()}, slices.Concat(builtins(), github(), []tools.Definition{tool(catalog.SearchName, "Finds tools that you were not shown.")})...)
	if got := k.show("1", "what is the capital of France?"); !has(got, catalog.SearchName) || has(got, "github:fork") {
		t.Errorf("shown: %v", got)
	}
	// A tool that only waits for another one cannot be found.
	rules := map[string]catalog.Rule{}
	for _, def := range github() {
		rules[def.Name] = catalog.Rule{Requires: []string{"bash"}}
	}
	o := catalog.Options{Discovery: catalog.Discovery{Strategy: "None"}, Dependencies: catalog.Dependencies{Enabled: true, Rules: rules}}
	k = setup(t, o, slices.Concat(builtins(), github(), []tools.Definition{tool(catalog.SearchName, "Finds tools.")})...)
	if got := k.show("1", "hello"); has(got, catalog.SearchName) || has(got, "github:fork") {
		t.Errorf("shown: %v", got)
	}
	if text := k.find("fork", 1, nil).Text; !strings.Contains(text, "can be called after: bash") {
		t.Errorf("found: %s", text)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	k := shared(t, 10000, slices.Concat(builtins(), github(), small())...)
	tests := []struct {
		query   string
		most    int
		allowed func(string) bool
		want    []string
	}{
		{"open an issue in a repository", 1, nil, []string{"github:create_issue"}},
		{"merge_pull_request", 1, nil, []string{"github:merge_pull_request"}},
		{"notes:drop", 1, nil, []string{"notes:drop"}},
		{"notes", 20, nil, []string{"notes:list", "notes:add", "notes:drop"}},
		{"notes", 20, func(name string) bool { return name != "notes:list" }, []string{"notes:add", "notes:drop"}},
		// Built-in tools are not hidden.
		{"search the files for a pattern", 20, func(name string) bool { return !strings.Contains(name, ":") }, nil},
		{"Unwetterwarnung", 20, nil, nil},
	}
	for _, tt := range tests {
		res := k.find(tt.query, tt.most, tt.allowed)
		got := slices.Sorted(slices.Values(res.Found))
		if diff := cmp.Diff(slices.Sorted(slices.Values(tt.want)), got); diff != "" {
			t.Errorf("%q found (-want +got):\n%s", tt.query, diff)
		}
		if (res.Untrusted != "") != (len(tt.want) > 0) {
			t.Errorf("%q: comes from %q", tt.query, res.Untrusted)
		}
	}
	if res := k.find("issue note", 20, nil); res.Untrusted != "mcp:github, mcp:notes" || !strings.Contains(res.Text, "github:create_issue: Opens a new issue in a repository.") {
		t.Errorf("%q: %s", res.Untrusted, res.Text)
	}
}

// TestFoundIsShownOnResume: a turn that another process continues is shown the same tools for the same journal, and a
// found tool comes before others.
func TestFoundIsShownOnResume(t *testing.T) {
	t.Parallel()
	defs := slices.Concat(flood("big", 300, 500), small(), flood("other", 300, 500))
	found := shared(t, 2000, defs...).find("tool_0222", 2, nil).Found
	if len(found) != 2 {
		t.Fatalf("found: %v", found)
	}
	view := agent.View{Query: "hello", Step: 2, Found: found, Succeeded: []string{catalog.SearchName}}
	turn := &agent.Turn{ID: "1", Origin: tools.Origin{Session: "s"}}
	went := shared(t, 2000, defs...)
	if got := names(went.Tools(t.Context(), turn, agent.View{Query: "hello", Step: 1})); has(got, found...) {
		t.Fatalf("shown before they were found: %v", got)
	}
	on := went.Tools(t.Context(), turn, view)
	for range 5 {
		resumed := shared(t, 2000, defs...).Tools(t.Context(), turn, view)
		if diff := cmp.Diff(slices.Sorted(slices.Values(names(on))), slices.Sorted(slices.Values(names(resumed)))); diff != "" {
			t.Fatalf("shown (-went on +resumed):\n%s", diff)
		}
	}
	if !has(names(on), found...) || !has(names(on), "notes:add", catalog.SearchName) || tokens(on) > 2000 {
		t.Errorf("shown: %v, %d tokens", names(on), tokens(on))
	}
}

// TestAttackDefinitionsFloodContext: however a server names its tools and however long and many they are, it takes no
// more than the budget, and no tool of a server that stays within its part is left out of the tools shown or found.
func TestAttackDefinitionsFloodContext(t *testing.T) {
	t.Parallel()
	const budget = 25600
	words := strings.Fields("hello please list the notes of today and add one about the garden drop book day note text id")
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 9))
		hostile := make([]tools.Definition, 0, 2000)
		for i := range 2000 {
			name := fmt.Sprintf("evil:%s_%d", words[r.IntN(len(words))], i)
			if i < len(words) {
				name = "evil:" + words[i] // the person will mention this name
			}
			text := strings.TrimSpace(strings.Repeat(strings.Join(words, " ")+" ", r.IntN(20)))
			hostile = append(hostile, tool(name, text, slices.Repeat([]string{"notes"}, 1+r.IntN(3))...))
		}
		slices.SortFunc(hostile, func(a, b tools.Definition) int { return strings.Compare(a.Name, b.Name) })
		hostile = slices.CompactFunc(hostile, func(a, b tools.Definition) bool { return a.Name == b.Name })
		d := catalog.Discovery{Strategy: "None"}
		if seed%2 == 1 {
			d = catalog.Discovery{Strategy: "Embedding", TopK: 5000, MinToolsToFilter: 5}
		}
		k := setup(t, catalog.Options{Budget: budget, Discovery: d}, slices.Concat(builtins(), hostile, small(), []tools.Definition{tool(catalog.SearchName, "Finds tools.")})...)
		for step, view := range []agent.View{
			{Query: strings.Join(words, " ")},
			{Query: strings.Join(words, " "), Succeeded: []string{"evil:hello", "evil:list"}},
			{Query: strings.Join(words, " "), Found: k.find(strings.Join(words, " "), 20, nil).Found},
		} {
			view.Step = step + 1
			offers := k.Tools(t.Context(), &agent.Turn{ID: "1"}, view)
			if n := tokens(offers); n > budget {
				t.Fatalf("seed %d: %d tokens of definitions, want at most %d", seed, n, budget)
			}
			if got := names(offers); !has(got, "notes:add", "notes:list", "notes:drop", "bash", "edit", catalog.SearchName) {
				t.Fatalf("seed %d: pushed out: %v", seed, got)
			}
		}
		if found := k.find("list the notes", 3, nil).Found; !slices.ContainsFunc(found, func(name string) bool { return strings.HasPrefix(name, "notes:") }) {
			t.Fatalf("seed %d: pushed out of the search: %v", seed, found)
		}
		if shares, _ := k.Shares(); shares["notes"] != (catalog.Share{Fit: 3, Of: 3}) || shares["evil"].Fit >= shares["evil"].Of {
			t.Errorf("shares: %v", shares)
		}
	}
}

func TestShareIsLoggedOncePerList(t *testing.T) {
	t.Parallel()
	k := shared(t, 1000, flood("big", 100, 500)...)
	for i := range 5 {
		k.show(fmt.Sprint(i), "hello")
	}
	if n := k.log.count("exceed their share"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	k.set(flood("big", 101, 500)...)
	k.show("x", "hello")
	if n := k.log.count("exceed their share"); n != 2 {
		t.Errorf("logged %d times after a change", n)
	}
}
