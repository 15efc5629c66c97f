package memory_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/memory"
)

// TestRecalledAsStored: what a process has in memory of a scope never outlives a change, of whichever process.
func TestRecalledAsStored(t *testing.T) {
	t.Parallel()
	store := bottest.New()
	one, two := open(t, store, nil), open(t, store, nil)
	ann := origin("1", "1")
	one.save(ann, "likes tea", "drink")
	two.follow()
	for i := range 5 {
		if got := two.recall(message("1", "1", "tea or coffee?")); !strings.Contains(got, []string{"tea", "coffee"}[i%2]) {
			t.Fatalf("%d: recalled %q", i, got)
		}
		one.save(ann, "likes "+[]string{"coffee", "tea"}[i%2], "drink") // and two has not looked since
	}
	if n, err := one.DeleteOf(t.Context(), memory.Personal("telegram:1"), ann); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if got := two.recall(message("1", "1", "tea or coffee?")); got != "" {
		t.Errorf("recalled %q", got)
	}
}

// TestManyScopes: more people and memories than are kept in memory are recalled all the same.
func TestManyScopes(t *testing.T) {
	t.Parallel()
	store := bottest.New()
	p := open(t, store, func(d *memory.Deps) { d.Limits.Entries = 10_000 })
	p.fill(10_000)
	if _, err := p.call(origin("1", "1"), "memory_save", map[string]any{"content": "one more"}); err == nil || !strings.Contains(err.Error(), "10000 of 10000 memories are in use: ask the person which can be forgotten (/memory)") {
		t.Errorf("one more than the limit: %v", err)
	}
	for i := range 300 {
		person := fmt.Sprint(100 + i)
		p.save(origin(person, person), "likes tea number"+person, "")
	}
	for _, person := range []string{"100", "399", "100"} {
		if got := p.recall(message(person, person, "which tea do I like?")); !strings.Contains(got, "number"+person) {
			t.Errorf("%s: recalled %q", person, got)
		}
	}
	if got := p.recall(message("1", "1", "which editor of kind 9999?")); !strings.Contains(got, "kind 9999") {
		t.Errorf("of ten thousand, recalled %q", got)
	}
}
