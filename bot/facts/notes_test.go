package facts_test

import (
	"slices"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/facts"
)

// TestNotes: notes about a thing are its own, and one that is added while others are deleted stays.
func TestNotes(t *testing.T) {
	t.Parallel()
	n := facts.Notes{Bucket: facts.Bucket{Name: "b", Store: bottest.New(), Now: time.Now, For: time.Hour}}
	for _, about := range []string{"files/s#1", "files/s#1", "files/s#12"} {
		if err := n.Note(t.Context(), about); err != nil {
			t.Fatal(err)
		}
	}
	ids, err := n.Noted(t.Context(), "files/s#1")
	if err != nil || len(ids) != 2 {
		t.Fatalf("%v, %v", ids, err)
	}
	if err := n.Note(t.Context(), "files/s#1"); err != nil {
		t.Fatal(err)
	}
	if err := n.Forget(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	left, err := n.Noted(t.Context(), "files/s#1")
	if err != nil || len(left) != 1 || slices.Contains(ids, left[0]) {
		t.Errorf("left %v, %v", left, err)
	}
	if other, err := n.Noted(t.Context(), "files/s#12"); err != nil || len(other) != 1 {
		t.Errorf("of another thing: %v, %v", other, err)
	}
}
