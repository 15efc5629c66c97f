package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot/texts"
)

// TestMenusOfRoles: the service sets a menu for each role and language, with the commands that the role may use there.
func TestMenusOfRoles(t *testing.T) {
	t.Parallel()
	w := newWired(t, "", "") // its admin is 1001
	offers := func(scope, command string) bool {
		for _, c := range w.fake.Commands()[scope] {
			if c.Command == command {
				return true
			}
		}
		return false
	}
	var scopes []string
	for i, language := range (texts.Words{}).Languages() {
		for _, scope := range []string{"all_group_chats", "all_private_chats", "chat:1001"} {
			if i > 0 {
				scope += "/" + language
			}
			scopes = append(scopes, scope)
		}
	}
	if err := w.fake.WaitFor(t.Context(), func() bool {
		return !slices.ContainsFunc(scopes, func(scope string) bool { return !offers(scope, "help") })
	}); err != nil {
		t.Fatal(err)
	}
	for _, scope := range scopes {
		admin := strings.HasPrefix(scope, "chat:1001")
		if offers(scope, "policy") != admin || offers(scope, "admit") != admin || !offers(scope, "stop") {
			t.Errorf("%s: %v", scope, w.fake.Commands()[scope])
		}
	}
}

// TestMenusInEveryLanguage: the menu of a language is described in it.
func TestMenusInEveryLanguage(t *testing.T) {
	t.Parallel()
	w := newWired(t, "", "")
	for language, want := range map[string]string{"": "what you can do here", "/de": "was du hier tun kannst", "/es": "qué puedes hacer aquí", "/ru": "что вы можете здесь делать"} {
		if err := w.fake.WaitFor(t.Context(), func() bool {
			for _, c := range w.fake.Commands()["all_group_chats"+language] {
				if c.Command == "help" {
					return c.Description == want
				}
			}
			return false
		}); err != nil {
			t.Errorf("%q: %v: %v", language, err, w.fake.Commands()["all_group_chats"+language])
		}
	}
}
