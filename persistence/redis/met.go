package redis

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
)

// metServers records the servers that this process has been connected to, by the id that each run of a server has. A
// new run can have old counters: a promoted replica lacks what had not reached it, a restarted server has what it last
// saved. Safe for concurrent use.
type metServers struct {
	log   zerolog.Logger
	count atomic.Int64

	mu      sync.Mutex
	runs    map[string]bool // grows by one with each restart or failover
	unnamed time.Time       // when a server without an id last counted as new
}

// unnamedEvery limits how often such servers count as new, because many connections are opened at once.
const unnamedEvery = 10 * time.Second

func newMet(log zerolog.Logger) *metServers { return &metServers{log: log, runs: map[string]bool{}} }

// identifyServer identifies the server of a new connection before anything else is sent through it. Each connection to
// a server that does not report its id (a user without INFO, some hosted services) counts as one to a new server.
func (m *metServers) identifyServer(ctx context.Context, conn *goredis.Conn) error {
	text, err := conn.Info(ctx).Result()
	run := infoField(text, "run_id")
	if m.knowsRun(run) {
		return nil
	}
	m.count.Add(1)
	m.log.Info().AnErr("info", err).Str("version", infoField(text, "redis_version")).Str("run", run).
		Msg("connected to a redis server")
	policy := infoField(text, "maxmemory_policy")
	if policy != "" && policy != "noeviction" && infoField(text, "maxmemory") != "0" {
		m.log.Warn().Str("maxmemory_policy", policy).
			Msg("this redis deletes keys when its memory is full: quotas may count too little; use noeviction")
	}
	return nil
}

// knowsRun reports whether this process was connected to a run of a server before, and records that it is now.
func (m *metServers) knowsRun(run string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if run == "" {
		known := !m.unnamed.IsZero() && time.Since(m.unnamed) < unnamedEvery
		if !known {
			m.unnamed = time.Now()
		}
		return known
	}
	known := m.runs[run]
	m.runs[run] = true
	return known
}

// infoField returns the value of a line of INFO.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
