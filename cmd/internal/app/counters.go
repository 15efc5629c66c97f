package app

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/bot/texts"
)

// glance is how long /status waits for Redis.
const glance = time.Second

// counting asks Redis for its state, for /status; nil = the counters are in the process.
func (c *Core) counting(ctx context.Context) *texts.Redis {
	if c.redis.Embedded() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	h := c.redis.Probe(ctx)
	return &texts.Redis{State: string(h.State), For: time.Since(h.Since)}
}
