package catalog_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/tools"
)

var _ agent.Catalog = (*catalog.Catalog)(nil)

func none(tools.Origin, *tools.Overlay) []tools.Definition { return nil }

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		o    catalog.Options
		want string
	}{
		{catalog.Options{}, "Source is missing"},
		{catalog.Options{Source: none, Discovery: catalog.Discovery{Strategy: "best"}}, `discovery strategy "best": want Embedding, Llm or None`},
		{catalog.Options{Source: none, Discovery: catalog.Discovery{Strategy: "llm"}}, "need a model that chooses"},
		{catalog.Options{Source: none, Discovery: catalog.Discovery{Strategy: "none"}, Pruning: catalog.Pruning{Enabled: true}}, "need a model that chooses"},
		{catalog.Options{Source: none, Filter: catalog.Filter{MinSimilarity: math.NaN()}}, "filter: min similarity NaN: want 0 to 1"},
		{catalog.Options{Source: none, Discovery: catalog.Discovery{MinSimilarity: 1.5}}, "discovery: min similarity 1.5: want 0 to 1"},
		{catalog.Options{Source: none, Discovery: catalog.Discovery{TopK: -1}}, "discovery: top k -1: want 0 or more"},
		{catalog.Options{Source: none, Dependencies: catalog.Dependencies{BoostPerDep: math.Inf(1)}}, "boost per dependency +Inf: want 0 or more"},
	}
	for _, tt := range tests {
		_, err := catalog.New(tt.o)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error = %v, want %q", err, tt.want)
		}
	}
}

func TestNoTools(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"Embedding", "Llm", "None"} {
		o := catalog.Options{Filter: filter(), Discovery: catalog.Discovery{Strategy: strategy}, Chooser: spend.NewModel("choose", &chooser{}), Embedder: spend.NewEmbedder(newWords("a"), spend.Cost{}, nil), Pruning: catalog.Pruning{Enabled: true}}
		if got := setup(t, o).show("1", "anything a person says"); len(got) != 0 {
			t.Errorf("%s: shown: %v", strategy, got)
		}
	}
}

func TestChoiceIsLogged(t *testing.T) {
	t.Parallel()
	log := &lines{}
	c, err := catalog.New(catalog.Options{
		Source: func(tools.Origin, *tools.Overlay) []tools.Definition { return builtins() }, Filter: filter(), Log: zerolog.New(log),
		Dependencies: rules(map[string]catalog.Rule{"edit": {Requires: []string{"read"}}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Tools(t.Context(), &agent.Turn{ID: "t1"}, agent.View{Query: "edit or grep", Step: 1})
	for _, want := range []string{`"bash":"AlwaysOn"`, `"grep":"NameMentioned`, `"edit":"NameMentioned DependencyUnmet`, `missing [read]`, `"turn":"t1"`, `"ranked":"words"`} {
		if log.count(want) != 1 {
			t.Errorf("the log lacks %s: %s", want, log.text.String())
		}
	}
}

// TestTheOldestTurnIsForgotten has more turns than are remembered: tools are chosen again for the first, not for the
// last.
func TestTheOldestTurnIsForgotten(t *testing.T) {
	t.Parallel()
	k := setup(t, catalog.Options{}, builtins()...)
	const many = 513
	for i := range many {
		k.show(fmt.Sprint(i), "x")
	}
	k.show(fmt.Sprint(many-1), "x")
	if len(k.seen) != many {
		t.Errorf("chosen %d times, want %d", len(k.seen), many)
	}
	k.show("0", "x")
	if len(k.seen) != many+1 {
		t.Errorf("chosen %d times, want %d", len(k.seen), many+1)
	}
}
