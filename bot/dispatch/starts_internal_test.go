package dispatch

import (
	"testing"
	"time"
)

// TestPlacesAreLearnt: a store for which a beginning takes as long with many others gets many places, one that makes one
// after the other few, also when it has had too much to do for long, and one with some room for others as many as
// that.
func TestPlacesAreLearnt(t *testing.T) {
	t.Parallel()
	const each = 2 * time.Millisecond
	cases := map[string]struct {
		took        func(places int) time.Duration
		least, most int
	}{
		"commits what waits together": {func(int) time.Duration { return 50 * time.Millisecond }, mostPlaces - 16, mostPlaces},
		"one after the other":         {func(n int) time.Duration { return time.Duration(n) * each }, leastPlaces, 20},
		"has sixteen connections":     {func(n int) time.Duration { return time.Duration(max(n, 16)) * each }, 18, 34},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, busy := range []bool{false, true} { // from the start
				s, now := starts{limit: firstPlaces}, time.Unix(0, 0)
				step := func(short bool) {
					n := s.limit
					if !short {
						n = 1
					}
					s.short = s.short || short
					took := c.took(n)
					now = now.Add(took / time.Duration(n))
					s.began(took, now)
				}
				for range 1000 {
					step(busy)
				}
				var sum, n int
				for until := now.Add(20 * time.Minute); now.Before(until); {
					if step(true); s.probe == 0 {
						sum, n = sum+s.limit, n+1
					}
				}
				if average := sum / n; average < c.least || average > c.most || s.limit > c.most {
					t.Errorf("busy from the start %t: %d places on average, %d now, want %d to %d", busy, average, s.limit, c.least, c.most)
				}
			}
		})
	}
}
