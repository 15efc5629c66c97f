package texts

import "reflect"

// Drafts reports whether sentences of some part are still in Go, in English and German only: its field in the book is
// not exported.
func Drafts() bool {
	for field := range reflect.TypeFor[book]().Fields() {
		if !field.IsExported() && field.Name != "reasons" {
			return true
		}
	}
	return false
}
