package app_test

import (
	"slices"
	"testing"
)

// TestMenusOfRoles: the service sets a menu for each role and language, with the commands that the role may use there.
func TestMenusOfRoles(t *testing.T) {
	t.Parallel()
	w := wire(t, "", "") // its admin is 1001
	offers := func(scope, command string) bool {
		for _, c := range w.fake.Commands()[scope] {
			if c.Command == command {
				return true
			}
		}
		return false
	}
	scopes := []string{"all_group_chats", "all_group_chats/de", "all_private_chats", "all_private_chats/de", "chat:1001", "chat:1001/de"}
	if err := w.fake.WaitFor(t.Context(), func() bool {
		return !slices.ContainsFunc(scopes, func(scope string) bool { return !offers(scope, "help") })
	}); err != nil {
		t.Fatal(err)
	}
	for _, scope := range scopes {
		admin := scope == "chat:1001" || scope == "chat:1001/de"
		if offers(scope, "policy") != admin || offers(scope, "admit") != admin || !offers(scope, "stop") {
			t.Errorf("%s: %v", scope, w.fake.Commands()[scope])
		}
	}
}
