package recall

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/zeebo/blake3"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/agent/spend"
)

// Limits of embedding.
const (
	// TextBytes of a text are embedded: about 2000 tokens, which the usual models take.
	TextBytes = 8000

	batchTexts = 64
	batchBytes = 64 << 10 // of all texts of a batch
	// shards is the number of groups in the cache, each of which the cache bounds.
	shards    = 8
	cacheRest = 5 * time.Second // after a failure of the cache
	// cacheAtOnce is how many reads or writes of the cache are on their way at the same time.
	cacheAtOnce = 8
)

// cutText shortens a text to what is embedded of it.
func cutText(text string) string {
	if len(text) <= TextBytes {
		return text
	}
	end := TextBytes
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// embedder embeds texts by one model, through the cache.
type embedder struct {
	model string
	paid  *spend.Embedder
	o     *Options

	mu    sync.Mutex
	until time.Time // the cache is not used before this time
}

func (x *Index) newEmbedder(model string, paid *spend.Embedder) *embedder {
	return &embedder{model: model, paid: paid, o: &x.o}
}

// embedTexts returns the vectors of texts, all of the same length, in batches. Equal texts are embedded once. What the
// cache has of another length than size is of no use, because the model may have changed; 0 = any.
func (e *embedder) embedTexts(ctx context.Context, texts []string, size int) ([][]float32, error) {
	known := map[string][]float32{}
	var ask []string
	cached := e.cachedVectors(ctx, texts, size)
	for i, text := range texts {
		if _, ok := known[text]; ok {
			continue
		}
		if known[text] = cached[i]; cached[i] == nil {
			ask = append(ask, text)
		}
	}
	for len(ask) > 0 {
		n := batchSize(ask)
		vectors, err := e.askModel(ctx, ask[:n])
		if err != nil {
			return nil, err
		}
		e.cacheVectors(ctx, ask[:n], vectors)
		for i, text := range ask[:n] {
			known[text] = vectors[i]
		}
		ask = ask[n:]
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if out[i] = known[text]; len(out[i]) != len(out[0]) {
			return e.embedUncached(ctx, texts)
		}
	}
	return out, nil
}

// embedUncached embeds all texts again, without the cache, whose vectors have another length than the model's now.
func (e *embedder) embedUncached(ctx context.Context, texts []string) ([][]float32, error) {
	var out [][]float32
	for len(texts) > 0 {
		n := batchSize(texts)
		vectors, err := e.askModel(ctx, texts[:n])
		if err != nil {
			return nil, err
		}
		e.cacheVectors(ctx, texts[:n], vectors)
		if out = append(out, vectors...); len(out[0]) != len(vectors[0]) {
			return nil, fmt.Errorf("%w: %d and %d numbers", errGarbled, len(out[0]), len(vectors[0]))
		}
		texts = texts[n:]
	}
	return out, nil
}

// batchSize is the number of the first texts that fit into one request.
func batchSize(texts []string) int {
	size := 0
	for i, text := range texts {
		if size += len(text); i > 0 && (i >= batchTexts || size > batchBytes) {
			return i
		}
	}
	return len(texts)
}

// askModel sends one request, and repeats it if it failed for a moment.
func (e *embedder) askModel(ctx context.Context, texts []string) (vectors [][]float32, err error) {
	run := func(ctx context.Context) error {
		vectors, err = e.paid.Embed(ctx, texts)
		return err
	}
	if e.o.Retry != nil {
		err = e.o.Retry.Do(ctx, "embed", run)
	} else {
		err = run(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	if len(vectors) != len(texts) {
		return nil, fmt.Errorf("embed: %w: %d vectors for %d texts", errGarbled, len(vectors), len(texts))
	}
	for _, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return nil, fmt.Errorf("embed: %w: %d and %d numbers", errGarbled, len(vectors[0]), len(v))
		}
	}
	return vectors, nil
}

// cacheKey returns the group and the key of a text in the cache.
func (e *embedder) cacheKey(text string) (group, key string) {
	sum := digestOf(e.model, text)
	return fmt.Sprintf("embedding/%d", sum[0]%shards), hex.EncodeToString(sum[1:])
}

func digestOf(parts ...string) [32]byte {
	h := blake3.New()
	for _, part := range parts {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(part)))
		_, _ = h.Write(size[:])
		_, _ = h.WriteString(part)
	}
	return [32]byte(h.Sum(nil))
}

// cacheRests reports whether the cache is not there, or has failed a moment ago.
func (e *embedder) cacheRests() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.o.Cache == nil || e.o.Now().Before(e.until)
}

func (e *embedder) cacheFailed(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.until = e.o.Now().Add(cacheRest)
	e.o.Log.Debug().Err(err).Str("collection", e.o.Name).Msg("the cache of embeddings does not answer")
}

// forEach runs do for every index below n, some at once, and returns what failed.
func forEach(n int, do func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(n, cacheAtOnce) {
		wg.Go(func() {
			for i := range next {
				errs[i] = do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	return errors.Join(errs...)
}

// cachedVectors returns the vectors that the cache has; nil for the others.
func (e *embedder) cachedVectors(ctx context.Context, texts []string, size int) [][]float32 {
	out := make([][]float32, len(texts))
	if e.cacheRests() {
		return out
	}
	e.cacheFailed(ctx, forEach(len(texts), func(i int) error {
		group, key := e.cacheKey(texts[i])
		value, err := e.o.Cache.Get(ctx, group, key)
		if n := len(value); err == nil && n > 0 && n%4 == 0 && (size == 0 || n == 4*size) {
			out[i] = make([]float32, n/4)
			knn.DecodeVector(out[i], value)
		}
		return err
	}))
	return out
}

// cacheVectors stores vectors in the cache.
func (e *embedder) cacheVectors(ctx context.Context, texts []string, vectors [][]float32) {
	if e.cacheRests() {
		return
	}
	e.cacheFailed(ctx, forEach(len(texts), func(i int) error {
		group, key := e.cacheKey(texts[i])
		return e.o.Cache.Set(ctx, group, key, knn.EncodeVector(vectors[i]))
	}))
}
