package recall_test

import (
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/knn"

	"github.com/zephbot/zephbot/agent/recall"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/tools/code"
)

// wordModel is a model whose vectors say which words a text has.
type wordModel struct {
	texts atomic.Int64 // that it was asked for
	down  atomic.Bool
}

// Embed implements the model.
func (w *wordModel) Embed(_ context.Context, texts []string) ([][]float32, error) {
	if w.down.Load() {
		return nil, errors.New("the model is down")
	}
	w.texts.Add(int64(len(texts)))
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = make([]float32, 256)
		for word := range strings.FieldsSeq(text) {
			h := fnv.New32a()
			_, _ = h.Write([]byte(word))
			out[i][h.Sum32()%256]++
		}
	}
	return out, nil
}

// tree is a directory of passages.
type tree struct {
	mu    sync.Mutex
	roots map[string][]code.Passage
}

func (t *tree) set(root string, list ...code.Passage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.roots[root] = list
}

func (t *tree) passages(_ context.Context, root string) iter.Seq2[code.Passage, error] {
	t.mu.Lock()
	list := t.roots[root]
	t.mu.Unlock()
	return func(yield func(code.Passage, error) bool) {
		for _, p := range list {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func setup(t *testing.T) (*recall.Code, *tree, *wordModel) {
	t.Helper()
	model, files := &wordModel{}, &tree{roots: map[string][]code.Passage{}}
	index, err := recall.New(recall.Options{
		Name: "code", Spaces: knn.NewSpaces(), Model: "m", Embedder: spend.NewEmbedder(model, spend.Cost{}, nil), Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return recall.NewCode(recall.CodeOptions{Index: index, Passages: files.passages, Log: zerolog.Nop()}), files, model
}

func passage(path string, start int, text string) code.Passage {
	return code.Passage{Key: path + "#0", Path: path, Start: start, End: start + 4, Symbol: "f", Text: text}
}

// near requires these passages as "path:start", best first.
func near(t *testing.T, c *recall.Code, root, question string, want ...string) {
	t.Helper()
	list, err := c.Near(t.Context(), root, question, 5)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, n := range list {
		if n.Score > 0.01 {
			got = append(got, n.Path+":"+string(rune('0'+n.Start)))
		}
	}
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		t.Errorf("%q in %s (-want +got):\n%s", question, root, diff)
	}
}

func TestLinesThatMoveCostNothing(t *testing.T) {
	t.Parallel()
	c, files, model := setup(t)
	files.set("/a", passage("x.go", 1, "open the door"), passage("x.go", 6, "close it"), passage("y.go", 1, "close it"))
	if err := c.Sync(t.Context(), "/a"); err != nil {
		t.Fatal(err)
	}
	near(t, c, "/a", "door", "x.go:1")
	asked := model.texts.Load()
	files.set("/a", passage("x.go", 1, "new"), passage("x.go", 3, "open the door"), passage("x.go", 9, "close it"), passage("y.go", 2, "close it"))
	if err := c.Sync(t.Context(), "/a"); err != nil {
		t.Fatal(err)
	}
	if got := model.texts.Load() - asked; got != 1 {
		t.Errorf("embedded %d passages, want the new one", got)
	}
	near(t, c, "/a", "door", "x.go:3")
	near(t, c, "/a", "close", "x.go:9", "y.go:2")
}

func TestRootsAreKeptApart(t *testing.T) {
	t.Parallel()
	c, files, _ := setup(t)
	long := "/" + strings.Repeat("long/", 200)
	for _, root := range []string{"/a", "/a/b", long} {
		files.set(root, passage("x.go", 1, "door of "+root))
		if err := c.Sync(t.Context(), root); err != nil {
			t.Fatal(err)
		}
	}
	near(t, c, "/a", "/a/b door", "x.go:1")
	near(t, c, "/b", "door")
	if err := c.Forget(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	near(t, c, long, "door")
	near(t, c, "/a/b", "door", "x.go:1")
}

func TestTheSameTextTwiceInAFile(t *testing.T) {
	t.Parallel()
	c, files, _ := setup(t)
	files.set("/a", passage("x.go", 1, "same"), passage("x.go", 6, "same"))
	if err := c.Sync(t.Context(), "/a"); err != nil {
		t.Fatal(err)
	}
	near(t, c, "/a", "same", "x.go:1", "x.go:6")
}

// TestRun: what is reported is embedded, and what failed is tried again.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, files, model := setup(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		files.set("/a", passage("x.go", 1, "open the door"))
		c.Indexed("/a")
		synctest.Wait()
		near(t, c, "/a", "door", "x.go:1")
		model.down.Store(true)
		files.set("/b", passage("y.go", 1, "a window"))
		c.Indexed("/b")
		synctest.Wait()
		model.down.Store(false)
		near(t, c, "/b", "window")
		<-time.After(time.Minute)
		synctest.Wait()
		near(t, c, "/b", "window", "y.go:1")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestTheLogNamesNoCode: only paths and numbers are logged.
func TestTheLogNamesNoCode(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	_, files, model := setup(t)
	index, err := recall.New(recall.Options{
		Name: "code", Spaces: knn.NewSpaces(), Model: "m", Embedder: spend.NewEmbedder(model, spend.Cost{}, nil), Log: zerolog.New(&log),
	})
	if err != nil {
		t.Fatal(err)
	}
	c := recall.NewCode(recall.CodeOptions{Index: index, Passages: files.passages, Log: zerolog.New(&log)})
	files.set("/a", passage("x.go", 1, "the secret sauce"))
	if err := c.Sync(t.Context(), "/a"); err != nil || strings.Contains(log.String(), "sauce") || !strings.Contains(log.String(), `"embedded":1`) {
		t.Errorf("%v: %s", err, log.String())
	}
}
