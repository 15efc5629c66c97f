package choice

import (
	"maps"
	"sync"
	"time"
)

// aheadFor is how long a choice counts in its process before it was read back, at most.
const aheadFor = 5 * time.Second

// ahead holds the choices that were made in this process a moment ago. The answer to a choice is sent with the commit
// that stores it, and the next question may come before the choice was read back. A choice whose commit failed counts
// until it is no longer ahead: the person who made it has asked for it. Safe for concurrent use.
type ahead struct {
	mu    sync.Mutex
	names map[string]string // provider by key; "" = none; replaced, never changed
	until time.Time
}

// make has a choice count from now on.
func (a *ahead) make(key, name string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	names := map[string]string{key: name}
	if now.Before(a.until) {
		names = maps.Clone(a.names)
		names[key] = name
	}
	a.names, a.until = names, now.Add(aheadFor)
}

// read ends the time of a choice, unless another one was made since: it was read back.
func (a *ahead) read(key, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.names[key] == name {
		a.names = maps.Clone(a.names)
		delete(a.names, key)
	}
}

// since returns the choices that count now; the map must not be changed.
func (a *ahead) since(now time.Time) map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Before(a.until) {
		return a.names
	}
	a.names = nil
	return nil
}
