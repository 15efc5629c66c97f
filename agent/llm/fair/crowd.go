package fair

import "container/list"

// Crowd hands out items that a person has somewhere, so that neither a person nor a place with many items delays those
// of others: places take turns, in a place its people do, and somebody who waits in many places gets one item a lap,
// which is when every place was asked once. Items of one person in one place keep their order. It counts the items of a
// person that are in progress, from Pop to Done, and passes over a person who has Most in progress. The zero value is
// ready for use and has no such limit. Not safe for concurrent use.
type Crowd[T any] struct {
	Most int // items of one person in progress at once; 0 = no limit. Set before the first Push

	people  map[string]*person
	places  map[string]*place[T]
	round   list.List     // of *place[T] with waiting items, and the mark
	mark    *list.Element // where the next lap begins
	lap     int
	waiting int
}

// person is somebody who waits, or has items in progress.
type person struct {
	waiting, busy int
	lap           int // in which they got their latest item
}

// place is where items wait.
type place[T any] struct {
	name  string
	queue map[string]*list.Element // by person
	round list.List                // of *flow[T]
	at    *list.Element            // in the round of places
}

// flow are the items of a person in a place, the oldest first.
type flow[T any] struct {
	who   string
	items []T
}

// Len returns the number of waiting items.
func (c *Crowd[T]) Len() int { return c.waiting }

// Push adds an item of a person in a place.
func (c *Crowd[T]) Push(who, where string, item T) {
	c.personOf(who).waiting++
	c.waiting++
	p := c.places[where]
	if p == nil {
		p = &place[T]{name: where, queue: map[string]*list.Element{}}
		p.at = c.round.PushBack(p)
		c.places[where] = p
	}
	at := p.queue[who]
	if at == nil {
		at = p.round.PushBack(&flow[T]{who: who})
		p.queue[who] = at
	}
	f := flowOf[T](at)
	f.items = append(f.items, item)
}

// Pop takes the next item and counts it as in progress until Done. ok is false if nothing waits, or only items of
// people who are at the limit.
func (c *Crowd[T]) Pop() (who string, item T, ok bool) {
	if c.waiting == 0 {
		return "", item, false
	}
	for marks := 0; marks < 2; { // what is left of this lap, and one more
		front := c.round.Front()
		c.round.MoveToBack(front)
		if front == c.mark {
			c.lap++
			marks++
			continue
		}
		p, _ := front.Value.(*place[T])
		if at := c.nextFlow(p); at != nil {
			f := flowOf[T](at)
			return f.who, c.takeOldest(p, at), true
		}
	}
	return "", item, false
}

// nextFlow returns who is next in a place; nil = nobody in this lap.
func (c *Crowd[T]) nextFlow(p *place[T]) *list.Element {
	for at := p.round.Front(); at != nil; at = at.Next() {
		who := c.people[flowOf[T](at).who]
		if who.lap < c.lap && (c.Most <= 0 || who.busy < c.Most) {
			return at
		}
	}
	return nil
}

// takeOldest removes the oldest item of a flow.
func (c *Crowd[T]) takeOldest(p *place[T], at *list.Element) T {
	f := flowOf[T](at)
	who := c.people[f.who]
	who.lap, who.waiting, who.busy = c.lap, who.waiting-1, who.busy+1
	c.waiting--
	item := f.items[0]
	var none T
	f.items[0] = none // so that the array does not keep the item alive
	f.items = f.items[1:]
	p.round.MoveToBack(at)
	if len(f.items) == 0 {
		p.round.Remove(at)
		delete(p.queue, f.who)
	}
	if p.round.Len() == 0 {
		c.round.Remove(p.at)
		delete(c.places, p.name)
	}
	return item
}

// Begin counts an item that never waited as in progress. It returns false and changes nothing if the person is at the
// limit.
func (c *Crowd[T]) Begin(who string) bool {
	p := c.personOf(who)
	if c.Most > 0 && p.busy >= c.Most {
		return false
	}
	p.busy++
	return true
}

// Done ends one item in progress of a person.
func (c *Crowd[T]) Done(who string) {
	p := c.personOf(who)
	if p.busy = max(0, p.busy-1); p.busy == 0 && p.waiting == 0 {
		delete(c.people, who)
	}
}

// Move counts one item in progress for another person than the one it was handed out for. It returns false and changes
// nothing if that person is at the limit.
func (c *Crowd[T]) Move(from, to string) bool {
	if from == to {
		return true
	}
	if !c.Begin(to) {
		return false
	}
	c.Done(from)
	return true
}

func (c *Crowd[T]) personOf(who string) *person {
	if c.people == nil {
		c.people, c.places, c.lap = map[string]*person{}, map[string]*place[T]{}, 1
		c.mark = c.round.PushBack(nil)
	}
	p := c.people[who]
	if p == nil {
		p = &person{}
		c.people[who] = p
	}
	return p
}

func flowOf[T any](at *list.Element) *flow[T] {
	f, _ := at.Value.(*flow[T])
	return f
}
