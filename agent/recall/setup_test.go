package recall_test

import (
	"context"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/agent/recall"
	"github.com/zephbot/zephbot/agent/spend"
)

// words is a model whose vectors say which words a text has. It counts the texts that it was asked for.
type words struct {
	size int
	salt string // another model puts the words elsewhere

	mu     sync.Mutex
	asked  []string
	refuse func(ctx context.Context, texts []string) error // nil = nothing
}

// Embed implements the model.
func (w *words) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuse != nil {
		if err := w.refuse(ctx, texts); err != nil {
			return nil, err
		}
	}
	w.asked = append(w.asked, texts...)
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = make([]float32, w.size)
		for word := range strings.FieldsSeq(text) {
			h := fnv.New32a()
			_, _ = h.Write([]byte(w.salt + word))
			out[i][h.Sum32()%uint32(w.size)]++ //nolint:gosec // small
		}
	}
	return out, nil
}

// take returns the texts that were embedded since the last call.
func (w *words) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}

// kept is a cache that forgets nothing.
type kept struct {
	mu     sync.Mutex
	values map[string][]byte
}

// Get implements recall.Cache.
func (k *kept) Get(_ context.Context, group, key string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.values[group+" "+key], nil
}

// Set implements recall.Cache.
func (k *kept) Set(_ context.Context, group, key string, value []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.values[group+" "+key] = slices.Clone(value)
	return nil
}

func (w *words) paid() *spend.Embedder { return spend.NewEmbedder(w, spend.Cost{}, nil) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// index opens an index over spaces with a model of a name.
func index(t testing.TB, spaces knn.Spaces, name string, model *words, change ...func(*recall.Options)) *recall.Index {
	t.Helper()
	o := recall.Options{Name: "code", Spaces: spaces, Model: name, Embedder: model.paid(), Log: zerolog.Nop()}
	for _, c := range change {
		c(&o)
	}
	x, err := recall.New(o)
	check(t, err)
	return x
}

func doc(key, text string, payload ...string) recall.Doc {
	d := recall.Doc{Key: key, Text: text}
	for i := 0; i < len(payload); i += 2 {
		if d.Payload == nil {
			d.Payload = map[string]string{}
		}
		d.Payload[payload[i]] = payload[i+1]
	}
	return d
}

// synced syncs a scope and compares the report.
func synced(t *testing.T, x *recall.Index, scope string, want recall.Report, docs ...recall.Doc) {
	t.Helper()
	got, err := x.Sync(t.Context(), scope, recall.Docs(docs...), nil)
	check(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// finds compares the keys of the hits that have a score.
func finds(t *testing.T, x *recall.Index, scopes []string, text string, want ...string) []knn.Hit {
	t.Helper()
	hits, err := x.Search(t.Context(), scopes, text, 50)
	check(t, err)
	got := []string{}
	for _, h := range hits {
		if h.Score > 0.01 {
			got = append(got, h.Scope+":"+h.Key)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		t.Errorf("%q in %v (-want +got):\n%s", text, scopes, diff)
	}
	return hits
}

func embedded(t *testing.T, model *words, want ...string) {
	t.Helper()
	got := model.take()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("embedded %q, want %q", got, want)
	}
}
