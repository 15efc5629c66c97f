package app

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/persistence/redis"
)

// observe updates the metrics.
func (s *service) observe(o dispatch.Observation) {
	m := s.core.metrics
	switch o.What {
	case "update":
		m.Update(o.Kind)
	case "turn":
		m.Turn(o.Kind)
	case "queue":
		m.Phase("queue", o.Duration)
	}
}

// throttled counts the delays that the Bot API requested.
func (c *Core) throttled(place bot.Place, wait time.Duration) {
	c.metrics.Throttled(wait)
	c.log.Warn().Str("chat", place.Chat).Dur("wait", wait).Msg("rate limited by Telegram")
}

// counted counts decisions.
type counted struct {
	*approval.Broker
	core *Core
}

// Press implements turn.Approvals.
func (a counted) Press(ctx context.Context, msg *bot.Message) (turn.Effect, error) {
	e, err := a.Broker.Press(ctx, msg)
	a.count(e.Change.Decide)
	return e, err
}

// Expired implements turn.Approvals.
func (a counted) Expired(ctx context.Context, now time.Time) ([]turn.Effect, error) {
	effects, err := a.Broker.Expired(ctx, now)
	for _, e := range effects {
		a.count(e.Change.Decide)
	}
	return effects, err
}

func (a counted) count(list []bot.Decision) {
	for _, d := range list {
		if d.State != bot.Open {
			a.core.metrics.Approval(string(d.State))
		}
	}
}

// gauges registers values that are read when the metrics are requested.
func (s *service) gauges() {
	s.core.metrics.Gauge("sessions_active", "Sessions being worked on in this process.", func() float64 { return float64(s.dispatcher.Working()) })
	s.core.metrics.GaugesBy("mcp_servers", "MCP servers by state.", "state", s.core.serverCounts)
	if r := s.core.redis; !r.Embedded() {
		s.core.metrics.Gauge("redis_up", "1 when the last operation on the Redis server worked, else 0.", func() float64 {
			if r.Health().State == redis.Fine {
				return 1
			}
			return 0
		})
	}
	s.core.metrics.Gauge("queue_depth", "Sessions waiting for a worker in this process.", func() float64 { return float64(s.dispatcher.Queued()) })
}
