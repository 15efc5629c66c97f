package dispatch

import (
	"fmt"
	"testing"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// TestMemoryForWhatIsKept: a small process remembers as much as ever, a large one more, within bounds.
func TestMemoryForWhatIsKept(t *testing.T) {
	t.Parallel()
	for turns, want := range map[int64]int{
		0: 8 << 20, 64 << 20: 8 << 20, 1 << 30: 32 << 20, 1 << 40: 64 << 20,
	} {
		if got := keptBytes(turns); got != want {
			t.Errorf("where turns may hold %d bytes, %d are kept, want %d", turns, got, want)
		}
	}
}

// TestLanesOutliveTails: where there is no room for the journal of a session, its lane is still remembered; one of two
// sessions that is used stays.
func TestLanesOutliveTails(t *testing.T) {
	t.Parallel()
	long := journal.Tail{Entries: []journal.Entry{{N: 3, Text: fmt.Sprintf("%10000d", 1)}}}
	k := newKept(25_000)
	lane := func(name string) bot.Lane { return bot.Lane{Session: bot.SessionKey(name), Fence: 2, Last: 3} }
	for _, name := range []string{"a", "b"} {
		k.put(lane(name), long)
	}
	a := lane("a")
	if _, ok := k.tail(&a); !ok {
		t.Error("there is room for two")
	}
	k.put(lane("c"), long)
	for name, want := range map[string]bool{"a": true, "b": false, "c": true} {
		l := lane(name)
		if _, ok := k.tail(&l); ok != want {
			t.Errorf("the journal of %s is remembered: %t", name, ok)
		}
		if got, ok := k.lane(l.Session); !ok || got.Fence != 2 || got.Last != 3 {
			t.Errorf("the lane of %s: %+v", name, got)
		}
	}
	later := a
	later.Last++
	if _, ok := k.tail(&later); ok {
		t.Error("what is remembered ends before the lane does")
	}
	k.drop("a")
	if _, ok := k.lane("a"); ok {
		t.Error("a dropped session is remembered")
	}
}
