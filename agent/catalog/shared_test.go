package catalog_test

import (
	"testing"

	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/tools"
)

// store returns a server whose tools are all about the same thing.
func store(id string) []tools.Definition {
	var list []tools.Definition
	for _, name := range []string{"read", "write", "search", "move", "tree", "info"} {
		list = append(list, tools.Definition{Name: id + ":" + name + "_file", Description: "Works on a file, as the name of this tool says.", Server: id})
	}
	return list
}

// TestSharedWords: a word that all tools share, or the name of their server, shows some of them although words alone
// cannot distinguish them.
func TestSharedWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		query  string
		strict bool
		want   int
	}{
		{"look at my files", false, 3},
		{"what does depot know", false, 3},
		{"what does depot know", true, 3},
		{"what is the weather", false, 0},
		{"ok", false, 0},
	} {
		d := catalog.Discovery{TopK: 3, MinSimilarity: 0.3, MinToolsToFilter: 5, Strict: tt.strict}
		k := setup(t, catalog.Options{Discovery: d}, store("depot")...)
		if got := k.show("1", tt.query); len(got) != tt.want {
			t.Errorf("%q, strict %t: %v, want %d tools", tt.query, tt.strict, got, tt.want)
		}
	}
}
