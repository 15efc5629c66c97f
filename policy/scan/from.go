package scan

import (
	"slices"

	"github.com/zephbot/zephbot/policy/source"
)

// From returns what in a text of a source tries to give instructions to the model; nil = nothing does.
func From(from source.Source, text string) []Match {
	if from.Strict() {
		return Orders(flagFile(text))
	}
	return Orders(Flag(text))
}

// Orders returns matches unless all of them are images: every page has some, and they leak nothing unless somebody is
// told to fill in their address. Together with another finding they count.
func Orders(found []Match) []Match {
	if !slices.ContainsFunc(found, func(m Match) bool { return m.Category != "exfiltration" }) {
		return nil
	}
	return found
}
