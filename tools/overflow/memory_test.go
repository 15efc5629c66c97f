package overflow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/persistence/storetest"
	"github.com/zephbot/zephbot/tools/overflow"
)

func TestMemoryIsAStore(t *testing.T) {
	t.Parallel()
	storetest.Overflow(t, func(*testing.T) overflow.Store { return overflow.NewMemory(16 << 20) })
}

func TestAFullMemoryForgetsTheOldest(t *testing.T) {
	t.Parallel()
	memory := overflow.NewMemory(10)
	ids := make([]string, 6)
	save := func(n int, text string, created time.Time) error {
		ids[n] = "0f8fad5b-d9cb-469f-a165-70860000000" + string(rune('0'+n))
		return memory.Save(t.Context(), overflow.Item{
			ID: ids[n], Session: call().Origin.Session, Call: ids[n], Text: text, Created: created, Expires: created.Add(time.Hour),
		})
	}
	want := func(what string, list ...bool) {
		t.Helper()
		for n, there := range list {
			if _, found := load(t, memory, ids[n]); found != there {
				t.Errorf("%s: output %d is there: %t", what, n, found)
			}
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(save(0, "1234", start))
	check(save(1, "123456", start))
	want("full", true, true)
	check(save(2, "1", start))
	want("one more", false, true, true)
	check(save(3, "1234567890", start))
	want("a large one", false, false, false, true)
	if err := save(4, strings.Repeat("1", 11), start); err == nil || !strings.Contains(err.Error(), "10 of the whole memory") {
		t.Errorf("larger than the memory: %v", err)
	}
	want("one that does not fit", false, false, false, true, false)
	check(save(3, "again", start))
	check(save(4, "12345", start))
	want("one that was replaced by a shorter one", false, false, false, true, true)
	check(save(5, "", start.Add(time.Hour))) // by then the others have expired
	want("later", false, false, false, false, false, true)
}
