package texts_test

import (
	"reflect"
	"strings"
)

// terminals adds what is said at a terminal, with its gaps filled.
func terminals(l string, m map[string][]string) {
	for _, value := range reflect.ValueOf(w.Terminal(l)).Fields() {
		m["Terminal"] = append(m["Terminal"], strings.NewReplacer("%s", "x", "%d", "3", "%%", "%").Replace(value.String()))
	}
	m["Consumption"] = []string{w.Consumption(l, "m", 12_000, 128_000, 0.012)}
	for _, mode := range []string{"ask", "code", "architect"} {
		name, about := w.EditorMode(l, mode)
		m["EditorMode"] = append(m["EditorMode"], name+": "+about)
	}
}
