package catalog

import (
	"slices"

	"github.com/zephbot/zephbot/tools"
)

// Without leaves out the tools that are hidden. It gives the list itself where none is, as nearly always.
func Without(list []tools.Definition, hidden func(tools.Definition) bool) []tools.Definition {
	first := slices.IndexFunc(list, hidden)
	if first < 0 {
		return list
	}
	left := append(make([]tools.Definition, 0, len(list)-1), list[:first]...)
	for _, d := range list[first+1:] {
		if !hidden(d) {
			left = append(left, d)
		}
	}
	return left
}
