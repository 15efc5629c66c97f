package texts_test

import (
	"reflect"
	"strings"
)

// terminals adds what is said at a terminal, with its gaps filled.
func terminals(l string, m map[string][]string) {
	for _, value := range reflect.ValueOf(w.Terminal(l)).Fields() {
		m["Terminal"] = append(m["Terminal"], strings.ReplaceAll(value.String(), "%s", "x"))
	}
}
