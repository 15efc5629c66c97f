package state

import "slices"

// table contains the rows of one kind as a Change sees them: those of the World, with what the Change has changed so
// far.
type table[K comparable, V any] struct {
	loaded map[K]V
	writes []Write[K, V]
	at     map[K]int // index of writes, once there are many
}

// few is how many writes are searched linearly: most Changes have one or two.
const few = 8

func (t *table[K, V]) find(key K) int {
	if t.at != nil {
		if i, ok := t.at[key]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(t.writes, func(w Write[K, V]) bool { return w.Key == key })
}

// get returns the current state of a row.
func (t *table[K, V]) get(key K) (V, bool) {
	if i := t.find(key); i >= 0 {
		return t.writes[i].New, true
	}
	value, ok := t.loaded[key]
	return value, ok
}

// set sets the new state of a row.
func (t *table[K, V]) set(key K, value V) {
	if i := t.find(key); i >= 0 {
		t.writes[i].New = value
		return
	}
	old, exists := t.loaded[key]
	t.writes = append(t.writes, Write[K, V]{Key: key, Old: old, New: value, Exists: exists})
	switch n := len(t.writes); {
	case t.at != nil:
		t.at[key] = n - 1
	case n > few:
		t.at = make(map[K]int, 2*n)
		for i := range t.writes {
			t.at[t.writes[i].Key] = i
		}
	}
}

// sorted returns the writes ordered by key.
func (t *table[K, V]) sorted(compare func(a, b K) int) []Write[K, V] {
	slices.SortFunc(t.writes, func(a, b Write[K, V]) int { return compare(a.Key, b.Key) })
	return t.writes
}
