package vector

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/zephbot/zephbot/agent/knn"
)

// embedded stores points durably in Points and searches in-memory copies, exactly: 10 000 vectors of 1024 numbers take
// a few milliseconds, which no index on disk beats. This requires that the process is the only user of the database
// (its data directory is locked).
type embedded struct {
	points Points
	spaces knn.Spaces

	mu    sync.Mutex
	named map[string]*collection // one per name: two copies would diverge
}

func newEmbedded(o Options) *embedded {
	e := &embedded{points: o.Points, spaces: knn.NewSpaces(), named: map[string]*collection{}}
	if o.Rows != nil {
		e.spaces = newExact(o.Rows, o.Memory, o.Log)
	}
	return e
}

// Spaces implements Store.
func (e *embedded) Spaces() knn.Spaces { return e.spaces }

// Collection implements Store.
func (e *embedded) Collection(name string) knn.Index {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.named[name]
	if c == nil {
		c = &collection{name: name, points: e.points, write: make(chan struct{}, 1)}
		e.named[name] = c
	}
	return c
}

// Ping implements Store.
func (*embedded) Ping(ctx context.Context) error { return ctx.Err() }

// Close implements Store. The points belong to the caller.
func (*embedded) Close() error { return nil }

// collection is a knn.Index. Reads do not wait for writes.
type collection struct {
	name   string
	points Points
	// write holds one value while a goroutine loads or writes, so that both copies see the same order.
	write  chan struct{}
	copied atomic.Pointer[knn.Memory] // nil = not loaded yet
}

// lockWrites waits for the right to write, at most until ctx ends.
func (c *collection) lockWrites(ctx context.Context) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("use the vectors of %s: %w", c.name, err)
	}
	select {
	case c.write <- struct{}{}:
		return func() { <-c.write }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the vectors of %s: %w", c.name, ctx.Err())
	}
}

// readCopy returns the copy, loading it at first use. After a failed load, the next call tries again.
func (c *collection) readCopy(ctx context.Context) (*knn.Memory, error) {
	if memory := c.copied.Load(); memory != nil {
		return memory, nil
	}
	unlock, err := c.lockWrites(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return c.loadCopy(ctx)
}

// loadCopy loads the copy. c.write must be held.
func (c *collection) loadCopy(ctx context.Context) (*knn.Memory, error) {
	if memory := c.copied.Load(); memory != nil {
		return memory, nil
	}
	memory := knn.NewMemory()
	err := c.points.EachPoint(ctx, c.name, func(p knn.Point) error { return memory.Upsert(ctx, []knn.Point{p}) })
	if err != nil {
		return nil, err
	}
	c.copied.Store(memory)
	return memory, nil
}

// changeBoth writes durably and then to the copy. After a failed write, the copy is loaded again.
func (c *collection) changeBoth(ctx context.Context, durably func() error, copied func(*knn.Memory) error) error {
	unlock, err := c.lockWrites(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	memory, err := c.loadCopy(ctx)
	if err != nil {
		return err
	}
	if err := durably(); err != nil {
		c.copied.Store(nil)
		return err
	}
	return copied(memory)
}

// Hashes implements knn.Index.
func (c *collection) Hashes(ctx context.Context) (map[string]string, error) {
	memory, err := c.readCopy(ctx)
	if err != nil {
		return nil, err
	}
	return memory.Hashes(ctx)
}

// Upsert implements knn.Index: the points are durable when it returns.
func (c *collection) Upsert(ctx context.Context, points []knn.Point) error {
	if len(points) == 0 {
		return nil
	}
	return c.changeBoth(ctx, func() error { return c.points.UpsertPoints(ctx, c.name, points) },
		func(memory *knn.Memory) error { return memory.Upsert(context.WithoutCancel(ctx), points) })
}

// Delete implements knn.Index.
func (c *collection) Delete(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	return c.changeBoth(ctx, func() error { return c.points.DeletePoints(ctx, c.name, keys) },
		func(memory *knn.Memory) error { return memory.Delete(context.WithoutCancel(ctx), keys) })
}

// Search implements knn.Index, exactly.
func (c *collection) Search(ctx context.Context, vector []float32, limit int) ([]knn.Hit, error) {
	memory, err := c.readCopy(ctx)
	if err != nil {
		return nil, err
	}
	return memory.Search(ctx, vector, limit)
}
