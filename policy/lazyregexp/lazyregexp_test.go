package lazyregexp_test

import (
	"testing"

	"github.com/zephbot/zephbot/policy/lazyregexp"
)

func TestNew(t *testing.T) {
	t.Parallel()
	word := lazyregexp.New(`^[a-z]+$`)
	first := word()
	if !first.MatchString("word") || first.MatchString("2 words") || word() != first {
		t.Error("it is not the expression, compiled once")
	}
	wrong := lazyregexp.New(`(`) // no panic before it is used
	defer func() {
		if recover() == nil {
			t.Error("a mistake is not noticed")
		}
	}()
	wrong()
}
