// Package fair provides a queue in which parties take turns, so that a party with few requests does not wait behind one
// with many.
package fair

import "container/list"

// Queue hands out items round-robin by party, each party's items in order. It counts the items of a party that are in
// progress, from Pop to Done, and skips a party that has Most in progress. The zero value is ready for use and has no
// such limit. Not safe for concurrent use.
type Queue[T any] struct {
	Most int // items of one party in progress at once; 0 = no limit. Set before the first Push

	parties map[string]*party[T]
	round   list.List // of *party: those with waiting items and below the limit
	waiting int
}

// party is a participant of the round.
type party[T any] struct {
	who   string
	items []T // oldest first
	busy  int
	place *list.Element // in the round; nil = not in it
}

// Len returns the number of waiting items.
func (q *Queue[T]) Len() int { return q.waiting }

// Push adds an item after the others of its party.
func (q *Queue[T]) Push(who string, item T) {
	p := q.partyOf(who)
	p.items = append(p.items, item)
	q.waiting++
	q.placeParty(p)
}

// Pop takes the next item and counts it as in progress until Done. ok is false if nothing waits, or only items of
// parties that are at the limit.
func (q *Queue[T]) Pop() (who string, item T, ok bool) {
	front := q.round.Front()
	if front == nil {
		return "", item, false
	}
	p, _ := front.Value.(*party[T])
	q.round.Remove(front)
	p.place = nil
	item = p.items[0]
	var none T
	p.items[0] = none // so that the array does not keep the item alive
	p.items = p.items[1:]
	q.waiting--
	p.busy++
	q.placeParty(p)
	return p.who, item, true
}

// Begin counts an item that never waited as in progress. It returns false and changes nothing if the party is at the
// limit.
func (q *Queue[T]) Begin(who string) bool {
	p := q.partyOf(who)
	if q.Most > 0 && p.busy >= q.Most {
		return false
	}
	p.busy++
	q.placeParty(p)
	return true
}

// Done ends one item in progress of a party.
func (q *Queue[T]) Done(who string) {
	p := q.partyOf(who)
	p.busy = max(0, p.busy-1)
	q.placeParty(p)
}

// Move counts one item in progress for another party than the one it was handed out for. It returns false and changes
// nothing if that party is at the limit.
func (q *Queue[T]) Move(from, to string) bool {
	if from == to {
		return true
	}
	p := q.partyOf(to)
	if q.Most > 0 && p.busy >= q.Most {
		q.placeParty(p)
		return false
	}
	p.busy++
	q.placeParty(p)
	q.Done(from)
	return true
}

func (q *Queue[T]) partyOf(who string) *party[T] {
	if q.parties == nil {
		q.parties = map[string]*party[T]{}
	}
	p := q.parties[who]
	if p == nil {
		p = &party[T]{who: who}
		q.parties[who] = p
	}
	return p
}

// placeParty adds a party to the round or removes it, and deletes a party that has nothing left.
func (q *Queue[T]) placeParty(p *party[T]) {
	has, room := len(p.items) > 0, q.Most <= 0 || p.busy < q.Most
	switch {
	case has && room && p.place == nil:
		p.place = q.round.PushBack(p)
	case (!has || !room) && p.place != nil:
		q.round.Remove(p.place)
		p.place = nil
	}
	if !has && p.busy == 0 {
		delete(q.parties, p.who)
	}
}
