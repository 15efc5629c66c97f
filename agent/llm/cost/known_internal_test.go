package cost

import (
	"strconv"
	"testing"
)

// TestAnswersAreKept: the tables are asked once for a model at an address, and what is kept has a limit.
func TestAnswersAreKept(t *testing.T) {
	t.Parallel()
	var a answers[int]
	asked := 0
	ask := func(base, name string) int {
		return a.of(modelAt{base, name}, func() int {
			asked++
			return asked
		})
	}
	if ask("a", "m") != 1 || ask("b", "m") != 2 || ask("a", "m") != 1 || ask("b", "m") != 2 {
		t.Errorf("asked %d times for two", asked)
	}
	for i := range 3 * maxKnown {
		if got := ask("a", strconv.Itoa(i)); got != asked {
			t.Errorf("model %d: %d, want %d", i, got, asked)
		}
		if len(a.known) > maxKnown {
			t.Fatalf("%d answers are kept", len(a.known))
		}
	}
}
