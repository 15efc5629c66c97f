package cache_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools/cache"
)

// fill stores a value in each of many scopes and returns how many of them still have it.
func fill(t *testing.T, m *cache.Memory, many int, value []byte) (kept int) {
	t.Helper()
	for i := range many {
		e, err := m.Get(t.Context(), fmt.Sprint(i), "k")
		if err != nil {
			t.Fatal(err)
		}
		e.Value = value
		if err := m.Set(t.Context(), fmt.Sprint(i), "k", e, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	for i := range many {
		e, err := m.Get(t.Context(), fmt.Sprint(i), "k") // makes room for a new scope, too
		if err != nil {
			t.Fatal(err)
		}
		if e.Value != nil {
			kept++
		}
	}
	return kept
}

// TestMemoryScopes: a process that serves many conversations does not grow for ever.
func TestMemoryScopes(t *testing.T) {
	t.Parallel()
	if kept := fill(t, cache.NewMemory(nil), 20000, []byte("v")); kept > 8192 || kept == 0 {
		t.Errorf("%d scopes are kept", kept)
	}
	if kept := fill(t, cache.NewMemory(nil), 80, bytes.Repeat([]byte("x"), 1<<20)); kept > 64 || kept < 32 {
		t.Errorf("%d MiB are kept", kept)
	}
}

// TestMemorySweep: a scope that is not used again is deleted after it has expired; one that has just begun is not.
func TestMemorySweep(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	m := cache.NewMemory(func() time.Time { return now })
	set := func(scope string, e cache.Entry, ttl time.Duration) {
		t.Helper()
		if err := m.Set(t.Context(), scope, "k", e, ttl); err != nil {
			t.Fatal(err)
		}
	}
	get := func(scope string) cache.Entry {
		t.Helper()
		e, err := m.Get(context.WithoutCancel(t.Context()), scope, "k")
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	short, long, empty := get("short"), get("long"), get("empty")
	short.Value, long.Value, empty.Value = []byte("v"), []byte("v"), []byte("v")
	set("short", short, time.Minute)
	set("long", long, 48*time.Hour) // a day at most
	now = now.Add(5 * time.Minute)
	get("other") // every request sweeps
	if got := get("empty"); got.Generation != empty.Generation {
		t.Error("a reader of five minutes has lost its generation")
	}
	now = now.Add(6 * time.Minute)
	get("other")
	if got := get("short"); got.Value != nil || got.Generation == short.Generation {
		t.Errorf("the expired scope is still there: %+v", got)
	}
	if got := get("long"); string(got.Value) != "v" || got.Generation != long.Generation {
		t.Errorf("the long one is gone: %+v", got)
	}
	set("empty", empty, time.Minute)
	if got := get("empty"); got.Value != nil {
		t.Error("a swept generation stores")
	}
	now = now.Add(24 * time.Hour)
	if got := get("long"); got.Value != nil {
		t.Error("kept for more than a day")
	}
}
