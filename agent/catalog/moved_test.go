package catalog_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/tools"
)

// TestMoved: each step of a turn is shown the same tools in the same order whatever process takes it, and the tools of
// the step before come first. A process knows of the steps before what the journal has: the names that were recorded.
func TestMoved(t *testing.T) {
	t.Parallel()
	defs := append(builtins(), tool(catalog.SearchName, "Finds tools that are not shown here.", "query"))
	defs = append(defs, github()...)
	deps := rules(map[string]catalog.Rule{
		"edit": {Requires: []string{"read"}}, "bash": {Requires: []string{"grep"}}, "github:fork": {Requires: []string{"github:get_commit"}},
		"grep": {Prefers: []string{"fetch"}},
	})
	some := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"read", "grep", "fetch", "memory_save", "github:get_commit", "github:add_label", "web_scrape"}), 0, 3, rapid.ID[string])
	rapid.Check(t, func(rt *rapid.T) {
		o := catalog.Options{
			Discovery: catalog.Discovery{Strategy: rapid.SampledFrom([]string{"Embedding", "None"}).Draw(rt, "strategy"), TopK: rapid.IntRange(0, 4).Draw(rt, "top"), MinSimilarity: 0.2},
		}
		if rapid.Bool().Draw(rt, "filter") {
			o.Filter = catalog.Filter{Enabled: true, TopK: rapid.IntRange(0, 3).Draw(rt, "top own"), MinSimilarity: 0.2, AlwaysOn: []string{"memory_save"}}
		}
		if rapid.Bool().Draw(rt, "dependencies") {
			o.Dependencies = deps
		}
		query := rapid.SampledFrom([]string{"read the file and edit it", "look at the issues of the repository", "thank you"}).Draw(rt, "query")
		before := some.Draw(rt, "before")
		view := agent.View{Query: query, Succeeded: before, Before: func() []string { return before }}
		home := setup(t, o, defs...)
		var last []string
		for view.Step = 1; view.Step <= 5; view.Step++ {
			here, there := origin("1"), origin("1")
			got := names(home.Tools(t.Context(), here, view))
			elsewhere := names(setup(t, o, defs...).Tools(t.Context(), there, view))
			if diff := cmp.Diff(got, elsewhere); diff != "" {
				rt.Fatalf("step %d (-in one process +after a move):\n%s", view.Step, diff)
			}
			if diff := cmp.Diff(here.Shown, there.Shown); diff != "" {
				rt.Fatalf("step %d records (-in one process +after a move):\n%s", view.Step, diff)
			}
			if len(got) < len(last) || !slices.Equal(got[:len(last)], last) {
				rt.Fatalf("step %d: %q does not begin with %q", view.Step, got, last)
			}
			last = got
			if len(here.Shown) > 0 {
				view.Shown = here.Shown
			}
			for _, name := range some.Draw(rt, "succeed") {
				if !slices.Contains(view.Succeeded, name) {
					view.Succeeded = append(slices.Clip(view.Succeeded), name)
				}
			}
			view.Found = append(slices.Clip(view.Found), some.Draw(rt, "found")...)
		}
	})
}

func origin(turn string) *agent.Turn {
	return &agent.Turn{ID: turn, Origin: tools.Origin{Session: "s", Turn: turn}}
}

// TestNothingIsRecorded: a turn that is shown everything records nothing, at no step.
func TestNothingIsRecorded(t *testing.T) {
	t.Parallel()
	k, turn := setup(t, catalog.Options{Discovery: catalog.Discovery{Strategy: "None"}}, append(builtins(), github()...)...), origin("1")
	for step := range 3 {
		k.Tools(t.Context(), turn, agent.View{Query: "look", Step: step + 1})
		if turn.Shown != nil {
			t.Errorf("step %d records %q", step+1, turn.Shown)
		}
	}
}
