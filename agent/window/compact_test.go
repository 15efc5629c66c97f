package window_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/agent/window"
)

// texts are turns of one message each.
func texts(sizes ...int) []window.Piece {
	list := make([]window.Piece, len(sizes))
	for i, n := range sizes {
		list[i] = window.Piece{Size: n, Group: i}
	}
	return list
}

func TestCompactDrops(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name          string
		pieces        []window.Piece
		fixed, budget int
		want, total   int
	}{
		{"nothing", nil, 10, 100, 0, 10},
		{"all fits", texts(20, 20, 8), 10, 100, 0, 58},
		{"one too many", texts(20, 20, 12), 10, 100, 1, 42},
		{"only the turn", texts(50, 50, 50), 10, 100, 2, 60},
		{"the turn stays whatever it is", texts(500), 10, 100, 0, 510},
		{"no limit", texts(500, 500), 10, 0, 0, 1010},
		{"unknown window", texts(500, 500), 10, -1, 0, 1010},
	}
	for _, tt := range tests {
		got := window.Compact(tt.pieces, tt.fixed, tt.budget, true)
		if got.Dropped != tt.want || got.Total != tt.total {
			t.Errorf("%s: dropped %d, total %d, want %d, %d", tt.name, got.Dropped, got.Total, tt.want, tt.total)
		}
		kept := window.Compact(tt.pieces, tt.fixed, tt.budget, false)
		if kept.Dropped != 0 {
			t.Errorf("%s: dropped %d although nothing may be", tt.name, kept.Dropped)
		}
	}
}

func TestCompactShortens(t *testing.T) {
	t.Parallel()
	use := func(batch, size int) []window.Piece {
		return []window.Piece{{Size: 2, Batch: batch}, {Size: size, Short: 3, Batch: batch}}
	}
	list := slices.Concat(use(1, 200), use(2, 200), use(3, 200))
	if got := window.Compact(list, 0, 1000, false); !slices.Equal(got.Short, []bool{false, true, false, true, false, false}) || got.Total != 212 {
		t.Errorf("the old ones: %v, %d", got.Short, got.Total)
	}
	list = slices.Concat(use(1, 500), use(2, 390))
	if got := window.Compact(list, 0, 1000, false); got.Total != 397 || got.Short[3] {
		t.Errorf("the newest is whole: %v, %d", got.Short, got.Total)
	}
	list = slices.Concat(use(1, 300), use(2, 900))
	if got := window.Compact(list, 0, 1000, false); got.Total != 10 {
		t.Errorf("the newest does not fit: %v, %d", got.Short, got.Total)
	}
}

// TestCompactCuts: outputs above their share of the window are cut alike in every request; the newest ones are cut to what
// fits, the largest first, and only if their ends do not fit they become references.
func TestCompactCuts(t *testing.T) {
	t.Parallel()
	output := func(batch int, sizes ...int) []window.Piece {
		list := []window.Piece{{Size: 10, Batch: batch}}
		for _, n := range sizes {
			list = append(list, window.Piece{Size: n, Short: 10, Least: 50, Batch: batch})
		}
		return list
	}
	for name, tt := range map[string]struct {
		pieces []window.Piece
		fixed  int
		cut    []int
		short  []bool
		total  int
	}{
		"its share":            {output(1, 900), 0, []int{0, 437}, []bool{false, false}, 447},
		"what fits":            {output(1, 900), 600, []int{0, 190}, []bool{false, false}, 800},
		"the largest first":    {output(1, 60, 300, 200), 500, []int{0, 0, 115, 115}, []bool{false, false, false, false}, 800},
		"not even the ends":    {output(1, 300, 300), 700, nil, []bool{false, true, true}, 730},
		"older ones before":    {append(output(1, 300), output(2, 300)...), 490, []int{0, 0, 0, 280}, []bool{false, true, false, false}, 800},
		"what cannot be cut":   {[]window.Piece{{Size: 900, Short: 10, Batch: 1}}, 0, nil, []bool{true}, 10},
		"small enough already": {output(1, 300), 100, nil, []bool{false, false}, 410},
	} {
		got := window.Compact(tt.pieces, tt.fixed, 1000, false)
		if !slices.Equal(got.Cut, tt.cut) || !slices.Equal(got.Short, tt.short) || got.Total != tt.total {
			t.Errorf("%s: cut %v, short %v, total %d; want %v, %v, %d", name, got.Cut, got.Short, got.Total, tt.cut, tt.short, tt.total)
		}
	}
}

// talk draws a conversation, piece by piece.
func talk(t *rapid.T) []window.Piece {
	var list []window.Piece
	batch := 0
	for g := range rapid.IntRange(1, 12).Draw(t, "turns") {
		list = append(list, window.Piece{Size: rapid.IntRange(1, 120).Draw(t, "said"), Group: g, Batch: batch})
		for range rapid.IntRange(0, 3).Draw(t, "batches") {
			batch++
			list = append(list, window.Piece{Size: 5, Group: g, Batch: batch})
			for range rapid.IntRange(1, 3).Draw(t, "uses") {
				p := window.Piece{Size: rapid.IntRange(1, 300).Draw(t, "output"), Group: g, Batch: batch}
				if p.Size > 20 {
					p.Short = 10
				}
				if p.Size > 60 && rapid.Bool().Draw(t, "can be cut") {
					p.Least = 50
				}
				list = append(list, p)
			}
		}
	}
	return list
}

// TestCompactKeepsThePrefix: what was decided about the beginning of a conversation changes only when a threshold is
// passed, and between two changes the conversation has grown by a tenth of the budget, or turns had to be dropped.
func TestCompactKeepsThePrefix(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list, budget, fixed := talk(t), rapid.SampledFrom([]int{600, 1500, 4000}).Draw(t, "budget"), rapid.IntRange(0, 200).Draw(t, "fixed")
		drop := rapid.Bool().Draw(t, "drop")
		last, grown := window.Plan{}, 0
		for n := range list {
			got := window.Compact(list[:n+1], fixed, budget, drop)
			newest := func(i int) bool { return list[i].Batch == list[n].Batch && got.Short[i] }
			if window.Over(got.Total, budget) || slices.ContainsFunc(indexes(n+1), newest) || got.Cut != nil {
				return // the newest output was shortened too, because the request would not fit
			}
			if n > 0 {
				same := got.Dropped == last.Dropped && slices.Equal(got.Short[:n], last.Short)
				grown += list[n].Size
				if forced := got.Dropped > last.Dropped || last.Total+list[n].Size > int(float64(budget)*(window.Limit-1.0/16))-1; !same && !forced && last.Total > 0 && grown < int(float64(budget)*window.Step)-1 && changes(last) {
					t.Fatalf("changed after %d of %d tokens:\n%s", grown, budget, cmp.Diff(last.Short, got.Short[:n]))
				}
				if !same {
					grown = 0
				}
			}
			last = got
		}
	})
}

func indexes(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// changes reports whether a plan has shortened or dropped anything.
func changes(p window.Plan) bool { return p.Dropped > 0 || slices.Contains(p.Short, true) }

// TestCompactFits: the total is what is sent, it fits unless what cannot be left out does not, and the last turn stays.
func TestCompactFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list, budget, fixed := talk(t), rapid.IntRange(50, 4000).Draw(t, "budget"), rapid.IntRange(0, 300).Draw(t, "fixed")
		got := window.Compact(list, fixed, budget, true)
		sum, least := fixed, fixed
		final := list[len(list)-1].Group
		for i, p := range list {
			size := p.Size
			if i < len(got.Cut) && got.Cut[i] > 0 {
				size = got.Cut[i]
			}
			if got.Short[i] {
				size = p.Short
			}
			if p.Group >= got.Dropped {
				sum += size
			}
			if p.Group == final {
				if p.Short > 0 {
					least += p.Short
				} else {
					least += p.Size
				}
			}
		}
		if sum != got.Total || got.Dropped > final {
			t.Fatalf("total %d, sent %d, dropped %d of %d", got.Total, sum, got.Dropped, final+1)
		}
		if window.Over(sum, budget) && !window.Over(least, budget) {
			t.Fatalf("%d of %d tokens are sent, and %d would do", sum, budget, least)
		}
	})
}
