package texts

import (
	"reflect"

	"github.com/zephbot/zephbot/policy/reason"
)

// Drafts reports whether sentences of some part are still in Go, in English and German only: its field in the book is
// not exported.
func Drafts() bool {
	for field := range reflect.TypeFor[book]().Fields() {
		if !field.IsExported() {
			return true
		}
	}
	return false
}

// EnglishReasons are the sentences of en.toml.
func EnglishReasons() map[reason.Code]string { return in("en").Reason }
