package cache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/tools/cache"
)

// TestStoreAway: no call fails because of the store, the store is not used for a while, and what could not be dropped
// is never an answer.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	s := newSetup(nil)
	s.text(t, "read", `{}`)
	s.store.Fail(errors.New("connection refused"))
	s.text(t, "write", `{}`) // the drop is lost
	asked := s.store.Asked()
	for range 3 {
		s.text(t, "fetch", `{}`)
	}
	if s.store.Asked() != asked {
		t.Error("a store that failed a moment ago is asked again")
	}
	s.store.Fail(nil)
	if got := s.text(t, "read", `{}`); got == "run 1" {
		t.Error("stale while the store is left alone")
	}
	s.now = s.now.Add(5 * time.Second)
	fresh := s.text(t, "read", `{}`) // makes up for the drop
	if fresh == "run 1" {
		t.Error("stale after the store came back")
	}
	if got := s.text(t, "read", `{}`); got != fresh {
		t.Errorf("got %q, want %q: the store works again", got, fresh)
	}
	s.store.Fail(errors.New("gone again"))
	s.text(t, "read", `{}`)
	if lines := strings.Count(s.log.String(), "\n"); lines != 1 || !strings.Contains(s.log.String(), "connection refused") {
		t.Errorf("log:\n%s", s.log.String())
	}
	s.now = s.now.Add(time.Minute)
	s.text(t, "read", `{}`)
	if lines := strings.Count(s.log.String(), "\n"); lines != 2 || !strings.Contains(s.log.String(), "gone again") {
		t.Errorf("log:\n%s", s.log.String())
	}
}

// TestLostDrops: the scopes to be dropped are remembered one by one.
func TestLostDrops(t *testing.T) {
	t.Parallel()
	s := newSetup(nil)
	names := []string{"a", "b", "c"}
	for _, name := range names {
		s.text(t, "read", `{}`, session(name))
	}
	s.store.Fail(errors.New("away"))
	s.text(t, "write", `{}`, session("a"))
	s.text(t, "write", `{}`, session("b"))
	s.store.Fail(nil)
	s.now = s.now.Add(5 * time.Second)
	for name, want := range map[string]string{"a": "", "b": "", "c": "run 3"} {
		got := s.text(t, "read", `{}`, session(name))
		if want == "" && got != fmt.Sprint("run ", s.runs) {
			t.Errorf("%s: stale %q", name, got)
		}
		if want != "" && got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestCallerEnds: a caller that gives up is no failure of the store.
func TestCallerEnds(t *testing.T) {
	t.Parallel()
	s := newSetup(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.call(ctx, "read", `{}`); err != nil {
		t.Fatal(err)
	}
	if s.log.Len() > 0 {
		t.Errorf("log: %s", s.log.String())
	}
	s.text(t, "read", `{}`)
	if got := s.text(t, "read", `{}`); got != "run 2" {
		t.Errorf("got %q", got)
	}
}

// TestForeign: what is not of this version is read again and replaced.
func TestForeign(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "no JSON", `{"v":2,"text":"x"}`, `{"v":1,"raw":`} {
		s := newSetup(nil)
		given := &given{Store: s.store, value: []byte(value)}
		s.Cache = cache.New(cache.Options{Store: given, Timeout: time.Hour})
		if call, res, err := s.call(t.Context(), "read", `{}`); err != nil || res.Text != "run 1" || call.Trail.Cached {
			t.Errorf("%q: %v, %v", value, res, err)
		}
		given.value = nil
		if call, res, err := s.call(t.Context(), "read", `{}`); err != nil || res.Text != "run 1" || !call.Trail.Cached {
			t.Errorf("%q: %v, %v", value, res, err)
		}
	}
}

// given is a store that always returns a certain value.
type given struct {
	cache.Store
	value []byte
}

func (g *given) Get(ctx context.Context, scope, key string) (cache.Entry, error) {
	e, err := g.Store.Get(ctx, scope, key)
	if g.value != nil {
		e.Value = g.value
	}
	return e, err
}

// TestSlowStore: a store that does not answer delays a call by the timeout, and the next call not at all.
func TestSlowStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(nil)
		s.Cache = cache.New(cache.Options{Store: silent{}})
		began := time.Now()
		s.text(t, "read", `{}`)
		s.text(t, "write", `{}`)
		s.text(t, "read", `{}`)
		if waited := time.Since(began); waited != time.Second || s.runs != 3 {
			t.Errorf("waited %s, %d runs", waited, s.runs)
		}
	})
}

// silent is a store that never answers.
type silent struct{}

func (silent) Get(ctx context.Context, _, _ string) (cache.Entry, error) {
	<-ctx.Done()
	return cache.Entry{}, ctx.Err()
}

func (silent) Set(ctx context.Context, _, _ string, _ cache.Entry, _ time.Duration) error {
	<-ctx.Done()
	return ctx.Err()
}

func (silent) Drop(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}
