package overflow

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// defaultMemory is the default capacity of a Memory in bytes.
const defaultMemory = 64 << 20

// Memory is a Store for a process without a database: its content is lost when the process ends. When it is full, the
// oldest outputs are dropped.
type Memory struct {
	max int

	mu    sync.Mutex
	items []Item // oldest first
	used  int    // bytes of text
}

// NewMemory returns a Memory for maxBytes of text; 0 or less = defaultMemory.
func NewMemory(maxBytes int) *Memory {
	if maxBytes <= 0 {
		maxBytes = defaultMemory
	}
	return &Memory{max: maxBytes}
}

var _ Store = (*Memory)(nil)

// Save implements Store. A text that is larger than the whole memory is an error.
func (m *Memory) Save(ctx context.Context, item Item) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("keep output: %w", err)
	}
	if err := item.Validate(); err != nil {
		return err
	}
	if len(item.Text) > m.max {
		return fmt.Errorf("keep output: %d bytes are more than the %d of the whole memory", len(item.Text), m.max)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	same := func(i Item) bool { return i.Session == item.Session && i.Turn == item.Turn && i.Call == item.Call }
	if slices.ContainsFunc(m.items, func(i Item) bool { return i.ID == item.ID && !same(i) }) {
		return fmt.Errorf("keep output: id %s is taken", item.ID)
	}
	m.remove(func(i Item) bool { return same(i) || over(i, item.Created) })
	m.items = append(m.items, item)
	m.used += len(item.Text)
	for m.used > m.max {
		m.used -= len(m.items[0].Text)
		m.items = slices.Delete(m.items, 0, 1)
	}
	return nil
}

func (m *Memory) remove(which func(Item) bool) {
	m.items = slices.DeleteFunc(m.items, func(i Item) bool {
		gone := which(i)
		if gone {
			m.used -= len(i.Text)
		}
		return gone
	})
}

// over reports whether an item has expired, which includes the moment of its expiry.
func over(i Item, now time.Time) bool { return !i.Expires.IsZero() && !now.Before(i.Expires) }

// Load implements Store.
func (m *Memory) Load(ctx context.Context, session, id string, now time.Time) (Item, error) {
	if err := ctx.Err(); err != nil {
		return Item{}, fmt.Errorf("read output: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range m.items {
		if i.ID == id && i.Session == session && !over(i, now) {
			return i, nil
		}
	}
	return Item{}, ErrNotFound
}
