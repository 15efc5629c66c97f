package redis_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/zephbot/zephbot/tools/cache"
	"github.com/zephbot/zephbot/tools/cache/cachetest"
)

func TestCacheEmbedded(t *testing.T) {
	t.Parallel()
	cachetest.Suite(t, func(t *testing.T) cache.Store { return open(t, "").Cache() })
}

func TestCacheServer(t *testing.T) {
	t.Parallel()
	d := &database{url: server(t)}
	cachetest.Suite(t, func(t *testing.T) cache.Store { return d.open(t).Cache() })
}

// put stores a value under the generation of now.
func put(t *testing.T, c cache.Store, scope, key, value string, ttl time.Duration) {
	t.Helper()
	e, err := c.Get(t.Context(), scope, key)
	if err != nil {
		t.Fatal(err)
	}
	e.Value = []byte(value)
	if err := c.Set(t.Context(), scope, key, e, ttl); err != nil {
		t.Fatal(err)
	}
}

func cached(t *testing.T, c cache.Store, scope, key string) string {
	t.Helper()
	e, err := c.Get(t.Context(), scope, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(e.Value)
}

// TestCacheExpiry: nothing of a conversation is left on the server, and an entry expires to the millisecond.
func TestCacheExpiry(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	c := open(t, "redis://"+m.Addr()).Cache()
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	m.SetTime(began)
	put(t, c, "a", "short", "v", time.Minute)
	put(t, c, "a", "long", "v", 48*time.Hour) // a day at most
	m.SetTime(began.Add(time.Minute - time.Millisecond))
	if got := cached(t, c, "a", "short"); got != "v" {
		t.Errorf("gone before its time: %q", got)
	}
	m.SetTime(began.Add(time.Minute))
	if got := cached(t, c, "a", "short"); got != "" {
		t.Errorf("still there: %q", got)
	}
	m.SetTime(began.Add(24*time.Hour - time.Millisecond))
	if got := cached(t, c, "a", "long"); got != "v" {
		t.Errorf("gone before its time: %q", got)
	}
	m.SetTime(began.Add(24 * time.Hour))
	if got := cached(t, c, "a", "long"); got != "" {
		t.Errorf("kept for more than a day: %q", got)
	}
	put(t, c, "b", "k", "v", time.Hour)
	if err := c.Drop(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	for _, key := range m.Keys() {
		if m.TTL(key) <= 0 {
			t.Errorf("%s stays for ever", key)
		}
	}
	m.FastForward(25 * time.Hour)
	if keys := m.Keys(); len(keys) != 0 {
		t.Errorf("still there: %v", keys)
	}
	if err := c.Drop(t.Context(), "a"); err != nil || len(m.Keys()) != 0 {
		t.Errorf("dropping nothing leaves %v, %v", m.Keys(), err)
	}
}

// TestCacheEviction: a server that evicts single keys causes misses, but no stale answers, and the cache still stores
// results.
func TestCacheEviction(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		t.Run(fmt.Sprint("key ", n), func(t *testing.T) {
			t.Parallel()
			m := miniredis.RunT(t)
			c := open(t, "redis://"+m.Addr()).Cache()
			put(t, c, "a", "k", "old", time.Hour)
			held, err := c.Get(t.Context(), "a", "k")
			if err != nil {
				t.Fatal(err)
			}
			keys := m.Keys()
			if len(keys) != 3 {
				t.Fatalf("keys %v, want three", keys)
			}
			for _, key := range keys {
				if !strings.HasPrefix(key, "{cache:") || key[:strings.Index(key, "}")] != keys[0][:strings.Index(keys[0], "}")] {
					t.Errorf("%s is not in one slot with %s", key, keys[0])
				}
			}
			m.Del(keys[n])
			if strings.HasSuffix(keys[n], "}") { // the generation: entries under it can no longer be read
				held.Value = []byte("stale")
				if err := c.Set(t.Context(), "a", "k", held, time.Hour); err != nil {
					t.Fatal(err)
				}
				if got := cached(t, c, "a", "k"); got != "" {
					t.Errorf("an answer of a lost generation: %q", got)
				}
			}
			for _, key := range []string{"1", "2", "k"} {
				put(t, c, "a", key, "v", time.Hour)
			}
			for _, key := range []string{"1", "2", "k"} {
				if got := cached(t, c, "a", key); got != "v" {
					t.Errorf("entry %s = %q", key, got)
				}
			}
			for _, key := range keys { // the bookkeeping consists of these three keys
				switch {
				case strings.HasSuffix(key, "order"):
					if members, err := m.ZMembers(key); err != nil || len(members) != 3 {
						t.Errorf("order %v, %v", members, err)
					}
				case strings.HasSuffix(key, "}"):
					if got := m.HGet(key, "bytes"); got != fmt.Sprint(3*len("1700000000000:v")) {
						t.Errorf("bytes = %s", got)
					}
				}
			}
		})
	}
}

// TestCacheForeign: a value that another program wrote under our keys is a miss or an error, not an answer.
func TestCacheForeign(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	c := open(t, "redis://"+m.Addr()).Cache()
	put(t, c, "a", "k", "v", time.Hour)
	for _, key := range m.Keys() {
		if strings.HasSuffix(key, "entries") {
			m.HSet(key, "k", "no expiry")
		}
	}
	if got := cached(t, c, "a", "k"); got != "" {
		t.Errorf("got %q", got)
	}
	put(t, c, "a", "k", "w", time.Hour)
	if got := cached(t, c, "a", "k"); got != "w" {
		t.Errorf("got %q", got)
	}
	for _, key := range m.Keys() {
		m.Del(key)
		if err := m.Set(key, "a string"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Get(t.Context(), "a", "k"); err == nil || !strings.HasPrefix(err.Error(), "read cache: ") {
		t.Errorf("err = %v", err)
	}
	if err := c.Set(t.Context(), "a", "k", cache.Entry{Generation: "x"}, time.Hour); err == nil || !strings.HasPrefix(err.Error(), "write cache: ") {
		t.Errorf("err = %v", err)
	}
	if err := c.Drop(t.Context(), "a"); err != nil { // it repairs what is broken
		t.Errorf("drop: %v", err)
	}
	put(t, c, "a", "k", "v", time.Hour)
	if got := cached(t, c, "a", "k"); got != "v" {
		t.Errorf("got %q", got)
	}
}

func TestCacheAway(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	c := open(t, "redis://:hunter2@"+m.Addr()).Cache()
	m.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no wait for a retry
	_, getErr := c.Get(ctx, "a", "k")
	for _, err := range []error{getErr, c.Set(ctx, "a", "k", cache.Entry{Generation: "1"}, time.Hour), c.Drop(ctx, "a")} {
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("err = %v", err)
		}
	}
}
