package command

import (
	"slices"
	"sort"
)

// byUse are the commands by how much people use them, which is how /help and the menus list them.
var byUse = []string{
	"new", "stop", "schedule", "memory", "model", "settings", "quota", "search", "recap", "btw", "speak", "retry", "undo", "status", "tools", "why", "approve", "deny",
	"skills", "timezone", "clear", "export", "forget", "help", "invite", "people", "admit", "remove", "mcp", "policy", "admin",
}

// sortByUse sorts names by how much people use the commands. Those that byUse does not know come last, by the alphabet.
func sortByUse(names []string) {
	rank := func(name string) int {
		if i := slices.Index(byUse, name); i >= 0 {
			return i
		}
		return len(byUse)
	}
	sort.Strings(names)
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
}
