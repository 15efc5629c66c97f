package catalog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/tools"
)

func TestAnUnchangedTurnIsShownTheSameBytes(t *testing.T) {
	t.Parallel()
	hint := func(json.RawMessage) string { return "Gives an object with id." }
	issue := tool("github:create_issue", "Opens a new issue in a repository.", "repo", "title")
	issue.OutputSchema = json.RawMessage(`{"type":"object"}`)
	for name, o := range map[string]catalog.Options{
		"all":        {},
		"words":      {Filter: filter(), Discovery: catalog.Discovery{TopK: 3, MinSimilarity: 0.3}},
		"embeddings": {Filter: filter(), Discovery: catalog.Discovery{TopK: 3, MinSimilarity: 0.3}, Embedder: spend.NewEmbedder(newWords("file", "issue", "repository"), spend.Cost{}, nil)},
		"thinking":   {TAFC: catalog.TAFC{Enabled: true}, OutputHint: hint},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := setup(t, o, append(slices.Concat(builtins(), github()[1:]), issue)...)
			turn := &agent.Turn{ID: "1", Origin: tools.Origin{Session: "s"}}
			var first string
			for step := range 5 {
				data, err := json.Marshal(k.Tools(t.Context(), turn, agent.View{Query: "open an issue about that file", Step: step + 1}))
				if err != nil {
					t.Fatal(err)
				}
				if first == "" {
					first = string(data)
				}
				if string(data) != first {
					t.Fatalf("step %d differs:\n%s\n%s", step+1, data, first)
				}
			}
			if len(k.seen) != 1 {
				t.Errorf("chosen %d times", len(k.seen))
			}
		})
	}
}

func TestATurnOnlyGrows(t *testing.T) {
	t.Parallel()
	deps := rules(map[string]catalog.Rule{"edit": {Requires: []string{"read"}}})
	k := setup(t, catalog.Options{Filter: filter(), Dependencies: deps}, builtins()...)
	check := func(step int, want []string, succeeded ...string) {
		t.Helper()
		if diff := cmp.Diff(want, k.step("1", "read and edit and grep", step, succeeded...)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", step, diff)
		}
	}
	check(1, []string{"bash", "read", "grep"}, "memory_save")
	check(2, []string{"bash", "read", "grep", "edit"}, "memory_save", "read")
	// It ran although it was not shown.
	check(3, []string{"bash", "read", "grep", "edit", "fetch"}, "memory_save", "read", "fetch")
	if ch := k.last("fetch"); !ch.Has(catalog.Used) {
		t.Errorf("fetch: %v", ch)
	}
	check(3, []string{"bash", "read", "grep", "edit", "fetch"}, "memory_save", "read", "fetch")

	// One tool is removed, one changes, one is added: the others keep their positions.
	changed := builtins()
	changed = slices.DeleteFunc(changed, func(d tools.Definition) bool { return d.Name == "grep" })
	changed[1].Description = "Reads a file, another way than before."
	changed = append(changed, tool("read_overflow", "Reads on in a long result.", "id"))
	k.set(changed...)
	check(4, []string{"bash", "read", "edit", "fetch", "read_overflow"}, "memory_save", "read", "fetch")
	offers := k.Tools(t.Context(), &agent.Turn{ID: "1", Origin: tools.Origin{Session: "s"}}, agent.View{Query: "read and edit and grep", Step: 4, Succeeded: []string{"memory_save", "read", "fetch"}})
	if offers[1].Description != "Reads a file, another way than before." {
		t.Errorf("read is shown as it was: %+v", offers[1])
	}
	if diff := cmp.Diff([]string{"bash", "fetch"}, k.show("2", "downloading pages", "memory_save", "read", "fetch")); diff != "" {
		t.Errorf("the next turn (-want +got):\n%s", diff)
	}
}

func TestAnotherProcessKeepsWhatMayHaveRun(t *testing.T) {
	t.Parallel()
	k := setup(t, catalog.Options{Filter: filter()}, builtins()...)
	if diff := cmp.Diff([]string{"bash", "edit", "grep"}, k.step("1", "grep something", 3, "edit")); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

func TestAgreementKeepsTheToolsOfTheTurnBefore(t *testing.T) {
	t.Parallel()
	k := setup(t, catalog.Options{Discovery: catalog.Discovery{TopK: 3, MinSimilarity: 0.3, MinToolsToFilter: 5}}, github()...)
	if diff := cmp.Diff([]string{"github:merge_pull_request"}, k.show("1", "can you merge the checks?")); diff != "" {
		t.Fatalf("shown (-want +got):\n%s", diff)
	}
	for i, text := range []string{"Yes, please do it!", "ok", "ja, mach das"} {
		if diff := cmp.Diff([]string{"github:merge_pull_request"}, k.show(fmt.Sprint("yes", i), text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
		if ch := k.last("github:merge_pull_request"); !ch.Has(catalog.Carried) {
			t.Errorf("%q: %v", text, ch)
		}
	}
	other := &agent.Turn{ID: "x", Origin: tools.Origin{Session: "another"}}
	if got := k.Tools(t.Context(), other, agent.View{Query: "yes", Step: 1}); len(got) != 0 {
		t.Errorf("another session: %v", names(got))
	}
}

func TestAllowList(t *testing.T) {
	t.Parallel()
	k := setup(t, catalog.Options{}, builtins()...)
	turn := &agent.Turn{ID: "1", Tools: tools.Only(func(name string) bool { return name == "read" })}
	if diff := cmp.Diff([]string{"read"}, names(k.Tools(t.Context(), turn, agent.View{Step: 1}))); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

func TestACutRankingDoesNotStay(t *testing.T) {
	t.Parallel()
	w := newWords("file", "page")
	ctx, cancel := context.WithCancel(t.Context())
	w.wait = func(ctx context.Context) error { cancel(); return ctx.Err() }
	k := setup(t, catalog.Options{Filter: filter(), Embedder: spend.NewEmbedder(w, spend.Cost{}, nil)}, builtins()...)
	turn := &agent.Turn{ID: "1", Origin: tools.Origin{Session: "s"}}
	k.Tools(ctx, turn, agent.View{Query: "a file", Step: 1})
	w.wait = nil
	k.Tools(t.Context(), turn, agent.View{Query: "a file", Step: 1})
	if k.ranked() != catalog.ByEmbedding {
		t.Errorf("ranked by %s", k.ranked())
	}
	if n := k.log.count("ranked by words"); n != 0 {
		t.Errorf("a stopped turn was taken for a failure")
	}
}

func TestManyTurnsAtOnce(t *testing.T) {
	t.Parallel()
	k := setup(t, catalog.Options{
		Filter: filter(), Discovery: catalog.Discovery{TopK: 3, MinSimilarity: 0.3}, Embedder: spend.NewEmbedder(newWords("file", "issue"), spend.Cost{}, nil), TAFC: catalog.TAFC{Enabled: true},
	}, slices.Concat(builtins(), github())...)
	want := k.show("0", "an issue about a file")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 100 {
				turn := &agent.Turn{ID: fmt.Sprint(i, "-", n), Origin: tools.Origin{Session: fmt.Sprint(i)}}
				got := names(k.Tools(t.Context(), turn, agent.View{Query: "an issue about a file", Step: 1}))
				if !slices.Equal(got, want) {
					t.Errorf("shown: %v, want %v", got, want)
					return
				}
				k.Thinks(builtins()[n%8])
			}
		})
	}
	wg.Wait()
}
