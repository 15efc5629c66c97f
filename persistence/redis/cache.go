package redis

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/zephbot/zephbot/tools/cache"
)

// A scope of the cache consists of three keys in one slot, so that every operation is one script over known keys:
//
//	KEYS[1] hash: gen (generation of the scope), bytes (size of all entries), seq (numbers the entries)
//	KEYS[2] hash: an entry by its key, "<expiry in unix ms>:<value>"
//	KEYS[3] sorted set: the keys of the entries by number, the oldest first
//
// A generation is random rather than a number: a number that starts over after the server has evicted it would bring
// old entries back. Entries expire by the server's clock; the keys as a whole expire with their youngest entry.
const (
	// ARGV: key, initial generation, milliseconds that a generation lives.
	cacheGetScript = `
local gen = redis.call('HGET', KEYS[1], 'gen')
if not gen then
  redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
  redis.call('HSET', KEYS[1], 'gen', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return {ARGV[2]}
end
local entry = redis.call('HGET', KEYS[2], ARGV[1])
if not entry then return {gen} end
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
local at = string.find(entry, ':', 1, true)
local expiry = at and tonumber(string.sub(entry, 1, at - 1))
if not expiry or expiry <= now then
  redis.call('HDEL', KEYS[2], ARGV[1])
  redis.call('ZREM', KEYS[3], ARGV[1])
  redis.call('HINCRBY', KEYS[1], 'bytes', 0 - #entry)
  return {gen}
end
return {gen, string.sub(entry, at + 1)}`
	// ARGV: key, generation, value, milliseconds that the value lives, most entries, most bytes, milliseconds that a
	// generation lives.
	cacheSetScript = `
if redis.call('HGET', KEYS[1], 'gen') ~= ARGV[2] then return 0 end
if redis.call('EXISTS', KEYS[2], KEYS[3]) < 2 then
  redis.call('DEL', KEYS[2], KEYS[3])
  redis.call('HSET', KEYS[1], 'bytes', '0')
end
local function remove(key)
  local size = redis.call('HSTRLEN', KEYS[2], key)
  redis.call('HDEL', KEYS[2], key)
  redis.call('ZREM', KEYS[3], key)
  return redis.call('HINCRBY', KEYS[1], 'bytes', 0 - size)
end
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
local entry = string.format('%.0f:', now + tonumber(ARGV[4])) .. ARGV[3]
remove(ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], entry)
redis.call('ZADD', KEYS[3], redis.call('HINCRBY', KEYS[1], 'seq', 1), ARGV[1])
local size = redis.call('HINCRBY', KEYS[1], 'bytes', #entry)
while redis.call('ZCARD', KEYS[3]) > tonumber(ARGV[5]) or size > tonumber(ARGV[6]) do
  local oldest = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
  if not oldest or oldest == ARGV[1] then break end
  size = remove(oldest)
end
for i = 2, 3 do
  if redis.call('PTTL', KEYS[i]) < tonumber(ARGV[4]) then redis.call('PEXPIRE', KEYS[i], ARGV[4]) end
end
redis.call('PEXPIRE', KEYS[1], ARGV[7])
return 1`
	// ARGV: new generation, milliseconds that it lives. If there is no generation, nobody holds one: the next reader
	// starts it.
	cacheDropScript = `
local known = redis.call('EXISTS', KEYS[1])
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
if known == 1 then
  redis.call('HSET', KEYS[1], 'gen', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return known`
)

// generationTTL is how long a scope is kept after it was last written: longer than any of its entries.
const generationTTL = cache.MaxTTL + time.Hour

// entryOverhead is the size of an entry besides its value.
const entryOverhead = 14

// results caches results of tools on a server. It implements cache.Store with one round trip per operation.
type results struct {
	watch          *watch
	client         goredis.UniversalClient
	get, set, drop *goredis.Script
}

// Cache implements engine.
func (s *server) Cache() cache.Store {
	return &results{
		watch: s.watch, client: s.client,
		get: goredis.NewScript(cacheGetScript),
		set: goredis.NewScript(cacheSetScript), drop: goredis.NewScript(cacheDropScript),
	}
}

// cacheKeys returns the keys of a scope. Its name is hashed, because it can contain anything, such as a brace, and
// reveals who talks to the bot.
func cacheKeys(scope string) []string {
	sum := sha256.Sum256([]byte(scope))
	tag := "{cache:" + hex.EncodeToString(sum[:16]) + "}"
	return []string{tag, tag + "entries", tag + "order"}
}

// Get implements cache.Store.
func (c *results) Get(ctx context.Context, scope, key string) (cache.Entry, error) {
	var out []string
	err := c.watch.runOp(ctx, func(ctx context.Context) (err error) {
		out, err = c.get.Run(ctx, c.client, cacheKeys(scope),
			key, rand.Text(), generationTTL.Milliseconds()).StringSlice()
		return err
	})
	if err != nil {
		return cache.Entry{}, fmt.Errorf("read cache: %w", err)
	}
	switch len(out) {
	case 1:
		return cache.Entry{Generation: out[0]}, nil
	case 2:
		return cache.Entry{Generation: out[0], Value: []byte(out[1])}, nil
	default:
		return cache.Entry{}, fmt.Errorf("read cache: the server returned %d values, want 1 or 2", len(out))
	}
}

// Set implements cache.Store.
func (c *results) Set(ctx context.Context, scope, key string, e cache.Entry, ttl time.Duration) error {
	if e.Generation == "" || len(e.Value) > cache.MaxBytes {
		return ctx.Err()
	}
	args := []any{
		key, e.Generation, e.Value, max(1, min(ttl, cache.MaxTTL).Milliseconds()),
		cache.MaxEntries, cache.MaxBytes + cache.MaxEntries*entryOverhead, generationTTL.Milliseconds(),
	}
	err := c.watch.runOp(ctx, func(ctx context.Context) error {
		return c.set.Run(ctx, c.client, cacheKeys(scope), args...).Err()
	})
	if err != nil {
		return fmt.Errorf("write cache: %w", err)
	}
	return nil
}

// Drop implements cache.Store.
func (c *results) Drop(ctx context.Context, scope string) error {
	err := c.watch.runOp(ctx, func(ctx context.Context) error {
		return c.drop.Run(ctx, c.client, cacheKeys(scope), rand.Text(), generationTTL.Milliseconds()).Err()
	})
	if err != nil {
		return fmt.Errorf("drop cache: %w", err)
	}
	return nil
}
