package vector

import "github.com/zephbot/zephbot/agent/knn"

// Held returns the bytes of copies in memory.
func Held(s knn.Spaces) int64 {
	e := s.(*exact) //nolint:forcetypeassert // a test
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.bytes
}

// Coded returns the number of copies that have codes.
func Coded(s knn.Spaces) (n int) {
	e := s.(*exact) //nolint:forcetypeassert // a test
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, kept := range e.shelves {
		if kept.coded {
			n++
		}
	}
	return n
}
