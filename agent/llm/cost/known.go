package cost

import "sync"

// modelAt is a model at the server of an address.
type modelAt struct{ base, name string }

// answers keeps what the tables say of the models that were asked for: a question reads both tables, which are not kept
// in memory, and a turn asks several times for the same few models. Safe for concurrent use.
type answers[V any] struct {
	mu    sync.Mutex
	known map[modelAt]V
}

// maxKnown limits how many answers are kept; a service asks for the models of its configuration.
const maxKnown = 256

var (
	sizes   answers[Sizes]
	tariffs answers[*Tariff] // nil = nobody knows the price
)

// of returns what is known, or else finds it.
func (a *answers[V]) of(m modelAt, find func() V) V {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.known[m]
	if ok {
		return v
	}
	if a.known == nil || len(a.known) >= maxKnown {
		a.known = map[modelAt]V{}
	}
	v = find()
	a.known[m] = v
	return v
}
