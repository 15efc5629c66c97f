// Package cachetest contains the test suite for every cache.Store, and a store that fails on request.
package cachetest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools/cache"
)

// Suite tests a store. open returns an empty store for each test.
func Suite(t *testing.T, open func(t *testing.T) cache.Store) {
	t.Helper()
	for name, test := range map[string]func(suite, *testing.T){
		"values":      suite.values,
		"scopes":      suite.scopes,
		"stale":       suite.stale,
		"expiry":      suite.expiry,
		"oldest":      suite.oldest,
		"bytes":       suite.bytes,
		"concurrency": suite.concurrency,
		"ended":       suite.ended,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(suite{open(t)}, t)
		})
	}
}

type suite struct {
	store cache.Store
}

func (s suite) get(t *testing.T, scope, key string) cache.Entry {
	t.Helper()
	e, err := s.store.Get(t.Context(), scope, key)
	if err != nil {
		t.Fatal(err)
	}
	if e.Generation == "" {
		t.Fatalf("get %s of %q: no generation", key, scope)
	}
	return e
}

// put stores a value with the current generation.
func (s suite) put(t *testing.T, scope, key, value string) {
	t.Helper()
	e := s.get(t, scope, key)
	e.Value = []byte(value)
	s.set(t, scope, key, e, time.Hour)
}

func (s suite) set(t *testing.T, scope, key string, e cache.Entry, ttl time.Duration) {
	t.Helper()
	if err := s.store.Set(t.Context(), scope, key, e, ttl); err != nil {
		t.Fatal(err)
	}
}

func (s suite) drop(t *testing.T, scope string) {
	t.Helper()
	if err := s.store.Drop(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
}

func (s suite) want(t *testing.T, scope, key, value string) {
	t.Helper()
	if got := s.get(t, scope, key); got.Value == nil || string(got.Value) != value {
		t.Errorf("%s of %q = %q, want %q", key, scope, got.Value, value)
	}
}

func (s suite) miss(t *testing.T, scope, key string) {
	t.Helper()
	if got := s.get(t, scope, key); got.Value != nil {
		t.Errorf("%s of %q = %q, want a miss", key, scope, got.Value)
	}
}

func (s suite) values(t *testing.T) {
	s.miss(t, "a", "k")
	for _, value := range []string{"v", "", "12:34", "a\x00b\xff\r\n", "another"} { // each one replaces the one before
		s.put(t, "a", "k", value)
		s.want(t, "a", "k", value)
	}
	value := []byte("mine")
	e := s.get(t, "a", "copy")
	e.Value = value
	s.set(t, "a", "copy", e, time.Hour)
	value[0] = 'X'
	got := s.get(t, "a", "copy").Value
	if string(got) != "mine" {
		t.Errorf("the store kept the caller's bytes: %q", got)
	}
	got[0] = 'Y'
	s.want(t, "a", "copy", "mine")
}

func (s suite) scopes(t *testing.T) {
	names := []string{"a", "a/b", "{a}", "a}{b", "", "ä ö\x00", "file/telegram:42"}
	for i, name := range names {
		s.put(t, name, "k", fmt.Sprint(i))
	}
	s.drop(t, "a")
	s.miss(t, "a", "k")
	for i, name := range names[1:] {
		s.want(t, name, "k", fmt.Sprint(i+1))
	}
	s.drop(t, "never used")
	s.miss(t, "never used", "k")
}

// stale tests that what was read before a drop is not stored after it.
func (s suite) stale(t *testing.T) {
	s.put(t, "a", "old", "v")
	seen := []string{}
	for range 5 {
		before := s.get(t, "a", "k")
		for _, g := range seen {
			if g == before.Generation {
				t.Fatalf("generation %s comes twice", g)
			}
		}
		seen = append(seen, before.Generation)
		s.drop(t, "a")
		before.Value = []byte("stale")
		s.set(t, "a", "k", before, time.Hour) // before the next Get
		s.miss(t, "a", "k")
		s.set(t, "a", "k", before, time.Hour) // and after it
		s.miss(t, "a", "k")
		s.put(t, "a", "k", "fresh")
		s.set(t, "a", "k", before, time.Hour)
		s.want(t, "a", "k", "fresh")
	}
	s.miss(t, "a", "old")
	s.set(t, "a", "k2", cache.Entry{Value: []byte("x")}, time.Hour)
	s.miss(t, "a", "k2")
}

// expiry tests that an entry expires at its time, and only that one.
func (s suite) expiry(t *testing.T) {
	s.put(t, "a", "stays", "v")
	e := s.get(t, "a", "goes")
	e.Value = []byte("v")
	s.set(t, "a", "goes", e, time.Millisecond)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for s.get(t, "a", "goes").Value != nil {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the entry does not go")
		}
	}
	s.want(t, "a", "stays", "v")
	s.put(t, "a", "goes", "again")
	s.want(t, "a", "goes", "again")
	s.want(t, "a", "stays", "v")
}

// oldest tests that the entry stored first is dropped first (513 entries, seed 003).
func (s suite) oldest(t *testing.T) {
	e := s.get(t, "a", "0")
	e.Value = []byte("v")
	for i := range cache.MaxEntries {
		s.set(t, "a", fmt.Sprint(i), e, time.Hour)
	}
	s.put(t, "a", "0", "renewed") // it is the newest now, and does not count twice
	s.put(t, "b", "x", "v")
	s.want(t, "a", "1", "v")
	s.put(t, "a", "more", "v")
	s.miss(t, "a", "1")
	s.want(t, "a", "0", "renewed")
	s.want(t, "a", "2", "v")
	s.want(t, "a", "more", "v")
	s.put(t, "a", "more still", "v")
	s.miss(t, "a", "2")
	s.want(t, "a", "0", "renewed")
}

// bytes tests that large values displace each other, and that a value larger than the scope is not stored.
func (s suite) bytes(t *testing.T) {
	quarter := string(bytes.Repeat([]byte("x"), cache.MaxBytes/4-100))
	for _, key := range []string{"1", "2", "3", "4"} {
		s.put(t, "a", key, quarter)
	}
	s.want(t, "a", "1", quarter)
	s.put(t, "a", "2", "small") // the replaced value no longer counts
	s.put(t, "a", "5", quarter)
	s.want(t, "a", "1", quarter)
	s.put(t, "a", "6", quarter)
	s.miss(t, "a", "1")
	s.want(t, "a", "2", "small")
	s.want(t, "a", "3", quarter)
	s.put(t, "a", "huge", string(make([]byte, cache.MaxBytes+1)))
	s.miss(t, "a", "huge")
	s.want(t, "a", "6", quarter)
}

// concurrency tests that nothing stale remains after the last concurrent drop.
func (s suite) concurrency(t *testing.T) {
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 20 {
				key := fmt.Sprint(i % 3)
				e, err := s.store.Get(t.Context(), "a", key)
				if err == nil {
					e.Value = []byte("v")
					err = s.store.Set(t.Context(), "a", key, e, time.Hour)
				}
				if err == nil && n%4 == 0 {
					err = s.store.Drop(t.Context(), "a")
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	s.drop(t, "a")
	for i := range 3 {
		s.miss(t, "a", fmt.Sprint(i))
	}
}

// ended tests that nothing is done with a context that has ended.
func (s suite) ended(t *testing.T) {
	s.put(t, "a", "k", "v")
	e := s.get(t, "a", "k")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, getErr := s.store.Get(ctx, "a", "k")
	e.Value = []byte("w")
	for _, err := range []error{getErr, s.store.Set(ctx, "a", "k", e, time.Hour), s.store.Drop(ctx, "a")} {
		if err == nil {
			t.Error("no error")
		}
	}
	s.want(t, "a", "k", "v")
}

// Store passes everything to another store unless it was told to fail. It is safe for concurrent use.
type Store struct {
	cache.Store

	mu    sync.Mutex
	err   error
	asked int
}

// Fail makes every operation fail with err; nil repairs the store.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Asked returns the number of operations.
func (s *Store) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *Store) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.err
}

// Get implements cache.Store.
func (s *Store) Get(ctx context.Context, scope, key string) (cache.Entry, error) {
	if err := s.begin(); err != nil {
		return cache.Entry{}, err
	}
	return s.Store.Get(ctx, scope, key)
}

// Set implements cache.Store.
func (s *Store) Set(ctx context.Context, scope, key string, e cache.Entry, ttl time.Duration) error {
	if err := s.begin(); err != nil {
		return err
	}
	return s.Store.Set(ctx, scope, key, e, ttl)
}

// Drop implements cache.Store.
func (s *Store) Drop(ctx context.Context, scope string) error {
	if err := s.begin(); err != nil {
		return err
	}
	return s.Store.Drop(ctx, scope)
}
