package catalog_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/tools"
)

// TestWithout: what is hidden is left out in place, the list that was given stays as it is, and it is not copied where
// nothing is hidden.
func TestWithout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ names, want string }{
		{"", ""}, {"a b", "a b"}, {"x", ""}, {"x a", "a"}, {"a x b x", "a b"}, {"x x", ""},
	} {
		var list []tools.Definition
		for name := range strings.FieldsSeq(tt.names) {
			list = append(list, tools.Definition{Name: name})
		}
		got := catalog.Without(list, func(d tools.Definition) bool { return d.Name == "x" })
		if said := said(got); said != tt.want || said == tt.names && len(list) > 0 && &got[0] != &list[0] {
			t.Errorf("%q: %q, want %q", tt.names, said, tt.want)
		}
		if said := said(list); said != tt.names {
			t.Errorf("%q was changed to %q", tt.names, said)
		}
	}
}

func said(list []tools.Definition) string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	return strings.Join(names, " ")
}
