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
	"github.com/zephbot/zephbot/tools"
)

func byVectors(w *words, index catalog.Index) catalog.Options {
	return catalog.Options{Discovery: catalog.Discovery{TopK: 10, MinSimilarity: 0.3}, Embedder: w, Index: index, Model: "one"}
}

func TestSyncCounts(t *testing.T) {
	t.Parallel()
	index, w := catalog.NewMemory(), newWords("issue", "label")
	k := setup(t, byVectors(w, index), slices.Concat(builtins(), github(), files())...)
	sync := func(want catalog.SyncReport, embedded int) {
		t.Helper()
		got, err := k.Sync(t.Context())
		if err != nil || got != want {
			t.Errorf("sync = %+v, %v; want %+v", got, err, want)
		}
		if texts := w.take(); len(texts) != embedded+1 { // one to learn the dimensions
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
	k.set(changed[:5]...) // a whole server goes
	sync(catalog.SyncReport{Removed: 2, Unchanged: 5}, 0)
}

func TestPointsSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	index := &recorder{Index: catalog.NewMemory()}
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
	index, w := catalog.NewMemory(), newWords("issue", "label")
	first := setup(t, byVectors(w, index), slices.Concat(github(), files())...)
	if _, err := first.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := setup(t, byVectors(w, index), files()...) // the next process: github is not there yet
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
	index := catalog.NewMemory()
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
	index := catalog.NewMemory()
	k := setup(t, byVectors(newWords("issue", "label"), index), github()...)
	for _, only := range []string{"github:add_label", "github:list_issues"} {
		turn := &agent.Turn{ID: only, Allowed: func(name string) bool { return name == only }}
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
	index, w := catalog.NewMemory(), newWords("issue", "label")
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
	k := setup(t, catalog.Options{Filter: filter(), Embedder: newWords("page")}, builtins()...)
	late := tool("late", "A tool that comes while the turn is being looked at.")
	n := 0
	// The list of the turn is read first, the list for the index second.
	o := catalog.Options{Filter: filter(), Embedder: newWords("page"), Source: func(string, func(string) bool) []tools.Definition {
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
	index := &recorder{Index: catalog.NewMemory(), before: func() {
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
			index := &recorder{Index: catalog.NewMemory()}
			if where == "delete" {
				if err := index.Upsert(t.Context(), []catalog.Point{{Key: "github:old", Hash: "x", Vector: []float32{1, 1}}}); err != nil {
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
			if n := k.log.count("they are ranked by words"); n != 1 {
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

// recorder is an Index that keeps what it was given and fails on demand.
type recorder struct {
	catalog.Index
	mu     sync.Mutex
	points []catalog.Point
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

func (r *recorder) Upsert(ctx context.Context, points []catalog.Point) error {
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

func (r *recorder) Search(ctx context.Context, vector []float32, limit int) ([]catalog.Hit, error) {
	if err := r.fails("search"); err != nil {
		return nil, err
	}
	return r.Index.Search(ctx, vector, limit)
}

func TestMemory(t *testing.T) {
	t.Parallel()
	m := catalog.NewMemory()
	points := []catalog.Point{
		{Key: "a", Hash: "1", Vector: []float32{1, 0, 0, 0, 0}},
		{Key: "b", Hash: "2", Vector: []float32{2, 2, 0, 0, 0}},
		{Key: "zero", Vector: make([]float32, 5)},
		{Key: "other", Vector: []float32{1}},
		{Key: "c", Vector: []float32{-3, 0, 0, 0, 0}},
		{Key: "d", Vector: []float32{0, 0, 0, 0, 7}},
		{Key: "long", Vector: []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}},
	}
	if err := m.Upsert(t.Context(), points); err != nil {
		t.Fatal(err)
	}
	search := func(limit int, vector ...float32) []string {
		t.Helper()
		hits, err := m.Search(t.Context(), vector, limit)
		if err != nil {
			t.Fatal(err)
		}
		list := []string{}
		for _, h := range hits {
			list = append(list, fmt.Sprintf("%s %.2f", h.Key, h.Score))
		}
		return list
	}
	check := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("hits: %q, want %q", got, want)
		}
	}
	check(search(9, 5, 0, 0, 0, 0), "a 1.00", "b 0.71", "d 0.00", "zero 0.00", "c -1.00")
	check(search(1, 0, 0, 0, 0, 1), "d 1.00")
	check(search(0, 1, 0, 0, 0, 0))
	check(search(9, 1, 0))
	check(search(9, 1, 2, 3, 4, 5, 6, 7, 8, 9), "long 1.00")
	check(search(9, 9, 8, 7, 6, 5, 4, 3, 2, 1), "long 0.58") // 165 of 285
	if err := m.Delete(t.Context(), []string{"a", "d", "d", "nobody"}); err != nil {
		t.Fatal(err)
	}
	if err := m.Upsert(t.Context(), []catalog.Point{{Key: "b", Hash: "3", Vector: []float32{0, 1, 0, 0, 0}}, {Key: "e", Hash: "4", Vector: []float32{1, 0, 0, 0, 0}}}); err != nil {
		t.Fatal(err)
	}
	check(search(2, 5, 0, 0, 0, 0), "e 1.00", "b 0.00")
	hashes, err := m.Hashes(t.Context())
	if diff := cmp.Diff(map[string]string{"b": "3", "c": "", "e": "4", "long": "", "other": "", "zero": ""}, hashes); diff != "" || err != nil {
		t.Errorf("hashes (-want +got):\n%s%v", diff, err)
	}
}
