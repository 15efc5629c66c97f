// Package cache is the stage that answers a repeated reading call from memory (seed 003, tool result cache).
//
// Only built-in tools that say so are cached. What they gave is kept in two groups per scope: what came from files, and
// what came from the web. Any call that may change something drops the file group, before it runs and after it ended; a
// reader that was under way meanwhile cannot store what it read (see Entry.Generation). A cached call has passed
// policy, quota and approval like any other.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
)

// MaxTTL bounds how long a result is kept, also where TTL says "as long as the conversation".
const MaxTTL = 24 * time.Hour

// The outcomes that Options.Observe hears of.
const (
	Hit    = "hit"
	Miss   = "miss"
	Bypass = "bypass" // the call was not looked up: its tool is not cached, or nothing may be cached now
)

const (
	storeTimeout  = time.Second
	restAfter     = 5 * time.Second // how long a store that failed is left alone
	complainEvery = time.Minute
)

// Entry is what a Store keeps under a key.
type Entry struct {
	// Value is nil for a miss.
	Value []byte
	// Generation names the state of the scope at the time of Get. Set stores nothing when the scope was dropped in
	// between. It is never used twice, also not when the store forgot the scope.
	Generation string
}

// Store keeps values by scope and key, a bounded number of them per scope, the oldest going first. It is safe for
// concurrent use. It may forget anything at any time.
type Store interface {
	// Get finds a value. A miss has the generation too, and no error.
	Get(ctx context.Context, scope, key string) (Entry, error)
	// Set keeps e.Value for ttl if the scope still has e.Generation, and does nothing otherwise. The store keeps a
	// copy.
	Set(ctx context.Context, scope, key string, e Entry, ttl time.Duration) error
	// Drop forgets the scope and gives it a new generation.
	Drop(ctx context.Context, scope string) error
}

// Options configures the stage.
type Options struct {
	// Store is required.
	Store Store
	// TTL is how long a result is kept; 0 (and anything above) = MaxTTL.
	TTL time.Duration
	// Scope says who shares results: one conversation, from its beginning or the last /clear on. "" = nothing is
	// cached. Nil: the session.
	Scope func(call *tools.Call) string
	// Live says that files may change behind the chain's back right now: a background run of the session, an editor on
	// the same directory. Results from files are then neither answered from memory nor kept. May be nil. Must not
	// block.
	Live func(call *tools.Call) bool
	// Observe hears Hit, Miss or Bypass, once per call. May be nil. Must not block.
	Observe func(result string)
	// Timeout bounds one operation of the store; 0 = 1 s.
	Timeout time.Duration
	// Now is the clock; nil = time.Now.
	Now func() time.Time
	// Log hears of a store that fails, once a minute.
	Log zerolog.Logger
}

// Cache is the stage. It is safe for concurrent use. A store that fails is a miss, never a failed call.
type Cache struct {
	o     Options
	stale marks

	mu         sync.Mutex // guards what follows
	restUntil  time.Time  // the store failed: it is not asked before
	complained time.Time
}

// New makes the stage. Without a store nothing is cached.
func New(o Options) *Cache {
	if o.TTL <= 0 || o.TTL > MaxTTL {
		o.TTL = MaxTTL
	}
	if o.Scope == nil {
		o.Scope = func(call *tools.Call) string { return call.Origin.Session }
	}
	if o.Live == nil {
		o.Live = func(*tools.Call) bool { return false }
	}
	if o.Observe == nil {
		o.Observe = func(string) {}
	}
	if o.Timeout <= 0 {
		o.Timeout = storeTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Cache{o: o}
}

// Middleware is the stage; it implements tools.Middleware.
func (c *Cache) Middleware(next tools.Handler) tools.Handler {
	return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
		scope := ""
		if c.o.Store != nil {
			scope = c.o.Scope(call)
		}
		group := call.Def.Stated().Cache
		switch {
		case scope == "":
			c.o.Observe(Bypass)
			return next(ctx, call)
		case group != act.NotCached:
			return c.read(ctx, call, group, place(scope, group), next)
		case changes(call.Def):
			c.o.Observe(Bypass)
			return c.change(ctx, call, place(scope, act.Files), next)
		default:
			c.o.Observe(Bypass)
			return next(ctx, call)
		}
	}
}

// Changed forgets what was read from files in a scope (see Options.Scope), because something changed them that was no
// call: a background run that ended, an attachment that was saved.
func (c *Cache) Changed(ctx context.Context, scope string) {
	if scope != "" && c.o.Store != nil {
		c.drop(ctx, place(scope, act.Files))
	}
}

// place is the scope of a group in the store.
func place(scope string, g act.Group) string { return string(g) + "/" + scope }

// changes says whether a call may change files. A server's word that its tool only reads counts only where the server
// is trusted.
func changes(def tools.Definition) bool {
	return !def.ReadOnly || (def.Server != "" && !def.Trusted)
}

// change runs a call that may change files.
func (c *Cache) change(ctx context.Context, call *tools.Call, where string, next tools.Handler) (*tools.Result, error) {
	c.drop(ctx, where)
	res, err := next(ctx, call)
	if err == nil || call.Trail.Started { // it ran, wholly or in part
		c.drop(context.WithoutCancel(ctx), where)
	}
	return res, err
}

// read answers a reading call from memory, or runs it and keeps the result.
func (c *Cache) read(ctx context.Context, call *tools.Call, g act.Group, where string,
	next tools.Handler,
) (*tools.Result, error) {
	live := func() bool { return g == act.Files && c.o.Live(call) }
	if live() || !c.clean(ctx, where) {
		c.o.Observe(Bypass)
		return next(ctx, call)
	}
	key := key(call)
	var found Entry
	err := c.ask(ctx, func(ctx context.Context) (err error) {
		found, err = c.o.Store.Get(ctx, where, key)
		return err
	})
	if err != nil {
		c.o.Observe(Miss)
		return next(ctx, call)
	}
	if found.Value != nil {
		if res, err := decode(found.Value); err == nil {
			call.Trail.Cached = true
			c.o.Observe(Hit)
			return res, nil
		} // of another version, or damaged: it is written anew
	}
	c.o.Observe(Miss)
	res, err := next(ctx, call)
	if err != nil || res == nil || res.Error || live() {
		return res, err
	}
	if value, ok := encode(res); ok {
		// A value that is not kept costs one more run; ask has said it in the log.
		_ = c.ask(ctx, func(ctx context.Context) error {
			return c.o.Store.Set(ctx, where, key, Entry{Value: value, Generation: found.Generation}, c.o.TTL)
		})
	}
	return res, nil
}

// key identifies what is asked: the tool as it is defined now, and the canonical arguments.
func key(call *tools.Call) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s %s %s", len(call.Def.Name), call.Def.Name, call.Def.Hash(), call.Args)
	return hex.EncodeToString(h.Sum(nil))
}

// clean says whether a scope holds nothing stale: a drop that did not reach the store is made up for first.
func (c *Cache) clean(ctx context.Context, where string) bool {
	if c.stale.version(where) == 0 {
		return true
	}
	c.drop(ctx, where)
	return c.stale.version(where) == 0
}

// drop forgets a scope, or remembers that it has to be forgotten.
func (c *Cache) drop(ctx context.Context, where string) {
	version := c.stale.version(where)
	if err := c.ask(ctx, func(ctx context.Context) error { return c.o.Store.Drop(ctx, where) }); err != nil {
		c.stale.set(where, c.o.Now())
		return
	}
	c.stale.clear(where, version)
}

// errResting is the error of a store that failed a moment ago.
var errResting = errors.New("the cache is left alone after a failure")

// ask runs one operation of the store, bounded in time, and logs where it fails.
func (c *Cache) ask(ctx context.Context, op func(ctx context.Context) error) error {
	c.mu.Lock()
	resting := c.o.Now().Before(c.restUntil)
	c.mu.Unlock()
	if resting {
		return errResting
	}
	bounded, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	err := op(bounded)
	if err == nil || ctx.Err() != nil { // the caller's end is no failure of the store
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.o.Now()
	c.restUntil = now.Add(restAfter)
	if c.complained.IsZero() || now.Sub(c.complained) >= complainEvery {
		c.complained = now
		c.o.Log.Warn().Err(err).Msg("result cache is away, calls run without it")
	}
	return err
}
