package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/quota"
)

// The scripts run atomically on the server and use nothing newer than Redis 6.0. In a cluster all keys of one call must
// be in one slot, which a hash tag ensures.
const (
	// KEYS[1] the id's marker, the rest counters; ARGV[1] expiry of the marker (unix seconds), then amount, limit and
	// expiry of each counter.
	takeScript = `
local seen = redis.call('GET', KEYS[1])
if seen then
  local out = {-1}
  for i = 2, #KEYS do out[i] = tonumber(redis.call('GET', KEYS[i]) or '0') end
  return out
end
local out = {-1}
for i = 2, #KEYS do
  local now = tonumber(redis.call('GET', KEYS[i]) or '0')
  local n, limit = tonumber(ARGV[3*i-4]), tonumber(ARGV[3*i-3])
  out[i] = now
  if limit > 0 and now + n > limit and out[1] == -1 then out[1] = i - 2 end
end
if out[1] >= 0 then return out end
for i = 2, #KEYS do
  out[i] = redis.call('INCRBY', KEYS[i], ARGV[3*i-4])
  redis.call('EXPIREAT', KEYS[i], ARGV[3*i-2])
end
redis.call('SET', KEYS[1], '1')
redis.call('EXPIREAT', KEYS[1], ARGV[1])
return out`
	// KEYS[1] the id's marker, the rest counters; ARGV the amounts.
	returnScript = `
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
for i = 2, #KEYS do
  if redis.call('DECRBY', KEYS[i], ARGV[i-1]) < 0 then redis.call('SET', KEYS[i], '0', 'KEEPTTL') end
end
return 1`
	restoreScript = `
local now = tonumber(redis.call('GET', KEYS[1]) or '0')
if now < tonumber(ARGV[1]) then
  redis.call('SET', KEYS[1], ARGV[1])
  redis.call('EXPIREAT', KEYS[1], ARGV[2])
end
return 1`
)

// server is the engine on a Redis server: each operation that changes something is one script.
type server struct {
	*watch
	client            goredis.UniversalClient
	met               *metServers
	take, back, raise *goredis.Script
	hold, settle      *goredis.Script
}

func newServer(options *goredis.UniversalOptions, log zerolog.Logger) *server {
	s := &server{
		watch: newWatch(log), met: newMet(log),
		take: goredis.NewScript(takeScript), back: goredis.NewScript(returnScript),
		raise: goredis.NewScript(restoreScript),
		hold:  goredis.NewScript(reserveScript), settle: goredis.NewScript(settleScript),
	}
	options.OnConnect = s.met.identifyServer
	// It writes lines of its own to stderr, which contain nothing that errors and the watch do not report.
	goredis.SetLogger(&logging.VoidLogger{})
	s.client = goredis.NewUniversalClient(options)
	return s
}

// Close implements engine.
func (s *server) Close() error { return s.client.Close() }

// Ping implements engine. The key that it writes is in the slot of the counters, so that in a cluster, their node is
// asked.
func (s *server) Ping(ctx context.Context) error {
	return s.probeServer(ctx, func(ctx context.Context) error {
		return s.client.Set(ctx, tag+"quota/probe", 1, time.Minute).Err()
	})
}

// Renewals implements quota.Counter.
func (s *server) Renewals() int64 { return s.met.count.Load() }

// tag puts all quota keys into one slot of a cluster, because they change together.
const tag = "{quota}"

func counterKeys(id string, takes []quota.Take) []string {
	list := []string{tag + "/id/" + id}
	for _, t := range takes {
		list = append(list, tag+t.Key)
	}
	return list
}

// Take implements quota.Counter.
func (s *server) Take(ctx context.Context, id string, takes []quota.Take, expire time.Time) ([]int64, int, error) {
	args := []any{expire.Unix()}
	for _, t := range takes {
		args = append(args, t.N, t.Limit, expiryOf(t, expire).Unix())
	}
	var out []int64
	err := s.runOp(ctx, func(ctx context.Context) (err error) {
		out, err = s.take.Run(ctx, s.client, counterKeys(id, takes), args...).Int64Slice()
		return err
	})
	if err != nil {
		return nil, -1, fmt.Errorf("take %s: %w", id, err)
	}
	if len(out) != len(takes)+1 {
		return nil, -1, fmt.Errorf("take %s: %d values for %d counters", id, len(out)-1, len(takes))
	}
	return out[1:], int(out[0]), nil
}

// Return implements quota.Counter.
func (s *server) Return(ctx context.Context, id string, takes []quota.Take) error {
	var args []any
	for _, t := range takes {
		args = append(args, t.N)
	}
	err := s.runOp(ctx, func(ctx context.Context) error {
		return s.back.Run(ctx, s.client, counterKeys(id, takes), args...).Err()
	})
	if err != nil {
		return fmt.Errorf("return %s: %w", id, err)
	}
	return nil
}

// Read implements quota.Counter.
func (s *server) Read(ctx context.Context, names []string) ([]int64, error) {
	if len(names) == 0 {
		return nil, nil
	}
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = tag + n
	}
	var values []any
	err := s.runOp(ctx, func(ctx context.Context) (err error) {
		values, err = s.client.MGet(ctx, list...).Result()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read counters: %w", err)
	}
	out := make([]int64, len(names))
	for i, v := range values {
		text, ok := v.(string)
		if !ok {
			continue // never counted
		}
		if out[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, fmt.Errorf("counter %s: %w", names[i], err)
		}
	}
	return out, nil
}

// Restore implements quota.Counter.
func (s *server) Restore(ctx context.Context, key string, n int64, expire time.Time) error {
	err := s.runOp(ctx, func(ctx context.Context) error {
		return s.raise.Run(ctx, s.client, []string{tag + key}, n, expire.Unix()).Err()
	})
	if err != nil {
		return fmt.Errorf("restore %s: %w", key, err)
	}
	return nil
}
