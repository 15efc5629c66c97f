package toolstest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/act"
)

// Said is what a tool says of itself, as far as that decides what runs without a question.
type Said struct {
	Act   act.Act
	Cache act.Group // which of its results are remembered; "" = none
}

// CheckSays pins what tools say of themselves, by their names.
func CheckSays(t testing.TB, list []act.Tool, want map[string]Said) {
	t.Helper()
	got := map[string]Said{}
	for i := range list {
		got[list[i].Name] = Said{Act: list[i].Act, Cache: list[i].Cache}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the tools say of themselves (-want +got):\n%s", diff)
	}
}
