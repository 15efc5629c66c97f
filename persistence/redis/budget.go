package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/zephbot/zephbot/bot/deliver"
)

// The send budget of a bot consists of these keys, all in one slot of a cluster, since one step counts a request for
// the bot and for its chat:
//
//	KEYS[1] sorted set: requests of the bot by when they stop counting    KEYS[2] the low-priority ones among them
//	KEYS[3] until when a 429 stops the bot
//	KEYS[4…] four for each chat:
//	  hash with tokens (t), when they were valid (f) and until when a 429 stops the chat (z);
//	  sorted set of the requests in flight by when they were sent;
//	  sorted sets of the requests and the low-priority requests of a group's minute, by when they stop counting
//
// Times are whole milliseconds of the server's clock, which are up to one behind it (tick). A finished request counts
// for that much longer, because the limit of a second would otherwise be that of 999 ms. A request that is not reported
// as finished counts as in flight for sendOverdue and is then treated as finished.
const (
	sendClock = `
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
local tick = 1`
	sendCommon = `
local OVERDUE = 10000
local function ms(x) return string.format('%.0f', x) end
local function clip(key) redis.call('ZREMRANGEBYSCORE', key, '-inf', ms(now)) end
local function fill(at, upto, rate, burst)
  local t = tonumber(redis.call('HGET', KEYS[at], 't') or burst)
  local f = tonumber(redis.call('HGET', KEYS[at], 'f') or upto)
  if redis.call('ZCARD', KEYS[at+1]) > 0 then return t end
  return math.min(burst, t + math.max(0, upto - f) * rate / 1000)
end
local function keep(at, tokens, filled)
  redis.call('HSET', KEYS[at], 't', string.format('%.6f', tokens), 'f', ms(filled))
  local frozen = tonumber(redis.call('HGET', KEYS[at], 'z') or '0')
  redis.call('PEXPIRE', KEYS[at], ms(math.max(2 * OVERDUE, frozen - now + 1000)))
end
local function over(at, id, when, rate, burst)
  local left = redis.call('ZSCORE', KEYS[at+1], id)
  if not left then return end
  local ended = math.min(when + tick, tonumber(left) + OVERDUE)
  keep(at, fill(at, ended, rate, burst), ended)
  redis.call('ZREM', KEYS[at+1], id)
  for i, key in ipairs({KEYS[1], KEYS[2], KEYS[at+2], KEYS[at+3]}) do
    if redis.call('ZSCORE', key, id) then
      redis.call('ZADD', key, ms(ended + (i <= 2 and 1000 or 60000)), id)
    end
  end
end
local function over_all(from, at)
  for i = from, #ARGV, 4 do
    over(at, ARGV[i], now - tonumber(ARGV[i+1]), tonumber(ARGV[i+2]), tonumber(ARGV[i+3]))
    at = at + 4
  end
end`
	// ARGV: for each finished request, id, milliseconds ago, rate and burst of its chat.
	endScript = `
over_all(1, 4)
return 1`
	// ARGV: id, low priority, limit per second, of low-priority ones, limit per minute, of low-priority ones, rate,
	// burst and need of the chat; then as for endScript. The result is whether the request is booked, and for how long
	// at least the chat, the bot and a 429 delay it.
	spendScript = `
local id, low = ARGV[1], ARGV[2] == '1'
local second, low_second, minute, low_minute = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]),
	tonumber(ARGV[6])
local rate, burst, need = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
over_all(10, 8)
local late = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', ms(now - OVERDUE))
for _, other in ipairs(late) do over(4, other, now, rate, burst) end
local function full(key, limit, per)
  if limit <= 0 then return 0 end
  clip(key)
  local n = redis.call('ZCARD', key)
  if n < limit then return 0 end
  local ends = redis.call('ZRANGE', key, n - limit, n - limit, 'WITHSCORES')
  return math.max(1, math.min(tonumber(ends[2]), now + per) - now)
end
local all_frozen = math.max(0, tonumber(redis.call('GET', KEYS[3]) or '0') - now)
local chat_frozen = math.max(0, tonumber(redis.call('HGET', KEYS[4], 'z') or '0') - now)
local all = math.max(all_frozen, full(KEYS[1], second, 1000))
local chat = math.max(chat_frozen, full(KEYS[6], minute, 60000))
if low then
  all = math.max(all, full(KEYS[2], low_second, 1000))
  chat = math.max(chat, full(KEYS[7], low_minute, 60000))
end
local tokens = fill(4, now, rate, burst)
if rate > 0 and need - tokens > 0.0001 then chat = math.max(chat, math.ceil((need - tokens) * 1000 / rate)) end
if all > 0 or chat > 0 then return {0, chat, all, math.max(all_frozen, chat_frozen)} end
keep(4, tokens - 1, now)
redis.call('ZADD', KEYS[5], ms(now), id)
redis.call('PEXPIRE', KEYS[5], 2 * OVERDUE)
local function count(key, limit, per)
  if limit <= 0 then return end
  redis.call('ZADD', key, ms(now + OVERDUE + per), id)
  redis.call('PEXPIRE', key, ms(2 * OVERDUE + per))
end
count(KEYS[1], second, 1000)
count(KEYS[6], minute, 60000)
if low then
  count(KEYS[2], low_second, 1000)
  count(KEYS[7], low_minute, 60000)
end
return {1, 0, 0, 0}`
	// KEYS[1] until when the bot is stopped, KEYS[2] hash: a chat's last 429 as "when until", KEYS[3] the chat. ARGV:
	// chat, milliseconds to wait, additional milliseconds.
	freezeScript = `
local function ms(x) return string.format('%.0f', x) end
local last = now + tonumber(ARGV[2])
local z = math.max(tonumber(redis.call('HGET', KEYS[3], 'z') or '0'), last + tonumber(ARGV[3]))
redis.call('HSET', KEYS[3], 'z', ms(z))
redis.call('PEXPIRE', KEYS[3], ms(z - now + 20000))
redis.call('HSET', KEYS[2], ARGV[1], ms(now) .. ' ' .. ms(last))
redis.call('PEXPIRE', KEYS[2], 5000)
local list, chats, first, longest = redis.call('HGETALL', KEYS[2]), 0, last, last
for i = 1, #list, 2 do
  local at, ends = string.match(list[i+1], '^(%d+) (%d+)$')
  if now - tonumber(at) > 2000 then
    redis.call('HDEL', KEYS[2], list[i])
  else
    chats, first, longest = chats + 1, math.min(first, tonumber(ends)), math.max(longest, tonumber(ends))
  end
end
if chats < 3 then return 0 end
local stopped = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), math.min(longest, first + (chats - 1) * 1000))
redis.call('SET', KEYS[1], ms(stopped))
redis.call('PEXPIRE', KEYS[1], ms(stopped - now + 1000))
return 1`
)

// Budget is the send budget of one bot on a server. It implements deliver.Budget. Safe for concurrent use.
type Budget struct {
	server             *server
	tag                string
	spend, end, freeze *goredis.Script
}

var _ deliver.Budget = (*Budget)(nil)

// errEmbedded is the error of sharing the in-process engine.
var errEmbedded = errors.New("a send budget is shared on a Redis server only: set redis.url")

// Budget returns the send budget of a bot by its id. It fails with the in-process engine, which cannot be shared.
func (s *Store) Budget(bot string) (*Budget, error) {
	remote, ok := s.engine.(*server)
	if !ok {
		return nil, errEmbedded
	}
	return newBudget(remote, bot, sendClock), nil
}

func newBudget(s *server, bot, clock string) *Budget {
	return &Budget{
		server: s, tag: "{send:" + bot + "}", spend: goredis.NewScript(clock + sendCommon + spendScript),
		end: goredis.NewScript(clock + sendCommon + endScript), freeze: goredis.NewScript(clock + freezeScript),
	}
}

// Spend implements deliver.Budget in one round trip.
func (b *Budget) Spend(ctx context.Context, ask deliver.Ask, over []deliver.Over) (deliver.Verdict, error) {
	low := 0
	if ask.Low {
		low = 1
	}
	keys := append(b.botArgs(), b.chatArgs(ask.Chat)...)
	args := []any{
		ask.ID, low, ask.PerSecond, ask.LowPerSecond, ask.PerMinute, ask.LowPerMinute,
		ask.Rate, ask.Burst, ask.Need,
	}
	keys, args = b.appendFinished(keys, args, over)
	var out []int64
	err := b.server.runOp(ctx, func(ctx context.Context) (err error) {
		out, err = b.spend.Run(ctx, b.server.client, keys, args...).Int64Slice()
		return err
	})
	if err != nil {
		return deliver.Verdict{}, fmt.Errorf("query the send budget: %w", err)
	}
	if len(out) != 4 {
		return deliver.Verdict{}, fmt.Errorf("query the send budget: %d values, want 4", len(out))
	}
	wait := func(i int) time.Duration { return time.Duration(out[i]) * time.Millisecond }
	return deliver.Verdict{Granted: out[0] == 1, Chat: wait(1), All: wait(2), Frozen: wait(3)}, nil
}

// End implements deliver.Budget in one round trip.
func (b *Budget) End(ctx context.Context, over []deliver.Over) error {
	keys, args := b.appendFinished(b.botArgs(), nil, over)
	err := b.server.runOp(ctx, func(ctx context.Context) error {
		return b.end.Run(ctx, b.server.client, keys, args...).Err()
	})
	if err != nil {
		return fmt.Errorf("end requests in the send budget: %w", err)
	}
	return nil
}

// Freeze implements deliver.Budget in one round trip.
func (b *Budget) Freeze(ctx context.Context, chat string, wait, more time.Duration) error {
	keys := []string{b.tag + "stopped", b.tag + "freezes", b.chatArgs(chat)[0]}
	err := b.server.runOp(ctx, func(ctx context.Context) error {
		return b.freeze.Run(ctx, b.server.client, keys, chat, roundUp(wait), roundUp(more)).Err()
	})
	if err != nil {
		return fmt.Errorf("stop a chat in the send budget: %w", err)
	}
	return nil
}

// appendFinished appends finished requests to keys and arguments.
func (b *Budget) appendFinished(keys []string, args []any, over []deliver.Over) ([]string, []any) {
	for _, o := range over {
		keys = append(keys, b.chatArgs(o.Ask.Chat)...)
		args = append(args, o.Ask.ID, o.Ago.Milliseconds(), o.Ask.Rate, o.Ask.Burst)
	}
	return keys, args
}

func (b *Budget) botArgs() []string {
	return []string{b.tag + "all", b.tag + "low", b.tag + "stopped"}
}

func (b *Budget) chatArgs(key string) []string {
	return []string{b.tag + "chat/" + key, b.tag + "open/" + key, b.tag + "minute/" + key, b.tag + "modest/" + key}
}

// roundUp returns a wait in milliseconds, rounded up.
func roundUp(wait time.Duration) int64 { return (max(0, wait) + time.Millisecond - 1).Milliseconds() }
