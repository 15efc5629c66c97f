package fair_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm/fair"
)

// TestCrowdOrder: neither somebody who writes in many places nor a place in which many write pushes others back.
func TestCrowdOrder(t *testing.T) {
	t.Parallel()
	type push struct{ who, where string }
	cases := map[string]struct {
		pushes []push
		want   string
	}{
		"many places of one": {
			[]push{{"greedy", "a"}, {"greedy", "b"}, {"greedy", "c"}, {"ann", "ann"}, {"greedy", "d"}},
			"greedy ann greedy greedy greedy",
		},
		"many people of one place": {
			[]push{{"p1", "loud"}, {"p2", "loud"}, {"p3", "loud"}, {"p4", "loud"}, {"ann", "ann"}, {"ben", "ben"}},
			"p1 ann ben p2 p3 p4",
		},
		"one with many items in a place of others": {
			[]push{{"greedy", "forum"}, {"greedy", "forum"}, {"greedy", "forum"}, {"ann", "forum"}, {"ben", "forum"}},
			"greedy ann ben greedy greedy",
		},
		"one in many places, and others there": {
			[]push{{"greedy", "a"}, {"greedy", "b"}, {"greedy", "c"}, {"ann", "b"}, {"ben", "c"}},
			"greedy ann ben greedy greedy",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var crowd fair.Crowd[string]
			for _, p := range c.pushes {
				crowd.Push(p.who, p.where, p.who)
			}
			var got []string
			for {
				who, _, ok := crowd.Pop()
				if !ok {
					break
				}
				got = append(got, who)
			}
			if order := strings.Join(got, " "); order != c.want || crowd.Len() != 0 {
				t.Errorf("order %q, want %q; %d wait", order, c.want, crowd.Len())
			}
		})
	}
}

// TestCrowdMost: a person at the limit is passed over, wherever their items wait.
func TestCrowdMost(t *testing.T) {
	t.Parallel()
	c := fair.Crowd[int]{Most: 2}
	for i := range 5 {
		c.Push("a", fmt.Sprint("place ", i), i)
	}
	for want := range 2 {
		if _, item, ok := c.Pop(); !ok || item != want {
			t.Fatalf("item %d %v, want %d", item, ok, want)
		}
	}
	if _, _, ok := c.Pop(); ok || c.Len() != 3 {
		t.Fatalf("a third item is handed out; %d wait", c.Len())
	}
	c.Push("b", "place 3", 10)
	if who, _, ok := c.Pop(); !ok || who != "b" {
		t.Fatalf("%q %v, want b", who, ok)
	}
	if c.Begin("a") || c.Move("b", "a") {
		t.Error("more than the limit")
	}
	if !c.Move("a", "b") || !c.Move("b", "b") {
		t.Error("not moved to a person with room")
	}
	if who, _, ok := c.Pop(); !ok || who != "a" {
		t.Errorf("%q %v, want a, who is below the limit again", who, ok)
	}
	c.Done("b")
	c.Done("b")
	c.Done("nobody")
}

// TestCrowdShares: whatever is pushed and popped, no item is lost or handed out twice, no person exceeds the limit, items
// of a person in a place keep their order, and while the first item of somebody in a place of their own waits, everybody
// else gets at most two and every other place two.
func TestCrowdShares(t *testing.T) {
	t.Parallel()
	type item struct {
		who, where string
		n          int
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		c := fair.Crowd[item]{Most: r.IntN(4)}
		waiting, busy, last := map[item]bool{}, map[string]int{}, map[string]int{}
		var alone *item // the only item of a person who is in a place of their own
		people, places := map[string]int{}, map[string]int{}
		for n := range 600 {
			who, where := fmt.Sprint("p", r.IntN(7)), fmt.Sprint("w", r.IntN(5))
			switch r.IntN(4) {
			case 0:
				i := item{who, where, n}
				c.Push(who, where, i)
				waiting[i] = true
			case 1:
				if busy[who] > 0 {
					c.Done(who)
					busy[who]--
				}
			case 2:
				if alone == nil && busy["ann"] == 0 {
					alone = &item{"ann", "ann", n}
					c.Push("ann", "ann", *alone)
					waiting[*alone] = true
					clear(people)
					clear(places)
				}
			default:
				got, i, ok := c.Pop()
				if !ok {
					for w := range waiting {
						if c.Most == 0 || busy[w.who] < c.Most {
							t.Fatalf("seed %d: %v waits and is not handed out", seed, w)
						}
					}
					continue
				}
				if got != i.who || !waiting[i] {
					t.Fatalf("seed %d: %v handed out for %s", seed, i, got)
				}
				delete(waiting, i)
				if busy[i.who]++; c.Most > 0 && busy[i.who] > c.Most {
					t.Fatalf("seed %d: %s has %d in progress", seed, i.who, busy[i.who])
				}
				if key := i.who + "/" + i.where; last[key] > i.n {
					t.Fatalf("seed %d: %v comes after %d", seed, i, last[key])
				} else {
					last[key] = i.n
				}
				if i.who == "ann" {
					alone = nil
					c.Done("ann")
					busy["ann"]--
					continue
				}
				people[i.who]++
				places[i.where]++
				if alone != nil && (people[i.who] > 2 || places[i.where] > 2) {
					t.Fatalf("seed %d: %s got %d and %s %d while ann waits", seed, i.who, people[i.who], i.where, places[i.where])
				}
			}
		}
		if c.Len() != len(waiting) {
			t.Fatalf("seed %d: %d wait, want %d", seed, c.Len(), len(waiting))
		}
	}
}
