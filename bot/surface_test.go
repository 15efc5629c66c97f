package bot_test

import (
	"testing"

	"github.com/zephbot/zephbot/bot"
)

// TestSurfaces: chats with one id on three surfaces have nothing in common, and a connection that would break a key is
// none.
func TestSurfaces(t *testing.T) {
	t.Parallel()
	business, ok := bot.SurfaceBusiness("c1")
	if !ok {
		t.Fatal("c1 is a connection")
	}
	for _, id := range []string{"", "a/b"} {
		if _, ok := bot.SurfaceBusiness(id); ok {
			t.Errorf("%q is no connection", id)
		}
	}
	keys := map[bot.SessionKey]bool{}
	workspaces := map[string]bool{}
	for _, surface := range []string{bot.SurfaceBot, bot.SurfaceGuest, business} {
		p := bot.Place{Channel: "telegram", Bot: "1", Surface: surface, Chat: "-5", Group: true}
		key := p.SessionKey("42")
		if keys[key] || workspaces[bot.WorkspaceID(key.String())] || !key.Valid() {
			t.Errorf("key %s", key)
		}
		keys[key], workspaces[bot.WorkspaceID(key.String())] = true, true
		if p.Ordinary() != (surface == bot.SurfaceBot) || p.Guest() != (surface == bot.SurfaceGuest) || (p.Business() == "c1") != (surface == business) {
			t.Errorf("%s: %v %v %q", surface, p.Ordinary(), p.Guest(), p.Business())
		}
		if back, ok := key.Place(); !ok || back.Surface != surface {
			t.Errorf("%s comes back as %+v", key, back)
		}
	}
}
