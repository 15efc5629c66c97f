package access_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/access"
	"github.com/zephbot/zephbot/bot/turn"
)

// TestTwoLastAdmins: two admins who remove each other at once, in two processes, by a command, by a button or to a lower
// role, leave one.
func TestTwoLastAdmins(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		told   string
		second func(h *house) (turn.Effect, error)
	}{
		"command": {"That is the last admin.", func(h *house) (turn.Effect, error) {
			return h.desk.Remove(t.Context(), &turn.Call{Message: h.message("8", "/remove 7", ""), Session: "s", Admin: true})
		}},
		"lower role": {"That is the last admin.", func(h *house) (turn.Effect, error) {
			return h.desk.Admit(t.Context(), &turn.Call{Message: h.message("8", "/admit 7 user", ""), Session: "s", Admin: true})
		}},
		"button": {"That is for admins of this bot", func(h *house) (turn.Effect, error) {
			m := h.message("8", "", "")
			m.Kind, m.Data, m.Query, m.Message = bot.Press, "p1:r:7:0", "q", "5"
			return h.desk.Press(t.Context(), &turn.Call{Message: m})
		}},
	} {
		h := newHouse(t, access.Options{})
		code, err := h.guard.Offer(t.Context(), "p1", "")
		if err != nil {
			t.Fatal(err)
		}
		h.says("7", "/start "+code, "")
		h.command("7", "/admit 8 admin", "")
		one, err := h.desk.Remove(t.Context(), &turn.Call{Message: h.message("7", "/remove 8", ""), Session: "s", Admin: true})
		if err != nil {
			t.Fatal(err)
		}
		h.another()
		two, err := tt.second(h)
		if err != nil {
			t.Fatal(err)
		}
		h.apply(one, nil)
		if _, err := h.store.Apply(t.Context(), &two.Change); !errors.Is(err, bot.ErrConflict) {
			t.Errorf("%s: the second one ended with %v", name, err)
		}
		two, err = tt.second(h) // as the dispatcher does after a conflict
		h.apply(two, err)
		want(t, name, h.sent[0].Content.Text, tt.told)
		if err := h.guard.Follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, name, fmt.Sprint(h.guard.Admins()), "[P7]")
	}
}
