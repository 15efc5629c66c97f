package app

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence/redis"
)

// redisOptions converts [redis] to the store's options.
func redisOptions(cfg *config.Config, log zerolog.Logger) redis.Options {
	r := cfg.Redis
	o := redis.Options{URL: r.URL.Reveal(), Log: log}
	for _, file := range []struct {
		to   *string
		from string
	}{{&o.CAFile, r.CAFile}, {&o.CertFile, r.CertFile}, {&o.KeyFile, r.KeyFile}} {
		if file.from != "" {
			*file.to = cfg.Path(file.from)
		}
	}
	return o
}

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
