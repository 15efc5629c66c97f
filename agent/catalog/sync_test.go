package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/tools"
)

// TestATurnDoesNotWaitLongForASync has a sync that hangs: a turn continues with words after some seconds, and a second
// sync gives up with its context.
func TestATurnDoesNotWaitLongForASync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		index := &recorder{Index: knn.NewMemory(), before: func() { <-gate }}
		k := setup(t, byVectors(newWords("issue", "label"), index), github()...)
		first := make(chan error, 1)
		go func() {
			_, err := k.Sync(t.Context())
			first <- err
		}()
		synctest.Wait()
		if diff := cmp.Diff([]string{"github:add_label"}, k.show("1", "label")); diff != "" || k.ranked() != catalog.ByWords {
			t.Errorf("shown by %s (-want +got):\n%s", k.ranked(), diff)
		}
		stopped, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := k.Sync(stopped); !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v", err)
		}
		second := make(chan catalog.SyncReport, 1)
		go func() {
			report, err := k.Sync(t.Context())
			if err != nil {
				t.Errorf("second sync: %v", err)
			}
			second <- report
		}()
		synctest.Wait()
		close(gate)
		if err := <-first; err != nil {
			t.Errorf("first sync: %v", err)
		}
		if report := <-second; report != (catalog.SyncReport{Unchanged: 6}) {
			t.Errorf("second sync: %+v", report)
		}
		if k.show("2", "label"); k.ranked() != catalog.ByEmbedding {
			t.Errorf("ranked by %s", k.ranked())
		}
	})
}

// embedder is an embedding function.
type embedder func(texts []string) ([][]float32, error)

func (e embedder) Embed(_ context.Context, texts []string) ([][]float32, error) { return e(texts) }

func TestASyncThatIsCutShortGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	var defs []tools.Definition
	for i := range 150 {
		defs = append(defs, tool(fmt.Sprintf("many:tool_%d", i), "Does one of very many things."))
	}
	calls, embedded := 0, 0
	index := knn.NewMemory()
	k := setup(t, catalog.Options{Index: index, Embedder: spend.NewEmbedder(embedder(func(texts []string) ([][]float32, error) {
		if calls++; calls == 3 { // the first call learns the dimensions
			return nil, errDown
		}
		embedded += len(texts)
		return slices.Repeat([][]float32{{1, 2}}, len(texts)), nil
	}), spend.Cost{}, nil)}, defs...)
	if _, err := k.Sync(t.Context()); !errors.Is(err, errDown) || !strings.Contains(err.Error(), "sync the index of mcp tools: embed: ") {
		t.Errorf("error = %v", err)
	}
	report, err := k.Sync(t.Context())
	if want := (catalog.SyncReport{Added: 86, Unchanged: 64}); err != nil || report != want {
		t.Errorf("sync = %+v, %v; want %+v", report, err, want)
	}
	if embedded != 152 {
		t.Errorf("embedded %d texts", embedded)
	}
}

func TestSyncRefusesOddVectors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		give func(n int) [][]float32
		want string
	}{
		{"none for the probe", func(int) [][]float32 { return nil }, "no vector"},
		{"empty", func(n int) [][]float32 { return make([][]float32, n) }, "no vector"},
		{"too few", func(int) [][]float32 { return [][]float32{{1}} }, "1 vectors for 6 texts"},
		{"of another length", func(n int) [][]float32 {
			if n == 1 {
				return [][]float32{{1}}
			}
			return slices.Repeat([][]float32{{1, 2}}, n)
		}, "a vector of 2 dimensions among those of 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			give := embedder(func(texts []string) ([][]float32, error) { return tt.give(len(texts)), nil })
			for _, o := range []catalog.Options{{Embedder: spend.NewEmbedder(give, spend.Cost{}, nil)}, {Embedder: spend.NewEmbedder(give, spend.Cost{}, nil), Filter: filter()}} {
				defs := github()
				if o.Filter.Enabled {
					defs = builtins()[:6]
				}
				k := setup(t, o, defs...)
				if _, err := k.Sync(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error = %v, want %q", err, tt.want)
				}
				if k.show("1", "what is a label?"); k.ranked() != catalog.ByWords {
					t.Errorf("ranked by %s", k.ranked())
				}
			}
		})
	}
}

func TestSyncWithoutNeed(t *testing.T) {
	t.Parallel()
	w := newWords("a")
	for _, o := range []catalog.Options{{}, {Embedder: spend.NewEmbedder(w, spend.Cost{}, nil), Discovery: catalog.Discovery{Strategy: "None"}}} {
		if report, err := setup(t, o, github()...).Sync(t.Context()); err != nil || report != (catalog.SyncReport{}) {
			t.Errorf("sync = %+v, %v", report, err)
		}
	}
	if len(w.take()) != 0 {
		t.Error("texts were embedded for nobody")
	}
}

// TestNestedParametersAreFound ranks by the name of a parameter deep in the schema.
func TestNestedParametersAreFound(t *testing.T) {
	t.Parallel()
	deep := tool("github:bulk", "Changes many things at once.")
	deep.Schema = []byte(`{"type":"object","properties":{"items":{"type":"array","items":{"anyOf":[{"type":"object","properties":{"milestone":{"type":"string"}}}]}}}}`)
	k := setup(t, catalog.Options{Discovery: catalog.Discovery{TopK: 3, MinSimilarity: 0.3}}, append(github(), deep)...)
	if diff := cmp.Diff([]string{"github:bulk"}, k.show("1", "set the milestone")); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}
