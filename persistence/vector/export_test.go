package vector

import "github.com/zephbot/zephbot/agent/knn"

// Held returns the bytes of copies in memory.
func Held(s knn.Spaces) int64 {
	e := s.(*exact) //nolint:forcetypeassert // a test
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.bytes
}
