package app

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/cmd/internal/metrics"
	"github.com/zephbot/zephbot/persistence/redis"
	"github.com/zephbot/zephbot/tools/workspace"
)

// vitalsWithin limits what a scrape may ask of the database. A scrape of Prometheus waits for 10 s.
const vitalsWithin = 3 * time.Second

// counters registers what is known of a Redis server, if there is one.
func (c *Core) counters() {
	if c.redis.Embedded() {
		return
	}
	c.metrics.Gauge("redis_up", "1 when the last operation on the Redis server worked, else 0.", func() float64 {
		return truth(c.redis.Health().State == redis.Fine)
	})
	c.metrics.Collect([]metrics.Family{
		{
			Name:  "redis_requests_total",
			Help:  "Operations on the Redis server by result: ok, error.",
			Label: "result",
			Total: true,
		},
	}, func(emit metrics.Emit) {
		calls := c.redis.Calls()
		emit("redis_requests_total", "ok", float64(calls.OK))
		emit("redis_requests_total", "error", float64(calls.Failed))
	})
}

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// vitals registers what the database knows of the channel's work, and the state of what the service writes to.
func (c *Core) vitals(ch channel) {
	families := []metrics.Family{
		{Name: "ready", Help: "1 when the service can do its job, as /readyz says, else 0."},
		{Name: "turns_open", Help: "Turns that are not over, in all processes, by state: running, parked (a person " +
			"is asked), waiting (the model is away).", Label: "state"},
		{Name: "inbox_waiting", Help: "Messages that wait for a turn, in all processes."},
		{Name: "outbox_rows", Help: "Messages to people that are not sent, in all processes: open, unknown (may not " +
			"have arrived, and nobody was told).", Label: "state"},
		{Name: "dead_letters", Help: "Updates that were given up."},
		{Name: "audit_due", Help: "Lines that are not in the audit log yet, in all processes."},
		{
			Name:  "audit_failures_total",
			Help:  "Lines that could not be written to the audit log by this process.",
			Total: true,
		},
		{Name: "database_bytes", Help: "Size of the database by part: data; wal (SQLite only).", Label: "part"},
		{Name: "blob_bytes", Help: "Size of the stored files, which retention.max_blob_bytes limits."},
		{Name: "disk_free_bytes", Help: "Free space for data_dir."},
	}
	pooled := c.database() == postgresName
	if pooled {
		families = append(families,
			metrics.Family{
				Name:  "database_connections",
				Help:  "Connections of this process to the database: used, idle, most (the limit).",
				Label: "state",
			},
			metrics.Family{
				Name:  "database_connection_waits_total",
				Help:  "How often no connection was free.",
				Total: true,
			})
	}
	c.metrics.Collect(families, func(emit metrics.Emit) {
		ctx, cancel := context.WithTimeout(context.Background(), vitalsWithin)
		defer cancel()
		emit("ready", "", truth(c.ready(ctx) == nil))
		c.emitWork(ctx, ch, emit)
		c.emitStored(ctx, pooled, emit)
		emit("audit_failures_total", "", float64(c.audit.Failures()))
		if free, err := workspace.FreeSpace(c.dir); err == nil {
			emit("disk_free_bytes", "", float64(free))
		}
	})
}

// emitWork reports what is to be done. What cannot be read is absent: ready is 0 then.
func (c *Core) emitWork(ctx context.Context, ch channel, emit metrics.Emit) {
	n, err := c.stores.Bot.Counts(ctx, ch.name, ch.bot)
	if err != nil {
		return
	}
	emit("turns_open", string(bot.Running), float64(n.Running))
	emit("turns_open", string(bot.Parked), float64(n.Parked))
	emit("turns_open", string(bot.Waiting), float64(n.Waiting))
	emit("inbox_waiting", "", float64(n.Queued))
	emit("outbox_rows", "open", float64(n.Undelivered))
	emit("outbox_rows", string(bot.Unknown), float64(n.Lost))
	emit("dead_letters", "", float64(n.DeadLetters))
	if due, err := c.records.Waiting(ctx); err == nil {
		emit("audit_due", "", float64(due))
	}
}

// emitStored reports the figures of the database.
func (c *Core) emitStored(ctx context.Context, pooled bool, emit metrics.Emit) {
	v, err := c.stores.Vitals(ctx)
	if err != nil {
		return
	}
	emit("database_bytes", "data", float64(v.Bytes))
	emit("blob_bytes", "", float64(v.Blobs))
	if !pooled {
		emit("database_bytes", "wal", float64(v.WAL))
		return
	}
	emit("database_connections", "used", float64(v.Connections.Used))
	emit("database_connections", "idle", float64(v.Connections.Idle))
	emit("database_connections", "most", float64(v.Connections.Most))
	emit("database_connection_waits_total", "", float64(v.Connections.Waits))
}
