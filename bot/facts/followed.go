package facts

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Followed is what all processes have stored in a bucket, as this one remembers it. A second bucket holds one value,
// which changes with each change of the first: where nothing has changed, Follow reads no more than that. Make it with
// NewFollowed. Safe for concurrent use; it starts no goroutines.
type Followed[T any] struct {
	bucket, revisions string
	store             bot.Facts
	now               func() time.Time
	read              func(list []bot.Fact) T
	// following is held while the store is read: what was read before a change must not replace what was read after it.
	following chan struct{}

	mu        sync.Mutex
	known     bool // revision and value have been read, and Forget was not called since
	forgotten int  // how often Forget was called
	revision  string
	value     T
}

// NewFollowed returns what is in a bucket; before the first Follow, that is nothing. read makes the value of the facts,
// one call at a time in the order in which they were read; what it returns is never changed.
func NewFollowed[T any](
	store bot.Facts, bucket, revisions string, now func() time.Time, read func(list []bot.Fact) T,
) *Followed[T] {
	return &Followed[T]{
		bucket:    bucket,
		revisions: revisions,
		store:     store,
		now:       now,
		read:      read,
		following: make(chan struct{}, 1),
		value:     read(nil),
	}
}

// Value returns what the last Follow has read. It reads nothing from the store.
func (f *Followed[T]) Value() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.value
}

// Known reports whether Value is what was stored at the last Follow.
func (f *Followed[T]) Known() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known
}

// Forget makes the next Follow read everything again: keys have changed, because a group has a new id. A Follow that is
// under way does not count.
func (f *Followed[T]) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = false
	f.forgotten++
}

// Revised returns the fact that belongs to each Change of the bucket, by which other processes see that there is one.
func (f *Followed[T]) Revised() bot.Fact { return bot.Fact{Bucket: f.revisions, Value: rand.Text()} }

// Follow reads what any process has stored since the last call.
func (f *Followed[T]) Follow(ctx context.Context) error {
	select {
	case f.following <- struct{}{}:
		defer func() { <-f.following }()
	case <-ctx.Done():
		return fmt.Errorf("read the facts %q: %w", f.bucket, context.Cause(ctx))
	}
	f.mu.Lock()
	known, revision, forgotten := f.known, f.revision, f.forgotten
	f.mu.Unlock()
	// The revision first: a change in between is then read twice instead of never.
	stored, err := f.store.Fact(ctx, f.revisions, "", f.now())
	if err != nil {
		return fmt.Errorf("read whether the facts %q have changed: %w", f.bucket, err)
	}
	if known && stored == revision {
		return nil
	}
	list, err := f.store.FactsOf(ctx, f.bucket, "", f.now())
	if err != nil {
		return fmt.Errorf("read the facts %q: %w", f.bucket, err)
	}
	value := f.read(list)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revision, f.value, f.known = stored, value, f.forgotten == forgotten
	return nil
}
