// Package quotatest has a counter in memory for tests, and the suite that every counter passes.
package quotatest

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot/quota"
)

// Counter is a quota.Counter in memory. Its zero value is empty and ready; safe for concurrent use. Nothing expires by
// itself.
type Counter struct {
	mu     sync.Mutex
	err    error
	renews int64
	values map[string]int64
	ids    map[string]bool
}

var _ quota.Counter = (*Counter)(nil)

// Fail makes every call fail with err, as a server that is away; nil brings it back.
func (c *Counter) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// Lose forgets everything, as a server without persistence that was restarted.
func (c *Counter) Lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values, c.ids = nil, nil
}

// Renew makes the counters older ones: values, and the ids that were taken, as a server had them when it last saved
// them.
func (c *Counter) Renew(values map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values, c.ids = values, nil
	c.renews++
}

// Values are all counters, to be given to Renew.
func (c *Counter) Values() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.values)
}

// Renewals implements quota.Counter.
func (c *Counter) Renewals() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renews
}

// begin checks what every call checks. Called with mu held.
func (c *Counter) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.values == nil {
		c.values = map[string]int64{}
	}
	if c.ids == nil {
		c.ids = map[string]bool{}
	}
	return c.err
}

// Take implements quota.Counter.
func (c *Counter) Take(ctx context.Context, id string, takes []quota.Take, expire time.Time) ([]int64, int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.begin(ctx); err != nil {
		return nil, -1, err
	}
	counts, denied := make([]int64, len(takes)), -1
	for i, t := range takes {
		counts[i] = c.values[t.Key]
		if denied < 0 && t.Limit > 0 && counts[i]+t.N > t.Limit {
			denied = i
		}
	}
	if c.ids[id] {
		return counts, -1, nil
	}
	if denied >= 0 {
		return counts, denied, nil
	}
	gone := !expire.After(time.Unix(1, 0)) // the suite's word for long ago
	for i, t := range takes {
		counts[i] += t.N
		if !gone {
			c.values[t.Key] = counts[i]
		}
	}
	c.ids[id] = !gone
	return counts, -1, nil
}

// Return implements quota.Counter.
func (c *Counter) Return(ctx context.Context, id string, takes []quota.Take) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.begin(ctx); err != nil || !c.ids[id] {
		return err
	}
	delete(c.ids, id)
	for _, t := range takes {
		c.values[t.Key] = max(0, c.values[t.Key]-t.N)
	}
	return nil
}

// Read implements quota.Counter.
func (c *Counter) Read(ctx context.Context, keys []string) ([]int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	values := make([]int64, len(keys))
	for i, k := range keys {
		values[i] = c.values[k]
	}
	return values, nil
}

// Restore implements quota.Counter.
func (c *Counter) Restore(ctx context.Context, key string, n int64, _ time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.begin(ctx); err != nil {
		return err
	}
	c.values[key] = max(n, c.values[key])
	return nil
}
