// Package quotatest provides a counter in memory for tests, and the suite that every counter passes.
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
	aside  map[string]map[string]aside // by counter and id
}

// aside is what an id has set aside of a counter.
type aside struct {
	n     int64
	until time.Time
}

var _ quota.Counter = (*Counter)(nil)

// Fail makes every call fail with err, like a server that is unreachable; nil ends that.
func (c *Counter) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// Lose deletes everything, like the restart of a server without persistence.
func (c *Counter) Lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values, c.ids, c.aside = nil, nil, nil
}

// Renew replaces the counters by older ones: values, and the ids that were known when the server last saved them.
func (c *Counter) Renew(values map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values, c.ids, c.aside = values, nil, nil
	c.renews++
}

// Values returns all counters, for use with Renew.
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
	if c.aside == nil {
		c.aside = map[string]map[string]aside{}
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
	gone := !expire.After(time.Unix(1, 0)) // what the suite uses for long ago
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

// asideOf is what others than id have set aside of a counter. Called with mu held.
func (c *Counter) asideOf(key, id string, now time.Time) int64 {
	var sum int64
	for other, a := range c.aside[key] {
		if other != id && a.until.After(now) {
			sum += a.n
		}
	}
	return sum
}

// Reserve implements quota.Counter.
func (c *Counter) Reserve(
	ctx context.Context, id string, takes []quota.Take, hold quota.Hold, _ time.Time,
) (quota.Room, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.begin(ctx); err != nil {
		return quota.Room{Denied: -1}, err
	}
	room := quota.Room{Counts: make([]int64, len(takes)), Denied: -1}
	for i, t := range takes {
		room.Counts[i] = c.values[t.Key]
		sum := room.Counts[i] + t.N
		room.Full = room.Full || (room.Denied < 0 && t.Limit > 0 && sum > t.Limit)
		sum += c.asideOf(t.Key, id, hold.Now)
		if room.Denied < 0 && t.Limit > 0 && sum > t.Limit {
			room.Denied = i
		}
	}
	if room.Denied >= 0 {
		return room, nil
	}
	for _, t := range takes {
		if c.aside[t.Key] == nil {
			c.aside[t.Key] = map[string]aside{}
		}
		if t.Limit > 0 {
			c.aside[t.Key][id] = aside{t.N, hold.Until}
		}
	}
	return room, nil
}

// Settle implements quota.Counter.
func (c *Counter) Settle(ctx context.Context, id, name string, takes []quota.Take, _ time.Time) ([]int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	counts := make([]int64, len(takes))
	for i, t := range takes {
		if !c.ids[name] {
			delete(c.aside[t.Key], id)
			c.values[t.Key] += t.N
		}
		counts[i] = c.values[t.Key]
	}
	c.ids[name] = true
	return counts, nil
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
