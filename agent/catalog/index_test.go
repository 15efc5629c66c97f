package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/tools"
)

func byVectors(w *words, index knn.Index) catalog.Options {
	return catalog.Options{Discovery: catalog.Discovery{TopK: 10, MinSimilarity: 0.3}, Embedder: spend.NewEmbedder(w, spend.Cost{}, nil), Index: index, Model: "one"}
}

func TestSyncCounts(t *testing.T) {
	t.Parallel()
	index, w := knn.NewMemory(), newWords("issue", "label")
	k := setup(t, byVectors(w, index), slices.Concat(builtins(), github(), files())...)
	sync := func(want catalog.SyncReport, embedded int) {
		t.Helper()
		got, err := k.Sync(t.Context())
		if err != nil || got != want {
			t.Errorf("sync = %+v, %v; want %+v", got, err, want)
		}
		if texts := w.take(); len(texts) != embedded+1 { // one to learn the number of dimensions
			t.Errorf("embedded %d texts: %q", len(texts), texts)
		}
	}
	sync(catalog.SyncReport{Added: 8}, 8)
	sync(catalog.SyncReport{Unchanged: 8}, 0)
	changed := github()
	changed[0].Description += " Really."
	changed[1].Schema = object("other")
	k.set(slices.Concat(changed[:5], files())...)
	sync(catalog.SyncReport{Updated: 2, Removed: 1, Unchanged: 5}, 2)
	k.set(changed[:5]...) // a whole server is removed
	sync(catalog.SyncReport{Removed: 2, Unchanged: 5}, 0)
}

func TestPointsSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	index := &recorder{Index: knn.NewMemory()}
	d := tool("github:create_issue", "Opens an\nissue. "+strings.Repeat("x", 300), "repo")
	w := newWords("issue")
	k := setup(t, byVectors(w, index), d)
	if _, err := k.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"key": "github:create_issue", "server_id": "github", "tool_name": "create_issue", "description": d.Description}
	if len(index.points) != 1 || !cmp.Equal(index.points[0].Payload, want) || index.points[0].Key != d.Name || len(index.points[0].Hash) != 64 {
		t.Errorf("points: %+v", index.points)
	}
	if text := w.take()[1]; text != "github:create_issue: Opens an issue. "+strings.Repeat("x", 184) {
		t.Errorf("embedded text: %q", text)
	}
}

func TestAServerThatStillConnectsKeepsItsPoints(t *testing.T) {
	t.Parallel()
	index, w := knn.NewMemory(), newWords("issue", "label")
	first := setup(t, byVectors(w, index), slices.Concat(github(), files())...)
	if _, err := first.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := setup(t, byVectors(w, index), files()...) // the next process, where github is not connected yet
	if got, err := second.Sync(t.Context()); err != nil || got != (catalog.SyncReport{Unchanged: 2}) {
		t.Errorf("sync = %+v, %v", got, err)
	}
	second.set(slices.Concat(github(), files())...)
	if got, err := second.Sync(t.Context()); err != nil || got != (catalog.SyncReport{Unchanged: 8}) {
		t.Errorf("sync = %+v, %v", got, err)
	}
}

func TestAnotherModelEmbedsAnew(t *testing.T) {
	t.Parallel()
	index := knn.NewMemory()
	for i, o := range []catalog.Options{byVectors(newWords("issue", "label"), index), byVectors(newWords("issue", "label", "commit"), index), byVectors(newWords("issue", "label", "commit"), index)} {
		if i == 2 {
			o.Model = "two"
		}
		k := setup(t, o, github()...)
		got, err := k.Sync(t.Context())
		want := catalog.SyncReport{Updated: 6}
		if i == 0 {
			want = catalog.SyncReport{Added: 6}
		}
		if err != nil || got != want {
			t.Errorf("model %d: sync = %+v, %v", i, got, err)
		}
	}
}

func TestAnAllowListDoesNotTouchTheIndex(t *testing.T) {
	t.Parallel()
	index := knn.NewMemory()
	k := setup(t, byVectors(newWords("issue", "label"), index), github()...)
	for _, only := range []string{"github:add_label", "github:list_issues"} {
		turn := &agent.Turn{ID: only, Tools: tools.Only(func(name string) bool { return name == only })}
		if got := names(k.Tools(t.Context(), turn, agent.View{Query: "a label, an issue", Step: 1})); !slices.Equal(got, []string{only}) {
			t.Errorf("shown: %v", got)
		}
	}
	hashes, err := index.Hashes(t.Context())
	if err != nil || len(hashes) != 6 {
		t.Errorf("points: %v, %v", sorted(hashes), err)
	}
}

func TestTheMessageIsEmbeddedOnceATurn(t *testing.T) {
	t.Parallel()
	w := newWords("issue", "label")
	k := setup(t, byVectors(w, nil), github()...)
	k.step("1", "a label", 1)
	if texts := w.take(); len(texts) != 7 || texts[0] != "a label" {
		t.Errorf("embedded: %q", texts)
	}
	k.step("1", "a label", 2, "github:fork")
	k.set(append(github(), tool("github:label_all", "Puts a label on everything there is."))...)
	if diff := cmp.Diff([]string{"github:add_label", "github:fork", "github:label_all"}, k.step("1", "a label", 3, "github:fork")); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	if texts := w.take(); !slices.Equal(texts, []string{"github:label_all: Puts a label on everything there is."}) {
		t.Errorf("embedded: %q", texts)
	}
}

func TestWhatSomebodyElseRemovedIsMadeAgain(t *testing.T) {
	t.Parallel()
	index, w := knn.NewMemory(), newWords("issue", "label")
	k := setup(t, byVectors(w, index), github()...)
	k.show("1", "label")
	if err := index.Delete(t.Context(), []string{"github:add_label", "nobody"}); err != nil {
		t.Fatal(err)
	}
	// Without its vector the tool is ranked by words.
	if diff := cmp.Diff([]string{"github:add_label"}, k.show("2", "label")); diff != "" || !k.last("github:add_label").Has(catalog.NoEmbedding) {
		t.Errorf("shown (-want +got):\n%s%v", diff, k.last("github:add_label"))
	}
	k.show("3", "label")
	if k.last("github:add_label").Has(catalog.NoEmbedding) {
		t.Error("the point was not made again")
	}
}

func TestABuiltInWithoutVectorIsShown(t *testing.T) {
	t.Parallel()
	k := setup(t, catalog.Options{Filter: filter(), Embedder: spend.NewEmbedder(newWords("page"), spend.Cost{}, nil)}, builtins()...)
	late := tool("late", "A tool that comes while the turn is being looked at.")
	n := 0
	// The turn's list is read first, the index's list second.
	o := catalog.Options{Filter: filter(), Embedder: spend.NewEmbedder(newWords("page"), spend.Cost{}, nil), Source: func(tools.Origin, *tools.Overlay) []tools.Definition {
		if n++; n == 1 {
			return append(builtins(), late)
		}
		return builtins()
	}}
	c, err := catalog.New(o)
	if err != nil {
		t.Fatal(err)
	}
	k.Catalog = c
	if got := k.show("1", "page"); !has(got, "late", "fetch") || has(got, "edit") {
		t.Errorf("shown: %v", got)
	}
}

func TestOneSyncForMany(t *testing.T) {
	t.Parallel()
	gate, arrived := make(chan struct{}), make(chan struct{}, 100)
	w := newWords("issue", "label")
	index := &recorder{Index: knn.NewMemory(), before: func() {
		arrived <- struct{}{}
		<-gate
	}}
	k := setup(t, byVectors(w, index), github()...)
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			if i == 0 {
				if _, err := k.Sync(t.Context()); err != nil {
					t.Errorf("sync: %v", err)
				}
				return
			}
			k.show(fmt.Sprint(i), "label")
		})
	}
	<-arrived
	close(gate)
	wg.Wait()
	if len(index.points) != 6 {
		t.Errorf("%d points stored, want 6", len(index.points))
	}
}

func TestABrokenIndexRanksByWords(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"hashes", "upsert", "delete", "search"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			index := &recorder{Index: knn.NewMemory()}
			if where == "delete" {
				if err := index.Upsert(t.Context(), []knn.Point{{Key: "github:old", Hash: "x", Vector: []float32{1, 1}}}); err != nil {
					t.Fatal(err)
				}
			}
			index.broken = where
			clock := newClock()
			o := byVectors(newWords("issue", "label"), index)
			o.Now = clock.now
			k := setup(t, o, github()...)
			for _, turn := range []string{"1", "2"} {
				if diff := cmp.Diff([]string{"github:add_label"}, k.show(turn, "label")); diff != "" || k.ranked() != catalog.ByWords {
					t.Errorf("shown by %s (-want +got):\n%s", k.ranked(), diff)
				}
			}
			if n := k.log.count("embedding failed: tools are ranked by words"); n != 1 {
				t.Errorf("said %d times", n)
			}
			index.mend()
			clock.add(31)
			if k.show("3", "label"); k.ranked() != catalog.ByEmbedding {
				t.Errorf("ranked by %s after the index came back", k.ranked())
			}
		})
	}
}

// recorder is an Index that records its input and fails on demand.
type recorder struct {
	knn.Index
	mu     sync.Mutex
	points []knn.Point
	broken string
	before func() // of Upsert
}

func (r *recorder) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = ""
}

func (r *recorder) fails(where string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken == where {
		return errDown
	}
	return nil
}

func (r *recorder) Hashes(ctx context.Context) (map[string]string, error) {
	if err := r.fails("hashes"); err != nil {
		return nil, err
	}
	return r.Index.Hashes(ctx)
}

func (r *recorder) Upsert(ctx context.Context, points []knn.Point) error {
	if r.before != nil {
		r.before()
	}
	if err := r.fails("upsert"); err != nil {
		return err
	}
	r.mu.Lock()
	r.points = append(r.points, points...)
	r.mu.Unlock()
	return r.Index.Upsert(ctx, points)
}

func (r *recorder) Delete(ctx context.Context, keys []string) error {
	if err := r.fails("delete"); err != nil {
		return err
	}
	return r.Index.Delete(ctx, keys)
}

func (r *recorder) Search(ctx context.Context, vector []float32, limit int) ([]knn.Hit, error) {
	if err := r.fails("search"); err != nil {
		return nil, err
	}
	return r.Index.Search(ctx, vector, limit)
}
