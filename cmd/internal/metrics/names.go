package metrics

import "sync"

// mostTools bounds the names of tools that are counted one by one: servers decide how many tools they have and what
// they are called, and each name costs a histogram.
const mostTools = 100

// otherLabel is the label of what is not counted one by one.
const otherLabel = "other"

// names limits the values of a label. Safe for concurrent use.
type names struct {
	most int

	mu    sync.RWMutex
	known map[string]bool
}

func newNames(most int) *names { return &names{most: most, known: map[string]bool{}} }

// of returns the label for a name: the name itself for the first ones, then Other.
func (n *names) of(name string) string {
	n.mu.RLock()
	known := n.known[name]
	n.mu.RUnlock()
	if known {
		return name
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.known[name] && len(n.known) >= n.most {
		return otherLabel
	}
	n.known[name] = true
	return name
}
