package catalog

import "container/list"

// lru keeps the most recently used entries. Not safe for concurrent use.
type lru[K comparable, V any] struct {
	max   int
	order *list.List // of *pair, most recently used first
	at    map[K]*list.Element
}

type pair[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](limit int) *lru[K, V] {
	return &lru[K, V]{max: limit, order: list.New(), at: map[K]*list.Element{}}
}

func (l *lru[K, V]) get(key K) (V, bool) {
	e, ok := l.at[key]
	if !ok {
		var zero V
		return zero, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*pair[K, V]).value, true
}

func (l *lru[K, V]) put(key K, value V) {
	if e, ok := l.at[key]; ok {
		e.Value.(*pair[K, V]).value = value
		l.order.MoveToFront(e)
		return
	}
	l.at[key] = l.order.PushFront(&pair[K, V]{key, value})
	if l.order.Len() > l.max {
		oldest := l.order.Back()
		l.order.Remove(oldest)
		delete(l.at, oldest.Value.(*pair[K, V]).key)
	}
}
