package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot/quota"
)

// Beside a counter lies a hash with what is set aside of it: by id, the amount and when it is nobody's any more (unix
// milliseconds). So the counter itself holds what was spent and no more, as the durable store does, and what a dead
// process has set aside ends without anybody taking it back.
const (
	// KEYS a counter and its hash, for each counter; ARGV[1] id, [2] now, [3] end of the hold (unix milliseconds), then
	// amount, limit and expiry (unix seconds) of each counter. Answers the index of the first counter without room or
	// -1, whether that is full without what is set aside, and what is counted.
	reserveScript = `
local out = {-1, 0}
for i = 1, #KEYS / 2 do
  local n, limit = tonumber(ARGV[3*i+1]), tonumber(ARGV[3*i+2])
  local count, open = tonumber(redis.call('GET', KEYS[2*i-1]) or '0'), KEYS[2*i]
  out[i+2] = count
  if limit > 0 and out[1] == -1 then
    local aside, all = 0, redis.call('HGETALL', open)
    for j = 1, #all, 2 do
      local amount, till = string.match(all[j+1], '^(%d+):(%d+)$')
      if tonumber(till) <= tonumber(ARGV[2]) then
        redis.call('HDEL', open, all[j])
      elseif all[j] ~= ARGV[1] then
        aside = aside + tonumber(amount)
      end
    end
    if count + aside + n > limit then
      out[1] = i - 1
      if count + n > limit then out[2] = 1 end
    end
  end
end
if out[1] >= 0 then return out end
for i = 1, #KEYS / 2 do
  if tonumber(ARGV[3*i+2]) > 0 then
    redis.call('HSET', KEYS[2*i], ARGV[1], ARGV[3*i+1] .. ':' .. ARGV[3])
    redis.call('EXPIREAT', KEYS[2*i], ARGV[3*i+3])
  end
end
return out`
	// KEYS[1] the settlement's marker, then a counter and its hash for each counter; ARGV[1] expiry of the marker (unix
	// seconds), [2] id, then amount and expiry of each counter. Answers the counters.
	settleScript = `
local seen = redis.call('GET', KEYS[1])
local out = {}
for i = 1, (#KEYS - 1) / 2 do
  local key, n = KEYS[2*i], ARGV[2*i+1]
  if not seen then
    redis.call('HDEL', KEYS[2*i+1], ARGV[2])
    if tonumber(n) > 0 then
      redis.call('INCRBY', key, n)
      redis.call('EXPIREAT', key, ARGV[2*i+2])
    end
  end
  out[i] = tonumber(redis.call('GET', key) or '0')
end
if not seen then
  redis.call('SET', KEYS[1], '1')
  redis.call('EXPIREAT', KEYS[1], ARGV[1])
end
return out`
)

// expiryOf is when a counter may go.
func expiryOf(t quota.Take, expire time.Time) time.Time {
	if t.Expire.IsZero() {
		return expire
	}
	return t.Expire
}

// asideKey names the hash beside a counter.
func asideKey(key string) string { return tag + key + "/aside" }

// Reserve implements quota.Counter.
func (s *server) Reserve(
	ctx context.Context, id string, takes []quota.Take, hold quota.Hold, expire time.Time,
) (quota.Room, error) {
	names := make([]string, 0, 2*len(takes))
	args := []any{id, hold.Now.UnixMilli(), hold.Until.UnixMilli()}
	for _, t := range takes {
		names = append(names, tag+t.Key, asideKey(t.Key))
		args = append(args, t.N, t.Limit, expiryOf(t, expire).Unix())
	}
	var out []int64
	err := s.runOp(ctx, func(ctx context.Context) (err error) {
		out, err = s.hold.Run(ctx, s.client, names, args...).Int64Slice()
		return err
	})
	if err == nil && len(out) != len(takes)+2 {
		err = fmt.Errorf("%d values for %d counters", len(out)-2, len(takes))
	}
	if err != nil {
		return quota.Room{Denied: -1}, fmt.Errorf("reserve %s: %w", id, err)
	}
	return quota.Room{Counts: out[2:], Denied: int(out[0]), Full: out[1] == 1}, nil
}

// Settle implements quota.Counter.
func (s *server) Settle(ctx context.Context, id, name string, takes []quota.Take, expire time.Time) ([]int64, error) {
	names, args := []string{tag + "/id/" + name}, []any{expire.Unix(), id}
	for _, t := range takes {
		names = append(names, tag+t.Key, asideKey(t.Key))
		args = append(args, t.N, expiryOf(t, expire).Unix())
	}
	var out []int64
	err := s.runOp(ctx, func(ctx context.Context) (err error) {
		out, err = s.settle.Run(ctx, s.client, names, args...).Int64Slice()
		return err
	})
	if err == nil && len(out) != len(takes) {
		err = fmt.Errorf("%d values for %d counters", len(out), len(takes))
	}
	if err != nil {
		return nil, fmt.Errorf("settle %s: %w", id, err)
	}
	return out, nil
}

// held is what an id has set aside of a counter.
type held struct {
	n     int64
	until time.Time
}

// Reserve implements quota.Counter.
func (m *memory) Reserve(
	ctx context.Context, id string, takes []quota.Take, hold quota.Hold, expire time.Time,
) (quota.Room, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := m.beginOp(ctx)
	if err != nil {
		return quota.Room{Denied: -1}, fmt.Errorf("reserve %s: %w", id, err)
	}
	room := quota.Room{Counts: make([]int64, len(takes)), Denied: -1}
	for i, t := range takes {
		count := m.valueOf(t.Key, now)
		if room.Counts[i] = count; t.Limit <= 0 || room.Denied >= 0 {
			continue
		}
		if count+m.asideOf(t.Key, id, hold.Now, now)+t.N > t.Limit {
			room.Denied, room.Full = i, count+t.N > t.Limit
		}
	}
	if room.Denied >= 0 {
		return room, nil
	}
	for _, t := range takes {
		if t.Limit <= 0 {
			continue
		}
		a := m.aside[t.Key]
		if a.ids == nil {
			a.ids = map[string]held{}
		}
		a.ids[id], a.until = held{t.N, hold.Until}, expiryOf(t, expire).Truncate(time.Second)
		m.aside[t.Key] = a
		if !now.Before(a.until) { // as EXPIREAT does it
			delete(m.aside, t.Key)
		}
	}
	return room, nil
}

// asides are what is set aside of a counter, by id, until the counter goes.
type asides struct {
	ids   map[string]held
	until time.Time
}

// asideOf is what others than id have set aside of a counter. What is nobody's any more is dropped. Called with mu
// held.
func (m *memory) asideOf(key, id string, callers, now time.Time) int64 {
	a := m.aside[key]
	if !now.Before(a.until) {
		delete(m.aside, key)
		return 0
	}
	var sum int64
	for other, h := range a.ids {
		switch {
		case h.until.UnixMilli() <= callers.UnixMilli(): // a server counts milliseconds
			delete(a.ids, other)
		case other != id:
			sum += h.n
		}
	}
	return sum
}

// Settle implements quota.Counter.
func (m *memory) Settle(ctx context.Context, id, name string, takes []quota.Take, expire time.Time) ([]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := m.beginOp(ctx)
	if err != nil {
		return nil, fmt.Errorf("settle %s: %w", id, err)
	}
	seen := now.Before(m.ids[name])
	counts := make([]int64, len(takes))
	for i, t := range takes {
		if !seen {
			delete(m.aside[t.Key].ids, id)
			if t.N > 0 {
				m.setCounter(t.Key, counted{
					n:     m.valueOf(t.Key, now) + t.N,
					until: expiryOf(t, expire).Truncate(time.Second),
				}, now)
			}
		}
		counts[i] = m.valueOf(t.Key, now)
	}
	if !seen {
		m.ids[name] = expire.Truncate(time.Second)
	}
	return counts, nil
}
