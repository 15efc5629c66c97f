package simulator

import "sync"

// hub notifies all waiting callers that something has changed.
type hub struct {
	mu      sync.Mutex
	version uint64
	changed chan struct{}
}

func newHub() *hub { return &hub{version: 1, changed: make(chan struct{})} }

func (h *hub) bumpVersion() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version++
	close(h.changed)
	h.changed = make(chan struct{})
}

// currentVersion returns the version and a channel that is closed at the next change.
func (h *hub) currentVersion() (uint64, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version, h.changed
}
