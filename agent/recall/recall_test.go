package recall_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/agent/recall"
	"github.com/zephbot/zephbot/agent/spend"
)

func TestSyncEmbedsOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	model := &words{size: 512}
	spaces := knn.NewSpaces()
	x := index(t, spaces, "m", model)
	synced(t, x, "a", recall.Report{Added: 3}, doc("1", "open the door"), doc("2", "close the window", "line", "7"), doc("3", "paint"))
	embedded(t, model, "open the door", "close the window", "paint")
	synced(t, x, "a", recall.Report{Updated: 1, Restated: 1, Removed: 1, Added: 2},
		doc("1", "open the gate"), doc("2", "close the window", "line", "9"), doc("4", "new"), doc("5", "paint"))
	embedded(t, model, "open the gate", "new", "paint")
	synced(t, x, "a", recall.Report{Unchanged: 4},
		doc("1", "open the gate"), doc("2", "close the window", "line", "9"), doc("4", "new"), doc("5", "paint"))
	embedded(t, model)
	synced(t, x, "a", recall.Report{Removed: 4})
	finds(t, x, []string{"a"}, "paint")
}

func TestSyncRestatesPayloads(t *testing.T) {
	t.Parallel()
	model := &words{size: 512}
	x := index(t, knn.NewSpaces(), "m", model)
	synced(t, x, "a", recall.Report{Added: 1}, doc("1", "open the door", "line", "7"))
	model.take()
	synced(t, x, "a", recall.Report{Restated: 1}, doc("1", "open the door", "line", "9"))
	embedded(t, model)
	hits := finds(t, x, []string{"a"}, "door", "a:1")
	if diff := cmp.Diff(map[string]string{"line": "9"}, hits[0].Payload); diff != "" {
		t.Error(diff)
	}
	embedded(t, model, "door")
}

func TestScopesAreKeptApart(t *testing.T) {
	t.Parallel()
	x := index(t, knn.NewSpaces(), "m", &words{size: 512})
	synced(t, x, "person:1", recall.Report{Added: 1}, doc("k", "the secret garden"))
	synced(t, x, "person:2", recall.Report{Added: 1}, doc("k", "the public garden"))
	finds(t, x, []string{"person:1"}, "garden", "person:1:k")
	finds(t, x, []string{"person:2"}, "secret")
	finds(t, x, []string{"person:1", "person:2"}, "garden", "person:1:k", "person:2:k")
	finds(t, x, []string{"person"}, "garden")
	for _, scopes := range [][]string{nil, {""}, {"person:1", ""}} {
		if _, err := x.Search(t.Context(), scopes, "garden", 5); !errors.Is(err, knn.ErrNoScope) {
			t.Errorf("search in %q: %v, want that a scope is missing", scopes, err)
		}
	}
	_, err := x.Sync(t.Context(), "", recall.Docs(doc("k", "x")), nil)
	for what, err := range map[string]error{
		"sync": err, "put": x.Put(t.Context(), "", doc("k", "x")), "delete": x.Delete(t.Context(), "", "k"), "forget": x.Forget(t.Context(), ""),
	} {
		if !errors.Is(err, knn.ErrNoScope) {
			t.Errorf("%s: %v, want that a scope is missing", what, err)
		}
	}
	check(t, x.Forget(t.Context(), "person:1"))
	finds(t, x, []string{"person:1"}, "garden")
	finds(t, x, []string{"person:2"}, "garden", "person:2:k")
}

func TestPutAndDelete(t *testing.T) {
	t.Parallel()
	x := index(t, knn.NewSpaces(), "m", &words{size: 512})
	check(t, x.Put(t.Context(), "a", doc("1", "red apple"), doc("2", "green apple")))
	check(t, x.Put(t.Context(), "a", doc("2", "green pear")))
	check(t, x.Put(t.Context(), "a"))
	finds(t, x, []string{"a"}, "apple", "a:1")
	check(t, x.Delete(t.Context(), "a", "1", "unknown"))
	finds(t, x, []string{"a"}, "red green", "a:2")
}

// TestAnyEditsEndLikeAFreshIndex: after any sequence of edits, interrupted or not, the index equals one that is made at
// once of what is left.
func TestAnyEditsEndLikeAFreshIndex(t *testing.T) {
	t.Parallel()
	text := rapid.Custom(func(r *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), 1, 6).Draw(r, "words"), " ")
	})
	rapid.Check(t, func(r *rapid.T) {
		model, spaces := &words{size: 64}, knn.NewSpaces()
		x := index(t, spaces, "m", model)
		docs := map[string]recall.Doc{}
		list := func() []recall.Doc {
			keys := slices.Sorted(maps.Keys(docs))
			all := make([]recall.Doc, len(keys))
			for i, key := range keys {
				all[i] = docs[key]
			}
			return all
		}
		for range rapid.IntRange(1, 8).Draw(r, "rounds") {
			for range rapid.IntRange(0, 6).Draw(r, "edits") {
				key := rapid.SampledFrom([]string{"k1", "k2", "k3", "k4", "k5"}).Draw(r, "key")
				if rapid.Bool().Draw(r, "remove") {
					delete(docs, key)
				} else {
					docs[key] = doc(key, text.Draw(r, "text"), "line", rapid.SampledFrom([]string{"1", "2"}).Draw(r, "line"))
				}
			}
			stop, left := errors.New("stopped"), rapid.IntRange(0, 12).Draw(r, "stop after")
			_, err := x.Sync(t.Context(), "s", func(yield func(recall.Doc, error) bool) {
				for i, d := range list() {
					if i == left {
						yield(recall.Doc{}, stop)
						return
					}
					if !yield(d, nil) {
						return
					}
				}
			}, nil)
			if err != nil && !errors.Is(err, stop) {
				r.Fatal(err)
			}
		}
		if _, err := x.Sync(t.Context(), "s", recall.Docs(list()...), nil); err != nil {
			r.Fatal(err)
		}
		fresh := index(t, knn.NewSpaces(), "m", &words{size: 64})
		if _, err := fresh.Sync(t.Context(), "s", recall.Docs(list()...), nil); err != nil {
			r.Fatal(err)
		}
		for _, q := range []string{"a", "b c", "d e f"} {
			got, err := x.Search(t.Context(), []string{"s"}, q, 50)
			want, err2 := fresh.Search(t.Context(), []string{"s"}, q, 50)
			if diff := cmp.Diff(want, got); diff != "" || err != nil || err2 != nil {
				r.Fatalf("%q (-fresh +edited):\n%s%v %v", q, diff, err, err2)
			}
		}
	})
}

func TestAnotherModelIsBuiltBesideTheOldOne(t *testing.T) {
	t.Parallel()
	spaces := knn.NewSpaces()
	old := &words{size: 512, salt: "old"}
	x := index(t, spaces, "old", old)
	docs := []recall.Doc{doc("1", "red apple"), doc("2", "green pear")}
	synced(t, x, "a", recall.Report{Added: 2}, docs...)
	synced(t, x, "b", recall.Report{Added: 1}, doc("3", "yellow banana"))

	fresh := &words{size: 256, salt: "new"}
	x = index(t, spaces, "new", fresh, func(o *recall.Options) {
		o.Former = func(model string) *spend.Embedder {
			if model != "old" {
				t.Errorf("asked for the model %q", model)
			}
			return old.paid()
		}
	})
	finds(t, x, []string{"a"}, "apple", "a:1") // answered by the old one
	embedded(t, fresh)
	check(t, x.Put(t.Context(), "a", doc("4", "blue plum")))
	finds(t, x, []string{"a"}, "plum", "a:4")
	half, stop := false, errors.New("stopped")
	_, err := x.Sync(t.Context(), "a", func(yield func(recall.Doc, error) bool) {
		for i := range 200 {
			if !yield(doc(fmt.Sprint("many", i), fmt.Sprint("filler", i)), nil) {
				return
			}
		}
		hits, err := x.Search(t.Context(), []string{"a"}, "pear", 1)
		half = err == nil && len(hits) == 1 && hits[0].Key == "2" // while the new one is half done
		yield(recall.Doc{}, stop)
	}, nil)
	if !errors.Is(err, stop) || !half {
		t.Errorf("the first attempt: %v; found meanwhile: %v", err, half)
	}
	docs = append(docs, doc("4", "blue plum"))
	synced(t, x, "a", recall.Report{Added: 2, Unchanged: 1, Removed: 192}, docs...)
	fresh.take()
	old.take()
	finds(t, x, []string{"a"}, "apple", "a:1")
	embedded(t, old)
	finds(t, x, []string{"a", "b"}, "banana apple", "a:1", "b:3") // one of each
	embedded(t, old, "banana apple")
	synced(t, x, "b", recall.Report{Added: 1}, doc("3", "yellow banana"))
	kinds, err := spaces.Kinds(t.Context(), "code")
	if diff := cmp.Diff([]knn.Kind{{Name: "code", Model: "new", Size: 256}}, kinds); diff != "" || err != nil {
		t.Errorf("kinds: %s%v", diff, err)
	}
}

func TestAnotherLengthOfTheSameModel(t *testing.T) {
	t.Parallel()
	spaces, store := knn.NewSpaces(), &kept{values: map[string][]byte{}}
	cached := func(o *recall.Options) { o.Cache = store }
	model := &words{size: 512}
	x := index(t, spaces, "m", model, cached)
	docs := []recall.Doc{doc("1", "red apple"), doc("2", "green pear")}
	synced(t, x, "a", recall.Report{Added: 2}, docs...)
	model.size = 256
	synced(t, x, "a", recall.Report{Added: 3}, append(docs, doc("3", "blue plum"))...)
	finds(t, x, []string{"a"}, "apple plum", "a:1", "a:3")
	kinds, err := spaces.Kinds(t.Context(), "code")
	if diff := cmp.Diff([]knn.Kind{{Name: "code", Model: "m", Size: 256}}, kinds); diff != "" || err != nil {
		t.Errorf("kinds: %s%v", diff, err)
	}

	// A process that finds both lengths asks the model which one it has.
	other, err := spaces.Space(knn.Kind{Name: "code", Model: "m", Size: 512})
	check(t, err)
	check(t, other.Upsert(t.Context(), []knn.Point{{Scope: "a", Key: "left over", Hash: "h", Vector: make([]float32, 512)}}))
	x = index(t, spaces, "m", model, cached)
	synced(t, x, "a", recall.Report{Unchanged: 2, Removed: 1}, docs...)
	if kinds, err := spaces.Kinds(t.Context(), "code"); len(kinds) != 1 || err != nil {
		t.Errorf("kinds: %v, %v", kinds, err)
	}
}

func TestTheCacheSavesEmbeddings(t *testing.T) {
	t.Parallel()
	store, model := &kept{values: map[string][]byte{}}, &words{size: 512}
	cached := func(o *recall.Options) { o.Cache = store }
	x := index(t, knn.NewSpaces(), "m", model, cached)
	synced(t, x, "a", recall.Report{Added: 3}, doc("1", "one"), doc("2", "two"), doc("also 2", "two"))
	embedded(t, model, "one", "two")
	y := index(t, knn.NewSpaces(), "m", model, cached) // such as another process
	synced(t, y, "b", recall.Report{Added: 2}, doc("1", "one"), doc("3", "three"))
	embedded(t, model, "three")
	z := index(t, knn.NewSpaces(), "other", model, cached)
	synced(t, z, "b", recall.Report{Added: 1}, doc("1", "one"))
	embedded(t, model, "one")
	for range 2 {
		finds(t, x, []string{"a"}, "question")
	}
	embedded(t, model, "question")
}

// broken is a cache that is down.
type broken struct {
	recall.Cache
	calls atomic.Int64
}

func (b *broken) Get(context.Context, string, string) ([]byte, error) {
	b.calls.Add(1)
	return nil, errors.New("no route to host")
}

func TestACacheThatIsDownIsLeftAloneForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &broken{}
		x := index(t, knn.NewSpaces(), "m", &words{size: 64}, func(o *recall.Options) { o.Cache = store })
		synced(t, x, "a", recall.Report{Added: 1}, doc("1", "one"))
		synced(t, x, "b", recall.Report{Added: 1}, doc("1", "one"))
		if n := store.calls.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // the clock of synctest
		finds(t, x, []string{"a"}, "one", "a:1")
		if n := store.calls.Load(); n != 2 {
			t.Errorf("asked %d times", n)
		}
	})
}

func TestWhatTheModelRefusesIsSkipped(t *testing.T) {
	t.Parallel()
	model := &words{size: 64, refuse: func(_ context.Context, texts []string) error {
		if slices.Contains(texts, "poison") {
			return &llm.Error{Kind: llm.TooLong, Err: errors.New("no")}
		}
		return nil
	}}
	x := index(t, knn.NewSpaces(), "m", model)
	docs := []recall.Doc{doc("bad", "poison"), doc("x", "long key", "payload", strings.Repeat("x", knn.MostPayload+1))}
	for i := range 9 {
		docs = append(docs, doc(fmt.Sprint(i), fmt.Sprint("text", i)))
	}
	synced(t, x, "a", recall.Report{Added: 9, Skipped: 2}, docs...)
	if _, err := x.Sync(t.Context(), "b", recall.Docs(docs[3], docs[3]), nil); err == nil || !strings.Contains(err.Error(), "two texts have the key") {
		t.Errorf("a key twice: %v", err)
	}
}

// TestARefusedTextIsNotInTheWay: a text that alone is left to embed, because all others are there, stops neither what is to
// be removed nor the next Sync, and is not sent again for hours.
func TestARefusedTextIsNotInTheWay(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	sent, broken := 0, false
	model := &words{size: 64, refuse: func(_ context.Context, texts []string) error {
		if slices.Contains(texts, "poison") {
			sent++
		}
		if broken || slices.Contains(texts, "poison") {
			return &llm.Error{Kind: llm.Invalid, Err: errors.New("no")}
		}
		return nil
	}}
	x := index(t, knn.NewSpaces(), "m", model, func(o *recall.Options) { o.Now = func() time.Time { return now } })
	good, gone, bad := doc("good", "some text"), doc("gone", "other text"), doc("bad", "poison")
	synced(t, x, "a", recall.Report{Added: 2}, good, gone)
	synced(t, x, "a", recall.Report{Unchanged: 1, Skipped: 1, Removed: 1}, good, bad)
	before := sent
	synced(t, x, "a", recall.Report{Unchanged: 1, Skipped: 1}, good, bad)
	synced(t, x, "b", recall.Report{Added: 1, Skipped: 1}, gone, bad)
	if sent != before {
		t.Errorf("what was refused was sent %d times more", sent-before)
	}
	now = now.Add(7 * time.Hour)
	synced(t, x, "a", recall.Report{Unchanged: 1, Skipped: 1}, good, bad)
	if sent == before {
		t.Error("what was refused is never tried again")
	}
	broken = true // the model refuses everything: that is not the texts' fault
	if _, err := x.Sync(t.Context(), "a", recall.Docs(good, doc("new", "a new text")), nil); llm.KindOf(err) != llm.Invalid {
		t.Errorf("all refused: %v, want the error of the model", err)
	}
	broken = false
	synced(t, x, "a", recall.Report{Added: 1, Unchanged: 1}, good, doc("new", "a new text"))
}

func TestALimitOfTheModelIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fails := 2
		model := &words{size: 64, refuse: func(context.Context, []string) error {
			if fails--; fails >= 0 {
				return &llm.Error{Kind: llm.RateLimited, Status: 429, RetryAfter: 3 * time.Second, Err: errors.New("slow down")}
			}
			return nil
		}}
		retry, err := route.NewRetry(route.Options{})
		check(t, err)
		x := index(t, knn.NewSpaces(), "m", model, func(o *recall.Options) { o.Retry = retry })
		began := time.Now()
		synced(t, x, "a", recall.Report{Added: 1}, doc("1", "one"))
		if took := time.Since(began); took < 6*time.Second {
			t.Errorf("waited %v, want at least what the model asked for", took)
		}
		fails = 100
		if _, err := x.Sync(t.Context(), "a", recall.Docs(doc("2", "two")), nil); llm.KindOf(err) != llm.RateLimited {
			t.Errorf("a model that stays down: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		fails = 100
		if _, err := x.Sync(ctx, "a", recall.Docs(doc("2", "two")), nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled while waiting: %v", err)
		}
	})
}

func TestASyncThatWasCancelledGoesOn(t *testing.T) {
	t.Parallel()
	model := &words{size: 64}
	x := index(t, knn.NewSpaces(), "m", model)
	docs := make([]recall.Doc, 300)
	for i := range docs {
		docs[i] = doc(fmt.Sprintf("k%03d", i), fmt.Sprint("text", i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var reports []recall.Report
	_, err := x.Sync(ctx, "a", recall.Docs(docs...), func(r recall.Report) {
		if reports = append(reports, r); len(reports) == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || len(reports) != 2 || reports[1].Added != 128 || reports[1].Seen() != 128 {
		t.Fatalf("cancelled: %v after %v", err, reports)
	}
	if n := len(model.take()); n != 128 {
		t.Errorf("embedded %d texts", n)
	}
	synced(t, x, "a", recall.Report{Added: 172, Unchanged: 128}, docs...)
	if n := len(model.take()); n != 172 {
		t.Errorf("embedded %d texts", n)
	}
}

func TestNobodyEmbedsForFree(t *testing.T) {
	t.Parallel()
	x := index(t, knn.NewSpaces(), "m", &words{size: 64}, func(o *recall.Options) {
		o.Embedder = spend.NewEmbedder(&words{size: 64}, spend.Cost{USD: 1}, nil)
	})
	if _, err := x.Sync(t.Context(), "a", recall.Docs(doc("1", "one")), nil); !errors.Is(err, cost.ErrNobody) {
		t.Errorf("sync: %v, want that nobody pays", err)
	}
	if _, err := x.Search(t.Context(), []string{"a"}, "one", 1); !errors.Is(err, cost.ErrNobody) {
		t.Errorf("search: %v, want that nobody pays", err)
	}
}

func TestLongTextsAreCutAtARune(t *testing.T) {
	t.Parallel()
	model := &words{size: 64}
	x := index(t, knn.NewSpaces(), "m", model)
	synced(t, x, "a", recall.Report{Added: 1}, doc("1", "x"+strings.Repeat("ä", recall.TextBytes)))
	if got := model.take(); len(got) != 1 || len(got[0]) != recall.TextBytes-1 || !strings.HasSuffix(got[0], "ä") {
		t.Errorf("embedded %d bytes", len(got[0]))
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	model := (&words{size: 4}).paid()
	for name, o := range map[string]recall.Options{
		"no name":     {Spaces: knn.NewSpaces(), Model: "m", Embedder: model},
		"no model":    {Name: "code", Spaces: knn.NewSpaces(), Embedder: model},
		"no store":    {Name: "code", Model: "m", Embedder: model},
		"no embedder": {Name: "code", Model: "m", Spaces: knn.NewSpaces()},
	} {
		if _, err := recall.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestCompare: texts are compared without being stored, and embedded once while the cache has them.
func TestCompare(t *testing.T) {
	t.Parallel()
	model, spaces := &words{size: 64}, knn.NewSpaces()
	x := index(t, spaces, "m", model, func(o *recall.Options) { o.Cache = &kept{values: map[string][]byte{}} })
	got, err := x.Compare(t.Context(), "blue bird", []string{"bird blue", "stone", "", "bird"})
	check(t, err)
	if len(got) != 4 || got[0] < 0.99 || got[1] != 0 || got[2] != 0 || got[3] < 0.6 || got[3] > 0.8 {
		t.Errorf("similar by %v", got)
	}
	model.take()
	if _, err := x.Compare(t.Context(), "blue bird", []string{"stone", "new"}); err != nil || !slices.Equal(model.take(), []string{"new"}) {
		t.Errorf("embedded again: %v", err)
	}
	if got, err := x.Compare(t.Context(), "blue", nil); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if kinds, err := spaces.Kinds(t.Context(), "code"); err != nil || len(kinds) != 0 {
		t.Errorf("stored: %v, %v", kinds, err)
	}
	model.refuse = func(context.Context, []string) error { return errors.New("away") }
	if _, err := x.Compare(t.Context(), "other", []string{"words"}); err == nil {
		t.Error("no error of the model")
	}
}
