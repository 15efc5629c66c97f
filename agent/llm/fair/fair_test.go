package fair_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm/fair"
)

func TestRound(t *testing.T) {
	t.Parallel()
	var q fair.Queue[int]
	for i := range 5 {
		q.Push("a", i)
	}
	q.Push("b", 10)
	q.Push("c", 20)
	q.Push("b", 11)
	var order []string
	for {
		who, item, ok := q.Pop()
		if !ok {
			break
		}
		order = append(order, fmt.Sprint(who, item))
	}
	if got, want := strings.Join(order, " "), "a0 b10 c20 a1 b11 a2 a3 a4"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
}

func TestMost(t *testing.T) {
	t.Parallel()
	q := fair.Queue[int]{Most: 2}
	for i := range 5 {
		q.Push("a", i)
	}
	for want := range 2 {
		if _, item, ok := q.Pop(); !ok || item != want {
			t.Fatalf("item %d %v, want %d", item, ok, want)
		}
	}
	if _, _, ok := q.Pop(); ok || q.Len() != 3 {
		t.Fatalf("a third item is handed out; %d wait", q.Len())
	}
	q.Push("b", 10)
	if who, _, ok := q.Pop(); !ok || who != "b" {
		t.Fatalf("%q %v, want b", who, ok)
	}
	if q.Move("b", "a") {
		t.Error("moved to a party that has enough")
	}
	if !q.Move("a", "b") || !q.Move("b", "b") {
		t.Error("not moved to a party with room")
	}
	if _, item, ok := q.Pop(); !ok || item != 2 { // a is below its limit again
		t.Errorf("item %d %v, want 2", item, ok)
	}
	q.Done("b")
	q.Done("b")
	q.Done("nobody")
}

// TestShares: whatever is pushed and popped, no item is lost, no party exceeds its limit, and between two items of one
// party every other party that was waiting and below its limit gets one.
func TestShares(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		q := fair.Queue[string]{Most: r.IntN(4)}
		waiting, busy, passed := map[string]int{}, map[string]int{}, map[string]int{}
		for range 500 {
			who := fmt.Sprint("p", r.IntN(6))
			switch r.IntN(3) {
			case 0:
				q.Push(who, who)
				waiting[who]++
			case 1:
				if busy[who] > 0 {
					q.Done(who)
					busy[who]--
				}
			default:
				got, item, ok := q.Pop()
				for other, n := range waiting {
					able := n > 0 && (q.Most <= 0 || busy[other] < q.Most)
					switch {
					case able && !ok:
						t.Fatalf("seed %d: nothing is handed out, %s could be", seed, other)
					case able && other != got:
						if passed[other]++; passed[other] > 5 {
							t.Fatalf("seed %d: %s was passed over %d times by 5 others", seed, other, passed[other])
						}
					default:
						passed[other] = 0
					}
				}
				if !ok {
					continue
				}
				if item != got || waiting[got] == 0 || (q.Most > 0 && busy[got] >= q.Most) {
					t.Fatalf("seed %d: %q of %q: %d waited, %d in work", seed, item, got, waiting[got], busy[got])
				}
				waiting[got]--
				busy[got]++
			}
			total := 0
			for _, n := range waiting {
				total += n
			}
			if q.Len() != total {
				t.Fatalf("seed %d: %d wait, want %d", seed, q.Len(), total)
			}
		}
	}
}
