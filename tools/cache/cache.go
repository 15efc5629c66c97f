// Package cache is the stage that answers a repeated reading call from memory (seed 003, tool result cache).
//
// Only built-in tools whose statement allows it are cached. Their results are stored in two groups per scope: results
// from files, and results from the web. Any call that may change something drops the file group before it runs and
// after it ended. A reader that was in progress meanwhile cannot store what it read (see Entry.Generation). A cached
// call has passed policy, quota and approval like any other.
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

// MaxTTL is the maximum time for which a result is stored, even when TTL says "as long as the session".
const MaxTTL = 24 * time.Hour

// Outcomes that Options.Observe receives.
const (
	Hit    = "hit"
	Miss   = "miss"
	Bypass = "bypass" // the call was not looked up: its tool is not cached, or nothing may be cached now
)

const (
	storeTimeout  = time.Second
	restAfter     = 5 * time.Second // pause after a failure of the store
	complainEvery = time.Minute
)

// Entry is the value of a key in a Store.
type Entry struct {
	// Value is nil for a miss.
	Value []byte
	// Generation identifies the state of the scope at the time of Get. Set stores nothing if the scope was dropped in
	// between. A generation is never used twice, even if the store forgot the scope.
	Generation string
}

// Store stores values by scope and key. The number of values per scope is limited, and the oldest is dropped first. It
// may forget anything at any time. Implementations are safe for concurrent use.
type Store interface {
	// Get returns a value. A miss returns the generation too, and no error.
	Get(ctx context.Context, scope, key string) (Entry, error)
	// Set stores a copy of e.Value for ttl if the scope still has e.Generation, and does nothing otherwise.
	Set(ctx context.Context, scope, key string, e Entry, ttl time.Duration) error
	// Drop deletes everything in the scope and gives it a new generation.
	Drop(ctx context.Context, scope string) error
}

// Options configures the stage.
type Options struct {
	// Store is required.
	Store Store
	// Notes keep drops that did not reach the store for other processes, and for the next start of this one; nil = this
	// process alone remembers them, which is enough for a Store in it.
	Notes Notes
	// TTL is how long a result is stored; 0 or more than MaxTTL = MaxTTL.
	TTL time.Duration
	// Scope returns who shares results: one session, since its beginning or the last /clear. "" = nothing is cached.
	// Nil: the session.
	Scope func(call *tools.Call) string
	// Live reports whether files may change without a call right now, because of a background run of the session or an
	// editor in the same directory. Results from files are then neither used nor stored. It may be nil and must not
	// block.
	Live func(call *tools.Call) bool
	// Observe receives Hit, Miss or Bypass, once per call. It may be nil and must not block.
	Observe func(result string)
	// Timeout limits one operation of the store; 0 = 1 s.
	Timeout time.Duration
	// Now is the clock; nil = time.Now.
	Now func() time.Time
	// Log receives errors of the store, once a minute.
	Log zerolog.Logger
}

// Cache is the stage. It is safe for concurrent use. An error of the store is a miss, never a failed call.
type Cache struct {
	o     Options
	stale marks

	mu         sync.Mutex // guards the fields below
	restUntil  time.Time  // after an error, the store is not used before this time
	complained time.Time
}

// New returns the stage. Without a store, nothing is cached.
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

// Middleware returns the stage; it implements tools.Middleware.
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

// Changed drops the results from files in a scope (see Options.Scope), because something other than a call changed
// files: a background run that ended, an attachment that was saved.
func (c *Cache) Changed(ctx context.Context, scope string) {
	if scope != "" && c.o.Store != nil {
		c.drop(ctx, place(scope, act.Files))
	}
}

// place returns the scope in the store for a group.
func place(scope string, g act.Group) string { return string(g) + "/" + scope }

// changes reports whether a call may change files. The statement of a server that its tool only reads counts only if
// the server is trusted.
func changes(def tools.Definition) bool {
	return !def.ReadOnly || (def.Server != "" && !def.Trusted)
}

// change runs a call that may change files.
func (c *Cache) change(ctx context.Context, call *tools.Call, where string, next tools.Handler) (*tools.Result, error) {
	c.drop(ctx, where)
	res, err := next(ctx, call)
	if err == nil || call.Trail.Started { // it ran, completely or in part
		c.drop(context.WithoutCancel(ctx), where)
	}
	return res, err
}

// read answers a reading call from the store, or runs it and stores the result.
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
	if found.Value != nil && !c.noted(ctx, where) {
		if res, err := decode(found.Value); err == nil {
			call.Trail.Cached = true
			c.o.Observe(Hit)
			return res, nil
		} // of another version, or damaged: it is replaced
	}
	c.o.Observe(Miss)
	res, err := next(ctx, call)
	if err != nil || res == nil || res.Error || live() {
		return res, err
	}
	if value, ok := encode(res); ok {
		// If storing fails, the call runs once more next time; ask has logged the error.
		_ = c.ask(ctx, func(ctx context.Context) error {
			return c.o.Store.Set(ctx, where, key, Entry{Value: value, Generation: found.Generation}, c.o.TTL)
		})
	}
	return res, nil
}

// key identifies a call: the current definition of the tool, and the canonical arguments.
func key(call *tools.Call) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s %s %s", len(call.Def.Name), call.Def.Name, call.Def.Hash(), call.Args)
	return hex.EncodeToString(h.Sum(nil))
}

// clean reports whether a scope contains nothing stale. It first repeats a drop that did not reach the store.
func (c *Cache) clean(ctx context.Context, where string) bool {
	if c.stale.version(where) == 0 {
		return true
	}
	c.drop(ctx, where)
	return c.stale.version(where) == 0
}

// drop drops a scope, or records that it has to be dropped.
func (c *Cache) drop(ctx context.Context, where string) {
	version := c.stale.version(where)
	if err := c.ask(ctx, func(ctx context.Context) error { return c.o.Store.Drop(ctx, where) }); err != nil {
		c.stale.set(where, c.o.Now())
		c.note(ctx, where)
		return
	}
	c.stale.clear(where, version)
}

// errResting means that the store failed a moment ago and is not used now.
var errResting = errors.New("the cache is left alone after a failure")

// ask runs one operation of the store with a timeout, and logs its error.
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
	if err == nil || ctx.Err() != nil { // the end of the caller's context is not a failure of the store
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.o.Now()
	c.restUntil = now.Add(restAfter)
	if c.complained.IsZero() || now.Sub(c.complained) >= complainEvery {
		c.complained = now
		c.o.Log.Warn().Err(err).Msg("result cache is not available, calls run without it")
	}
	return err
}
