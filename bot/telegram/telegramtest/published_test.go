package telegramtest

import (
	_ "embed"
	"slices"
	"strings"
	"testing"
)

// unused has what of that this server does not know on purpose: "METHOD", or "METHOD.PARAMETER".
//
//go:embed unused.txt
var unused string

// TestPublishedMethods compares what the bot may send with what is published: everything new is named, until it is
// either described in api.txt or listed as unused, and so is whatever is no longer published.
func TestPublishedMethods(t *testing.T) {
	t.Parallel()
	table, err := theAPI()
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for name := range strings.FieldsSeq(unused) {
		left[name] = true
	}
	isNew := func(name string) {
		if !left[name] {
			t.Errorf("%s is new: describe it in api.txt, or list it in unused.txt", name)
		}
		delete(left, name)
	}
	described := map[string]bool{}
	for line := range strings.Lines(published) {
		words := strings.Fields(line)
		if words[0] != "method" {
			continue
		}
		method := words[1]
		part, known := table["method "+method]
		if !known {
			isNew(method)
			continue
		}
		described[method] = true
		params := words[2:]
		for _, word := range params {
			name, required := strings.CutSuffix(word, "!")
			if s, ok := part[name]; !ok {
				isNew(method + "." + name)
			} else if required && !s.required {
				t.Errorf("%s needs %s, and api.txt does not say so", method, name)
			}
		}
		for name := range part {
			if !slices.Contains(params, name) && !slices.Contains(params, name+"!") {
				t.Errorf("%s has no parameter %s", method, name)
			}
		}
	}
	for part := range table {
		if method, ok := strings.CutPrefix(part, "method "); ok && !described[method] {
			t.Errorf("there is no method %s", method)
		}
	}
	for name := range left {
		t.Errorf("unused.txt lists %s, which is described or no longer published", name)
	}
}
