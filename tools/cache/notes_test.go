package cache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools/cache"
)

// board keeps notes in memory.
type board struct {
	mu  sync.Mutex
	n   int
	ids []string
}

func (b *board) Note(_ context.Context, scope string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	b.ids = append(b.ids, fmt.Sprint(scope, "/", b.n))
	return nil
}

func (b *board) Noted(_ context.Context, scope string) (list []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range b.ids {
		if strings.HasPrefix(id, scope+"/") {
			list = append(list, id)
		}
	}
	return list, nil
}

func (b *board) Forget(_ context.Context, ids []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ids = slices.DeleteFunc(b.ids, func(id string) bool { return slices.Contains(ids, id) })
	return nil
}

// failing are notes that cannot be read or written.
type failing struct{}

func (failing) Note(context.Context, string) error { return errors.New("the disk is away") }
func (failing) Noted(context.Context, string) ([]string, error) {
	return nil, errors.New("the disk is away")
}
func (failing) Forget(context.Context, []string) error { return errors.New("the disk is away") }

// TestAnotherProcessKnows: what one process could not drop is no answer of another one, nor of the next process after a
// crash; once it is dropped, results are kept again.
func TestAnotherProcessKnows(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	notes := &board{}
	first := newSetup(func(o *cache.Options) { o.Notes = notes })
	second := newSetup(func(o *cache.Options) { o.Notes = notes })
	second.store = first.store
	second.Cache = cache.New(cache.Options{Store: first.store, TTL: 5 * time.Minute, Timeout: time.Hour, Now: func() time.Time { return now }, Notes: notes, Observe: func(result string) { second.observed = append(second.observed, result) }})
	first.text(t, "read", `{}`, session("a"))
	first.text(t, "read", `{}`, session("ab"))
	first.store.Fail(errors.New("connection refused"))
	first.text(t, "write", `{}`, session("a")) // the drop is lost, and this process dies
	first.store.Fail(nil)
	second.runs = 10
	if got := second.text(t, "read", `{}`, session("ab")); got != "run 2" {
		t.Errorf("another conversation: %q", got)
	}
	if got := second.text(t, "read", `{}`, session("a")); got != "run 11" {
		t.Errorf("out of date: %q", got)
	}
	fresh := second.text(t, "read", `{}`, session("a"))
	if got := second.text(t, "read", `{}`, session("a")); got != fresh {
		t.Errorf("%q after %q: nothing is kept any more", got, fresh)
	}
	if len(notes.ids) > 0 {
		t.Errorf("notes left: %v", notes.ids)
	}
}

// TestNotesAway: while notes cannot be read, nothing that was stored before is an answer, and no call fails.
func TestNotesAway(t *testing.T) {
	t.Parallel()
	s := newSetup(func(o *cache.Options) { o.Notes = failing{} })
	s.text(t, "read", `{}`)
	if got := s.text(t, "read", `{}`); got != fmt.Sprint("run ", s.runs) || s.runs != 2 {
		t.Errorf("an answer of which nobody knows whether it is out of date: %q", got)
	}
	s.store.Fail(errors.New("connection refused"))
	s.text(t, "write", `{}`)
	if !strings.Contains(s.log.String(), "other processes are not told") {
		t.Errorf("log: %s", s.log.String())
	}
}
