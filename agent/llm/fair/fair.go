// Package fair lets many parties take turns: whoever has asked for little does not stand behind whoever has asked for
// much.
package fair

import "container/list"

// Queue hands items out party by party, each party's own in their order: after an item of one party comes one of the
// next that has any. It counts what of a party is in work, from Pop to Done, and keeps a party that has Most in work
// out of the round. The zero value is ready and has no such limit. Not safe for concurrent use.
type Queue[T any] struct {
	Most int // items of one party in work at once; 0 = any number. Set before the first Push

	parties map[string]*party[T]
	round   list.List // of *party: those with something to hand out and room for it
	waiting int
}

// party is one of those who take turns.
type party[T any] struct {
	who   string
	items []T // oldest first
	busy  int
	place *list.Element // in the round; nil = not in it
}

// Len is the number of items that wait.
func (q *Queue[T]) Len() int { return q.waiting }

// Push adds an item behind the others of its party.
func (q *Queue[T]) Push(who string, item T) {
	p := q.party(who)
	p.items = append(p.items, item)
	q.waiting++
	q.settle(p)
}

// Pop takes the next item and counts it as in work until Done. ok is false when nothing waits, or only what belongs to
// parties with enough in work.
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
	p.items[0] = none // the array may live on
	p.items = p.items[1:]
	q.waiting--
	p.busy++
	q.settle(p)
	return p.who, item, true
}

// Begin counts an item of a party as in work that never waited; false, and nothing is changed, when the party has
// enough in work.
func (q *Queue[T]) Begin(who string) bool {
	p := q.party(who)
	if q.Most > 0 && p.busy >= q.Most {
		return false
	}
	p.busy++
	q.settle(p)
	return true
}

// Done says that one item of a party is no longer in work.
func (q *Queue[T]) Done(who string) {
	p := q.party(who)
	p.busy = max(0, p.busy-1)
	q.settle(p)
}

// Move counts one item in work for another party than it was handed out for; false, and nothing is changed, when that
// party has enough in work.
func (q *Queue[T]) Move(from, to string) bool {
	if from == to {
		return true
	}
	p := q.party(to)
	if q.Most > 0 && p.busy >= q.Most {
		q.settle(p)
		return false
	}
	p.busy++
	q.settle(p)
	q.Done(from)
	return true
}

func (q *Queue[T]) party(who string) *party[T] {
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

// settle brings a party into the round or out of it, and forgets one of which nothing is left.
func (q *Queue[T]) settle(p *party[T]) {
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
