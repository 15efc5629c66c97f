package app_test

import (
	"strings"
	"testing"
)

// planted are texts that a service was given and that must not come out where nobody asked for them.
type planted struct {
	credentials map[string]string // by what they are; never shown
	contents    map[string]string // by who said them; shown only where texts were asked for
}

// search looks for what is planted in what a service has said. texts says that contents were asked for.
func (p planted) search(t *testing.T, where, said string, texts bool) {
	t.Helper()
	if said == "" {
		t.Errorf("%s is empty: nothing was searched", where)
	}
	look := func(list map[string]string) {
		t.Helper()
		for what, value := range list {
			if i := strings.Index(said, value); i >= 0 {
				t.Errorf("%s holds the %s: …%s…", where, what, said[max(0, i-120):min(len(said), i+len(value)+40)])
			}
		}
	}
	look(p.credentials)
	if !texts {
		look(p.contents)
	}
}
