package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

func contains(list []string, s string) bool { return slices.Contains(list, s) }

// checkPackages checks names and package comments.
func checkPackages(files []goFile) []Problem {
	var out []Problem
	documented := map[string]bool{}
	var dirs []string
	for _, f := range files {
		if _, known := documented[f.dir]; !known {
			dirs = append(dirs, f.dir)
			documented[f.dir] = false
			out = append(out, checkName(f)...)
		}
		if f.doc {
			documented[f.dir] = true
		}
	}
	for _, dir := range dirs {
		if !documented[dir] {
			out = append(out, Problem{
				File: dir,
				Rule: "comment",
				Text: "the package has no comment; say in a sentence what it is for",
			})
		}
	}
	return out
}

func checkName(f goFile) []Problem {
	for _, name := range []string{path.Base(f.dir), strings.TrimSuffix(f.pkg, "_test")} {
		if contains(vagueNames, name) {
			return []Problem{{
				File: f.dir,
				Rule: "name",
				Text: fmt.Sprintf("%q says nothing; name the package after what it gives", name),
			}}
		}
	}
	return nil
}

// maxDepth is how many imports may lie one below the other under cmd/internal/app, the package that wires. It leaves
// room for policy/reason, which the rules about addresses name and everything else is above, and for what stands
// between the wiring and the stores: where the state is, and what a configuration is checked for.
const maxDepth = 10

// wiring is the package under which depth is counted.
const wiring = "cmd/internal/app"

// checkDepth checks how deep a reader must go: the longest chain of imports within the module, without tests, from
// every package that is not itself above the wiring.
func checkDepth(files []goFile) []Problem {
	g := graph{edges: map[string][]string{}, memo: map[string][]string{}}
	var dirs []string
	for _, f := range files {
		if f.test {
			continue
		}
		if _, known := g.edges[f.dir]; !known {
			dirs = append(dirs, f.dir)
		}
		g.edges[f.dir] = append(g.edges[f.dir], locals(f)...)
	}
	slices.Sort(dirs)
	var out []Problem
	for _, dir := range dirs {
		chain := g.longest(dir)
		if len(chain)-1 > maxDepth && (dir == wiring || !g.reaches(dir, wiring)) {
			out = append(out, Problem{File: dir, Rule: "depth", Text: fmt.Sprintf(
				"imports %d deep, at most %d: %s", len(chain)-1, maxDepth, strings.Join(chain, " → "),
			)})
		}
	}
	return out
}

func locals(f goFile) []string {
	dirs := []string{}
	for _, i := range f.imports {
		if i.local != "" {
			dirs = append(dirs, i.local)
		}
	}
	return dirs
}

// graph is the packages of the module and what they import.
type graph struct {
	edges map[string][]string
	memo  map[string][]string
}

// longest returns the longest chain of imports that begins with dir. A cycle, which the compiler refuses, is cut.
func (g graph) longest(dir string) []string {
	if chain, ok := g.memo[dir]; ok {
		return chain
	}
	g.memo[dir] = []string{dir}
	var below []string
	for _, next := range g.edges[dir] {
		if chain := g.longest(next); len(chain) > len(below) {
			below = chain
		}
	}
	g.memo[dir] = append([]string{dir}, below...)
	return g.memo[dir]
}

// reaches says whether from imports to, at any depth.
func (g graph) reaches(from, to string) bool {
	seen := map[string]bool{from: true}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, next := range g.edges[queue[0]] {
			if next == to {
				return true
			}
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return false
}
