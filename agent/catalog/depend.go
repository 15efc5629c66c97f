package catalog

import (
	"maps"
	"slices"
)

// graph evaluates the rules of Dependencies. Its zero value has no rules. Immutable.
type graph struct {
	rules    map[string]Rule // cycle members without their requires
	perDep   float64
	maxBoost float64
	cycle    []string // members of cycles, sorted
}

// newGraph drops the requirements of tools in a cycle, because they could never be met. Tools that only lead into a
// cycle keep theirs.
func newGraph(d Dependencies) graph {
	if !d.Enabled {
		return graph{}
	}
	g := graph{rules: maps.Clone(d.Rules), perDep: d.BoostPerDep, maxBoost: d.MaxTotalBoost}
	for _, name := range slices.Sorted(maps.Keys(d.Rules)) {
		if requiresItself(d.Rules, name) {
			g.cycle = append(g.cycle, name)
			g.rules[name] = Rule{Prefers: d.Rules[name].Prefers}
		}
	}
	return g
}

// requiresItself reports whether a tool requires itself, directly or through others.
func requiresItself(rules map[string]Rule, name string) bool {
	seen := map[string]bool{}
	open := slices.Clone(rules[name].Requires)
	for len(open) > 0 {
		next := open[len(open)-1]
		open = open[:len(open)-1]
		if next == name {
			return true
		}
		if !seen[next] {
			seen[next] = true
			open = append(open, rules[next].Requires...)
		}
	}
	return false
}

// missingTools lists the required tools that have not succeeded.
func (g graph) missingTools(name string, done map[string]bool) []string {
	var list []string
	for _, r := range g.rules[name].Requires {
		if !done[r] && !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

// boostOf is min(n·per, max), where n is the number of preferred tools that have succeeded.
func (g graph) boostOf(name string, done map[string]bool) float64 {
	prefers := g.rules[name].Prefers
	n := 0
	for i, p := range prefers {
		if done[p] && !slices.Contains(prefers[:i], p) {
			n++
		}
	}
	return min(float64(n)*g.perDep, g.maxBoost)
}
